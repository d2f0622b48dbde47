"""A message calculates, and its own numbers or the evidence give another result."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from otelmon.checks.lib.counts import Flagged, flagged_lists, miscounted
from otelmon.checks.lib.equations import wrong_equations
from otelmon.checks.lib.instants import Instant
from otelmon.checks.lib.timespans import Span, contradicted, known_times, now_at, spans_claimed
from otelmon.checks.registry import check
from otelmon.checks.view import View
from otelmon.vocabulary.event import AssistantMessage, Run, ToolCall
from otelmon.vocabulary.finding import Evidence

_CHANGES = ("write", "destructive")
MAX_CLAIMING = 50  # messages of a run whose claims about spans of time are looked at: the first ones
MAX_CALLS = 200  # calls after a message that are looked at


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`times`: look at claims about spans of time ("within the last 24 hours"); `sums`: at calculations that
    are written out ("2 x $40 = $90"); `counts`: at counts of what a result marks ("11 available options")."""

    times: bool = True
    sums: bool = True
    counts: bool = True


class _Wrong(msgspec.Struct, frozen=True):
    """A wrong result: what was said, and why it is wrong."""

    said: str
    why: str


@check(on="run")
def wrong_arithmetic(run: Run, view: View, params: Params) -> Iterator[Evidence]:
    """The agent reckons with times or amounts, in words that anybody can check, and gets it wrong.

    Why it matters: what follows rests on it. A period that is over is taken to be open, a total is charged
    that is none.
    """
    claiming = 0
    flagged = flagged_lists(view) if params.counts else []
    for message in view.run_events(run.run_id):
        if not isinstance(message, AssistantMessage) or not message.text:
            continue
        spans = spans_claimed(message.text) if params.times and claiming < MAX_CLAIMING else []
        claiming += bool(spans)
        wrong = [*_times(spans, message, view), *(_sums(message) if params.sums else ()), *_counts(message, flagged)]
        if wrong:
            yield _evidence(message, wrong, _acted_on(message, view))


def _times(spans: Sequence[Span], message: AssistantMessage, view: View) -> list[_Wrong]:
    if not spans:
        return []
    now, known = now_at(message, view), known_times(message, view)
    found = ((span, contradicted(span, now, known)) for span in spans)
    return [_Wrong(span.sentence, _why(span, times)) for span, times in found if times]


def _why(span: Span, times: Sequence[Instant]) -> str:
    one, other = sorted(times, key=lambda item: item.first)
    hours = span.length.total_seconds() / 3600
    relation = "more" if span.kind == "within" else "less"
    return f"from {_said(one)} to {_said(other)} it is {relation} than {hours:g} hours"


def _said(item: Instant) -> str:
    return item.first.isoformat(" ") if item.exact else item.first.date().isoformat()


def _sums(message: AssistantMessage) -> list[_Wrong]:
    return [_Wrong(e.written, f"the result is {e.result}") for e in wrong_equations(message.text)]


def _counts(message: AssistantMessage, flagged: Sequence[Flagged]) -> list[_Wrong]:
    seen = [item for item in flagged if item.position < message.position]
    return (
        [_Wrong(m.said, f"{m.true} are {m.word} in the result") for m in miscounted(message.text, seen)] if seen else []
    )


def _acted_on(message: AssistantMessage, view: View) -> ToolCall | None:
    """The next call of the conversation after the message that changed something."""
    after = bisect_right(view.calls, message.position, key=lambda call: call.position)
    later = view.calls[after : after + MAX_CALLS]
    return next((call for call in later if call.outcome == "succeeded" and view.effect(call).effect in _CHANGES), None)


def _evidence(message: AssistantMessage, wrong: Sequence[_Wrong], acted: ToolCall | None) -> Evidence:
    first = wrong[0]
    details: dict[str, Any] = {"wrong": [msgspec.to_builtins(item) for item in wrong[:10]]}
    if acted:
        details["other"] = acted.key
    return Evidence(
        summary=f"the message says {first.said[:140]!r}, but {first.why}"
        + (f"; {acted.tool_name} was called after it" if acted else ""),
        anchor=message.span_id,
        key="arithmetic",
        span_ids=(message.span_id, *((acted.span_id,) if acted else ())),
        severity="high" if acted else "medium",
        details=details,
    )
