"""Look-ups by value: which part of a condition is used, and that using it changes no answer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otelmon.checks.lib.bindings import Binding, Place, bind
from otelmon.checks.lib.conditions import compile_value
from otelmon.checks.lib.equalities import equality_in
from otelmon.checks.lib.expressions import call_fields
from tests.rules.helpers import view


@pytest.mark.parametrize(
    ("condition", "used"),
    [
        ("result.id == call.arguments.id", ("result", "id", None, ("call", "arguments", "id"))),
        ("result.open && arguments.user == order.user", ("arguments", "user", None, ("order", "user"))),
        ("has(call.arguments.id) && result.kind == 'a && b'", None),
        ("has(call.arguments.id) && result.kind == 'ab'", ("result", "kind", "ab", ())),
    ],
)
def test_the_part_that_must_hold(condition: str, used: tuple[Any, ...] | None) -> None:
    found = equality_in(condition)
    assert (found and (found.side, found.field, found.literal, found.path)) == used


@pytest.mark.parametrize(
    "condition",
    [
        "result.id == call.arguments.id || result.open",
        "result.open ? result.id == call.arguments.id : true",
        "!(result.open && result.id == call.arguments.id && result.open)",
        "result.items.exists(i, result.open && result.id == call.arguments.id && i == 1)",
        "result.id != call.arguments.id",
        "result.a.b == call.arguments.id",
    ],
)
def test_what_need_not_hold_is_not_used(condition: str) -> None:
    assert equality_in(condition) is None


VALUES = st.one_of(st.integers(0, 2), st.booleans(), st.sampled_from(["0", "1", "a", 1.0, None, [1], {"a": 1}]))


@given(st.lists(VALUES, max_size=6), VALUES)
def test_looking_up_by_value_finds_what_looking_at_all_finds(held: list[Any], wanted: Any) -> None:
    where = "result.id == call.arguments.id"
    reads = [{"tool": "get", "args": {"n": n}, "result": {"id": value, "n": n}} for n, value in enumerate(held)]
    seen = view({"user": "hi"}, *reads, {"tool": "put", "args": {"id": wanted}, "result": {"ok": True}})
    put = seen.calls[-1]
    found = bind({"all": Binding(tools=("get",), where=where, pick="all")}, Place(put, seen)).get("all", [])
    asked = compile_value(where)
    given_call = {"call": call_fields(put, seen)}
    expected = [c.result["n"] for c in seen.calls[:-1] if asked.holds({**given_call, "result": c.result})]
    assert [result["n"] for result in found] == expected
