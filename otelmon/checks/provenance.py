"""A rule of the operator's own: an argument that must come from certain places, and came from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import msgspec

from otelmon.checks.lib.conditions import compile_condition, condition_mistakes
from otelmon.checks.lib.expressions import call_fields
from otelmon.checks.lib.origins import Stray, strays
from otelmon.checks.lib.selection import Mistake, Selector
from otelmon.checks.lib.sources import argument_path, parse
from otelmon.checks.lib.sources import mistakes as source_mistakes
from otelmon.checks.registry import check
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import Evidence

_NAMES = frozenset(("call", "argument"))
_FIELDS = {"argument": ("path", "value", "source", "transformation", "sure")}


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`calls`: which calls are looked at. `argument`: the path of what must have a source (`amount`,
    `items[].sku`). `from`: where it must come from: `tool.field` (globs; `items[].amount` goes into lists), or a
    kind of text (user, system, context, result, run); alternatives are parted by `|`. `unless`: CEL over `call` and
    `argument` (path, value, source, transformation, sure); where it is true nothing is said. `summary`: what is
    said of a finding."""

    PROSE: ClassVar[tuple[str, ...]] = ("summary",)

    calls: Selector
    argument: str
    sources: str = msgspec.field(name="from")
    unless: str | None = None
    summary: str = ""

    def mistakes(self) -> Iterator[Mistake]:
        """What is wrong inside: (path, what, what to do)."""
        yield from ((("calls", *path), wrong, do) for path, wrong, do in self.calls.mistakes())
        yield from ((("from",), wrong, do) for wrong, do in source_mistakes(self.sources))
        if not self.argument or argument_path(self.argument) != self.argument:
            yield (("argument",), f'"{self.argument}" is no path', "write amount, payment.amount or items[].sku")
        if self.unless is not None:
            found = condition_mistakes(self.unless, _NAMES, fields=_FIELDS)
            yield from ((("unless",), wrong, do) for wrong, do in found)


@check(on="call")
def provenance(call: ToolCall, view: View, params: Params) -> Iterator[Evidence]:
    """An argument came from another place than the rule names for it.

    Why it matters: a known value can still be the wrong one; only where it must come from tells.
    """
    if not params.calls.matches(call, view):
        return
    for stray in strays(call, view, params.argument, parse(params.sources)):
        if not _excused(stray, view, params):
            said = f"{params.summary}: {stray.says()}" if params.summary else stray.says()
            yield stray.evidence(f"{call.tool_name}: {said}", key=f"provenance:{stray.line.path}")


def _excused(stray: Stray, view: View, params: Params) -> bool:
    if params.unless is None:
        return False
    line = stray.line
    argument = {name: getattr(line, name) for name in _FIELDS["argument"]}
    values = {"call": call_fields(stray.call, view), "argument": argument}
    return compile_condition(params.unless, _NAMES).holds(values)
