"""Conditions in CEL: what they see, what is refused on load, and that they never raise."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otelmon.checks.lib.expressions import (
    FIELDS,
    ExpressionError,
    call_fields,
    compile_when,
    expression_mistakes,
    undecided,
)
from tests.rules.helpers import view

CATALOGUE = {"tools": [{"name": "run_sql", "effect": "write", "repeat": "absolute"}]}
STEP = {
    "tool": "run_sql",
    "args": {"sql": "update prod.users", "rows": 12, "share": 0.5, "tags": ["a", "b"], "to": {"id": 1}},
    "agent": "ops", "principal": "ann", "environment": "prod", "service": "shop", "server": "db",
    "model": "m", "approval": "approved", "key": "k1",
}  # fmt: skip


def holds(text: str, **changes: Any) -> bool:
    seen = view({"user": "hi"}, {**STEP, **changes}, catalogue=CATALOGUE)
    return compile_when(text)(seen.calls[0], seen)


@pytest.mark.parametrize(
    "text",
    [
        "call.arguments.sql.contains('prod')",
        "call.arguments.rows > 10 && call.arguments.share < 1.0",
        "call.arguments.tags.exists(t, t == 'b')",
        "'a' in call.arguments.tags",
        "call.arguments['rows'] == 12",
        "call.arguments.to.id == 1",
        "has(call.arguments.sql) && !has(call.arguments.limit)",
        "size(call.arguments.tags) == 2",
        "call.arguments.sql.matches('(?i)^UPDATE')",
        "call.name == 'run_sql' && call.name.startsWith('run')",
        "call.agent == 'ops' && call.principal == 'ann' && call.environment == 'prod'",
        "call.service == 'shop' && call.server == 'db' && call.model == 'm'",
        "call.effect == 'write' && call.repeat == 'absolute' && call.outcome == 'succeeded'",
        "call.approved && call.turn == 1 && call.idempotency_key == 'k1'",
        "string(call.arguments.rows) == '12'",
        "call.agent in ['ops', 'dev'] ? true : false",
    ],
)
def test_a_condition_sees_the_call(text: str) -> None:
    assert expression_mistakes(text) == []
    assert holds(text)


@pytest.mark.parametrize(
    ("text", "mistakes"),
    [
        ("call.argumants.x == 1", [("call has no field argumants", "did you mean arguments?")]),
        ("call.zzz == 1", [("call has no field zzz", f"known: {', '.join(sorted(FIELDS))}")]),
        ("tool == 'x'", [("unknown variable tool", "the only variable is call")]),
        ("call.arguments.s.startswith('x')", [("unknown function startswith", "did you mean startsWith?")]),
        ("call['name'] == 'x'", [("call[...] can not be checked", "write call.<field>")]),
        ("call.name ==", [("is not CEL at column 13: mismatched input '<EOF>'", "see the CEL language definition")]),
        ("", [("is not CEL at column 1: mismatched input '<EOF>'", "see the CEL language definition")]),
        ("call.name", [("gives str", "write a condition: true or false")]),
        ("call.name > 3", [("compares values of different types", "convert with string(), int() or double()")]),
        ("call.name == '" + "x" * 2000 + "'", [("the expression has 2015 characters", "at most 2000 are read")]),
        (
            "call.arguments.a.all(x, x.all(y, y.all(z, z > 0)))",
            [("more than 2 loops (all, exists, map, filter)", "write it with fewer")],
        ),
        ("call.nme == zzz", [("unknown variable zzz", "the only variable is call"), ("call has no field nme", "did you mean name?")]),
    ],
)  # fmt: skip
def test_what_can_not_be_meant_is_refused(text: str, mistakes: list[tuple[str, str]]) -> None:
    assert expression_mistakes(text) == mistakes
    with pytest.raises(ExpressionError):
        compile_when(text)


@pytest.mark.parametrize(
    "text", ["call.name == 'call.nothing'", 'call.name == "call.nothing"', "call.arguments.call.nothing == 1"]
)
def test_names_in_texts_and_arguments_are_not_fields(text: str) -> None:
    assert expression_mistakes(text) == []


@pytest.mark.parametrize(
    "text", ["call.arguments.limit > 3", "call.arguments.sql > 3", "call.arguments.rows.contains('x')"]
)
def test_what_can_not_be_decided_is_false_and_counted(text: str) -> None:
    before = undecided(text)
    assert not holds(text)
    assert undecided(text) == before + 1


def test_a_loop_in_a_loop_over_too_much_is_not_run() -> None:
    nested = "call.arguments.a.exists(x, call.arguments.a.exists(y, x + y == 2))"
    assert holds(nested, args={"a": [1] * 500})
    before = undecided(nested)
    assert not holds(nested, args={"a": [1] * 501})
    assert not holds(nested, args={"b": {"c": [1] * 501}})
    assert undecided(nested) == before + 2
    assert holds("call.arguments.a.exists(x, x == 1)", args={"a": [1] * 501})


def test_a_call_without_readable_arguments_has_none() -> None:
    assert not holds("has(call.arguments.sql)", fidelity="absent")
    assert not holds("call.arguments.sql == 'x'", args="{broken")


def test_an_expression_sees_exactly_the_fields_that_are_checked() -> None:
    seen = view(STEP, catalogue=CATALOGUE)
    fields = call_fields(seen.calls[0], seen)
    assert list(fields) == list(FIELDS)
    assert {k: type(v) for k, v in fields.items()} == {k: type(v) for k, v in FIELDS.items()}


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), values), st.sampled_from([
    "call.arguments.a > 3", "call.arguments.a == call.arguments.b", "call.arguments.a.exists(x, x == 1)",
    "size(call.arguments.c) > 1", "call.arguments.b.matches('(a+)+$')", "call.arguments.a + call.arguments.b > 0",
]))  # fmt: skip
def test_no_argument_makes_a_condition_raise(arguments: dict[str, Any], text: str) -> None:
    assert holds(text, args=arguments) in (True, False)


@given(st.text(max_size=60))
def test_no_text_makes_the_check_of_expressions_raise(text: str) -> None:
    mistakes = expression_mistakes(text)
    assert all(wrong and do for wrong, do in mistakes)
