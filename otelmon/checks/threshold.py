"""A rule of the operator's own: too many calls of a kind, in a conversation or in a time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec

from otelmon.checks.lib.pairs import call_facts
from otelmon.checks.lib.selection import Mistake, Selector, shared_values
from otelmon.checks.registry import check
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import Evidence

_SECOND = 1_000_000_000


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`calls`: which calls are counted. `max`: how many are allowed. `window_seconds`: only those that began in
    so many seconds before the call (none: all of the conversation). `same`: only those with equal values in
    these arguments. `summary`: what is said of a finding."""

    PROSE: ClassVar[tuple[str, ...]] = ("summary",)

    calls: Selector
    max: int
    window_seconds: float | None = None
    same: tuple[str, ...] = ()
    summary: str = ""

    def mistakes(self) -> Iterator[Mistake]:
        """What is wrong inside: (path, what, what to do)."""
        yield from ((("calls", *path), wrong, do) for path, wrong, do in self.calls.mistakes())
        if self.max < 0:
            yield (("max",), f"max is {self.max}", "0 or more")
        if self.window_seconds is not None and self.window_seconds <= 0:
            yield (("window_seconds",), f"window_seconds is {self.window_seconds:g}", "more than 0, or leave it out")


@check(on="call")
def threshold(call: ToolCall, view: View, params: Params) -> Iterator[Evidence]:
    """More calls of a kind than allowed.

    Why it matters: one call may be fine and the tenth is not; only counting shows it.
    """
    if not params.calls.matches(call, view):
        return
    earlier = _earlier(call, view, params)
    if len(earlier) < params.max:
        return
    yield Evidence(
        summary=f"{call.tool_name}: {params.summary or 'more calls than allowed'} ({len(earlier) + 1}, allowed {params.max})",
        anchor=call.key,
        key="threshold",
        span_ids=(call.span_id, *(c.span_id for c in earlier[-1:])),
        details=_details(call, earlier, params),
    )


def _earlier(call: ToolCall, view: View, params: Params) -> list[ToolCall]:
    """The calls that count before this one, oldest first."""
    key = ("threshold", params.calls, params.same)
    counted: dict[str | None, list[ToolCall]] = view.remembered(key, lambda: _counted(view, params))
    same = counted.get(shared_values(call, params.same), [])
    same = same[: bisect_left(same, call.position, key=lambda c: c.position)]
    if params.window_seconds is None:
        return same
    since = call.start_time_unix_nano - params.window_seconds * _SECOND
    return [c for c in same if c.start_time_unix_nano >= since]


def _counted(view: View, params: Params) -> dict[str | None, list[ToolCall]]:
    """The calls meant, in order, by the values they share with others."""
    counted: dict[str | None, list[ToolCall]] = {}
    for call in view.calls:
        if params.calls.matches(call, view):
            counted.setdefault(shared_values(call, params.same), []).append(call)
    counted.pop(None, None)
    return counted


def _details(call: ToolCall, earlier: list[ToolCall], params: Params) -> dict[str, Any]:
    first = call_facts(earlier[0]) if earlier else None
    return {"this": call_facts(call), "other": first, "times": len(earlier) + 1, "allowed": params.max}
