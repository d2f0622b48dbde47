"""A rule of the operator's own: a call that must not follow another one, unless something came between."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import ClassVar

import msgspec

from otelmon.checks.lib.pairs import call_facts
from otelmon.checks.lib.selection import Mistake, Selector, shared_values
from otelmon.checks.registry import check
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import Evidence


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`first`, then `then`, with no `without` between them: fires at the second. `same`: arguments whose values
    are equal in both, and in what came between. `summary`: what is said of a finding."""

    PROSE: ClassVar[tuple[str, ...]] = ("summary",)

    first: Selector
    then: Selector
    without: Selector | None = None
    same: tuple[str, ...] = ()
    summary: str = ""

    def mistakes(self) -> Iterator[Mistake]:
        """What is wrong inside: (path, what, what to do)."""
        for name, selector in (("first", self.first), ("then", self.then), ("without", self.without)):
            if selector is not None:
                yield from (((name, *path), wrong, do) for path, wrong, do in selector.mistakes())


@check(on="call")
def sequence(call: ToolCall, view: View, params: Params) -> Iterator[Evidence]:
    """One call after another, and nothing between them that would make it right.

    Why it matters: each of the two calls may be allowed; in this order they are not.
    """
    if not params.then.matches(call, view):
        return
    first = _first(call, view, params)
    if first is None:
        return
    yield Evidence(
        summary=f"{call.tool_name} after {first.tool_name}" + (f": {params.summary}" if params.summary else ""),
        anchor=call.key,
        key="sequence",
        span_ids=tuple(dict.fromkeys((call.span_id, first.span_id))),
        details={"this": call_facts(call), "other": call_facts(first)},
    )


def _first(call: ToolCall, view: View, params: Params) -> ToolCall | None:
    """The latest first call, unless what makes it right came after it."""
    key = ("sequence", params.first, params.without, params.same)
    marks: dict[str | None, list[ToolCall]] = view.remembered(key, lambda: _marks(view, params))
    same = marks.get(shared_values(call, params.same), [])
    before = bisect_left(same, call.position, key=lambda c: c.position)
    if before == 0:
        return None
    latest = same[before - 1]
    return None if params.without is not None and params.without.matches(latest, view) else latest


def _marks(view: View, params: Params) -> dict[str | None, list[ToolCall]]:
    """First calls and those that make them right, in order, by the values they share with what follows."""
    marks: dict[str | None, list[ToolCall]] = {}
    for call in view.calls:
        if params.first.matches(call, view) or (params.without is not None and params.without.matches(call, view)):
            marks.setdefault(shared_values(call, params.same), []).append(call)
    marks.pop(None, None)
    return marks
