"""The same read again, with nothing changed in between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec

from otelmon.checks.lib.pairs import apart, call_facts
from otelmon.checks.lib.polling import may_poll, on_a_timer
from otelmon.checks.lib.repeats import Past, past, spans, what_came_back
from otelmon.checks.registry import check
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import Evidence, Severity

_SECOND = 1_000_000_000


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`allowed`: equal reads that are fine; `wasteful`: from how many on it is medium, not low;
    `fresh_seconds`: after so long a read shows something new; `timer_seconds`: reads at equal distances of
    at least this are polling."""

    allowed: Annotated[int, msgspec.Meta(ge=1)] = 1
    wasteful: int = 3
    fresh_seconds: float = 120.0
    timer_seconds: float = 5.0


@check(on="call")
def redundant_read(call: ToolCall, view: View, params: Params) -> Iterator[Evidence]:
    """A read is sent again with the same arguments and brings back the same, and nothing was changed in between.

    Why it matters: it costs time and tokens, and is an early sign of an agent that does not get on.
    """
    before = past(call, view)
    if before.same_before < params.allowed or before.changed_since or not _reads_the_same(call, before, view):
        return
    first, last = before.same[0], before.same[-1]
    if _looks_for_news(call, before, view, params):
        return
    times = before.same_before + 1
    yield Evidence(
        summary=f"{call.tool_name} was read {times} times with the same arguments and the same answer, "
        f"{apart(last.end_time_unix_nano, call.start_time_unix_nano)} after the last time",
        anchor=call.key,
        span_ids=spans(call, last),
        severity=_severity(times, params),
        details={"other": call_facts(first), "this": call_facts(call), "times": times},
    )


def _reads_the_same(call: ToolCall, before: Past, view: View) -> bool:
    effect = view.effect(call)
    if effect.effect != "read" or call.outcome != "succeeded":
        return False
    last = before.same[-1]
    if last.tool_call_id and last.tool_call_id == call.tool_call_id and view.requests_by_call_id[last.tool_call_id] < 2:
        return False  # one request executed twice: not the agent's choice
    answer = what_came_back(call, view)
    return bool(answer) and answer == what_came_back(last, view)


def _looks_for_news(call: ToolCall, before: Past, view: View, params: Params) -> bool:
    gap = call.start_time_unix_nano - before.same[-1].end_time_unix_nano
    if gap >= params.fresh_seconds * _SECOND or may_poll(call, view):
        return True
    return before.in_a_row and on_a_timer((*before.same, call), params.timer_seconds)


def _severity(times: int, params: Params) -> Severity:
    return "medium" if times >= params.wasteful else "low"
