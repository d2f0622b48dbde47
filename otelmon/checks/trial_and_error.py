"""One write, tried again and again with other values until something gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec

from otelmon.checks.lib.pairs import call_facts
from otelmon.checks.lib.polling import error_text, is_technical, may_pass
from otelmon.checks.lib.repeats import sent_at_once, spans
from otelmon.checks.registry import check
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import Evidence

_LOOKED_AT = 30  # earlier calls of the tool


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`attempts`: refused attempts at one thing, with at least two sets of values, that make a series."""

    attempts: Annotated[int, msgspec.Meta(ge=2)] = 3


@check(on="call")
def trial_and_error(call: ToolCall, view: View, params: Params) -> Iterator[Evidence]:
    """A write was refused for what it asks, and the agent goes on to try other values for the same record.

    Why it matters: it does not know what it is doing, and the first combination that passes takes effect.
    """
    if not _refused(call) or not view.writes(call):
        return
    series = _series(call, view)
    if len(series) != params.attempts or len({view.effect_key(c) for c in series}) < 2:
        return
    yield Evidence(
        summary=f"{call.tool_name} was refused {len(series)} times with other values each time, "
        f"now with {error_text(call).strip()[:80]!r}",
        anchor=call.key,
        key="series",
        span_ids=spans(call, *series),
        details={"attempts": [call_facts(c) for c in series], "other": series[0].key},
    )


def _series(call: ToolCall, view: View) -> list[ToolCall]:
    """The refused attempts at the call's record since one of them landed, oldest first, this one last."""
    found = [call]
    values = set(view.identifying_values(call))
    for earlier in reversed(view.same_tool_before(call)[-_LOOKED_AT:]):
        if not values & set(view.identifying_values(earlier)):
            continue
        if earlier.outcome != "failed":
            break
        if _refused(earlier) and not sent_at_once(earlier, found[-1]):
            found.append(earlier)
    return found[::-1]


def _refused(call: ToolCall) -> bool:
    """A definite no to the request itself."""
    return call.outcome == "failed" and not may_pass(call) and not is_technical(call)
