"""A rule of the operator's own: a call, or an answer, for which a condition holds, given what the conversation showed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec

from otelmon.checks.lib.bindings import (
    AT_ANSWER,
    AT_CALL,
    Binding,
    Place,
    bind,
    binding_mistakes,
    fields_of,
    surroundings,
)
from otelmon.checks.lib.conditions import compile_condition, condition_mistakes
from otelmon.checks.lib.expressions import CALL_FIELDS
from otelmon.checks.lib.pairs import call_facts
from otelmon.checks.lib.selection import Mistake, Selector, Statement
from otelmon.checks.registry import check
from otelmon.checks.view import View
from otelmon.vocabulary.event import AssistantMessage, ToolCall
from otelmon.vocabulary.finding import Evidence, Severity


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`calls`: which calls are looked at; or `answer`: which sentence of an answer. `let`: names for results of other
    calls, for what was said, for values. `when`: CEL over these names and `known.<name>`, `said.user`, `said.last`,
    `said.assistant`; at a call also `call`, its `result`, `approved`, `confirmed`; at an answer `answer`. The rule fires where it is true.
    A name that was not found makes what uses it undecided, so the rule is silent: ask `known` for it.
    `severity`: of every finding, whatever the call does; without it a destructive call that landed is at least high and
    a read at most medium. `summary`: what is said of a finding."""

    PROSE: ClassVar[tuple[str, ...]] = ("summary", "severity")  # they change what is said, not where

    when: str
    calls: Selector | None = None
    answer: Statement | None = None
    let: dict[str, Binding] = {}
    severity: Severity | None = None
    summary: str = ""

    def mistakes(self) -> Iterator[Mistake]:
        """What is wrong inside: (path, what, what to do)."""
        if (self.calls is None) == (self.answer is None):
            yield ((), "asks about nothing, or about two things", "give `calls` or `answer`")
        for name, what in (("calls", self.calls), ("answer", self.answer)):
            yield from (((name, *path), wrong, do) for path, wrong, do in (what.mistakes() if what else ()))
        always, own = (AT_CALL, CALL_FIELDS) if self.answer is None else (AT_ANSWER, {"answer": self.answer.fields})
        yield from ((("let", *path), wrong, do) for path, wrong, do in binding_mistakes(self.let, always, own))
        names = always | frozenset(self.let)
        found = condition_mistakes(self.when, names, fields=fields_of(self.let, own))
        yield from ((("when",), wrong, do) for wrong, do in found)

    def holds(self, place: Place) -> dict[str, Any] | None:
        """What was looked up there when the condition holds, else None."""
        always = AT_CALL if self.answer is None else AT_ANSWER
        bound = bind(self.let, place)
        values = surroundings(place, self.let, bound, self.when)
        condition = compile_condition(self.when, always | frozenset(self.let))
        return bound if condition.holds(values) else None


@check(on="call")
def match(call: ToolCall, view: View, params: Params) -> Iterator[Evidence]:
    """A condition over one call, or over what the agent says, and what was looked up before holds.

    Why it matters: what an organisation allows stands in its own policy; this is how it is written as a rule.
    """
    if params.calls is None or not params.calls.matches(call, view):
        return
    bound = params.holds(Place(call, view))
    if bound is None:
        return
    yield Evidence(
        summary=f"{call.tool_name}: {params.summary}"
        if params.summary
        else f"{call.tool_name} is what the rule asks for",
        anchor=call.key,
        key="match",
        severity=params.severity,
        span_ids=(call.span_id,),
        details={"this": call_facts(call), **_details(params, bound)},
    )


@check(on="final", name="match")
def match_answer(message: AssistantMessage, view: View, params: Params) -> Iterator[Evidence]:
    """The same, of an answer."""
    found = params.answer.found_in(message.text) if params.answer is not None else None
    bound = params.holds(Place(message, view, found)) if found is not None else None
    if found is None or bound is None:
        return
    yield Evidence(
        summary=params.summary or "the answer says what the rule asks for",
        anchor=message.span_id,
        key="match",
        severity=params.severity,
        span_ids=(message.span_id,),
        details={"said": found["text"][:500], **_details(params, bound)},
    )


def _details(params: Params, bound: dict[str, Any]) -> dict[str, Any]:
    return {"when": params.when, "not_found": [name for name in params.let if name not in bound]}
