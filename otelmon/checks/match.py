"""A rule of the operator's own: a call for which a condition holds, given what the conversation showed before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec

from otelmon.checks.lib.conditions import compile_condition, condition_mistakes
from otelmon.checks.lib.pairs import call_facts
from otelmon.checks.lib.selection import ALWAYS, Binding, Mistake, Selector, always, bind
from otelmon.checks.registry import check
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import Evidence


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`calls`: which calls are looked at. `let`: names for earlier results and for what was said. `when`: CEL
    over these names and `call`, its `result`, `known.<name>`, `said.user`, `said.last`, `confirmed`; the rule fires where it
    is true. A name that was not found makes what uses it undecided, so the rule is silent: ask `known` for it.
    `summary`: what is said of a finding."""

    PROSE: ClassVar[tuple[str, ...]] = ("summary",)

    calls: Selector
    when: str
    let: dict[str, Binding] = {}
    summary: str = ""

    def mistakes(self) -> Iterator[Mistake]:
        """What is wrong inside: (path, what, what to do)."""
        yield from ((("calls", *path), wrong, do) for path, wrong, do in self.calls.mistakes())
        names: frozenset[str] = frozenset()
        for name, binding in self.let.items():
            if name in ALWAYS or not name.isidentifier():
                yield (("let", name), f"{name} can not be a name here", "choose another word")
            yield from ((("let", name, *path), wrong, do) for path, wrong, do in binding.mistakes(names))
            names |= {name}
        yield from ((("when",), wrong, do) for wrong, do in condition_mistakes(self.when, ALWAYS | names))


@check(on="call")
def match(call: ToolCall, view: View, params: Params) -> Iterator[Evidence]:
    """A condition over one call and what was looked up before it holds.

    Why it matters: what an organisation allows stands in its own policy; this is how it is written as a rule.
    """
    if not params.calls.matches(call, view):
        return
    bound = bind(params.let, call, view)
    names = ALWAYS | frozenset(params.let)
    if not compile_condition(params.when, names).holds({**bound, **always(call, view, params.let, bound)}):
        return
    yield Evidence(
        summary=f"{call.tool_name}: {params.summary}"
        if params.summary
        else f"{call.tool_name} is what the rule asks for",
        anchor=call.key,
        key="match",
        span_ids=(call.span_id,),
        details=_details(call, params, bound),
    )


def _details(call: ToolCall, params: Params, bound: dict[str, Any]) -> dict[str, Any]:
    missing = [name for name in params.let if name not in bound]
    return {"this": call_facts(call), "when": params.when, "not_found": missing}
