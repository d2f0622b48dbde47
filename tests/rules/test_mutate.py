"""Mutation: a parameter that no test holds in place is found, one that is held is not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from otelmon.checks.view import View
from otelmon.rules.mutate import mutants, survivors
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import Evidence
from tests.rules.helpers import Limit, case, every_call, rule, too_dear


def pay(amount: int) -> dict[str, Any]:
    return {"tool": "pay", "args": {"amount": amount}}


BOUNDARY = (case([pay(101)], [1]), case([pay(100)], []))


def test_a_dead_parameter_is_found_and_named() -> None:
    found = survivors(rule(too_dear, tests=BOUNDARY))
    assert {m.parameter for m in found} == {"unused"}
    assert [str(m) for m in found] == ["unused: 7 -> 14", "unused: 7 -> 3", "unused: 7 -> 8", "unused: 7 -> 6"]


def test_a_threshold_without_a_boundary_test_is_found() -> None:
    loose = (case([pay(1000)], [1]), case([pay(1)], []))
    found = [m.change for m in survivors(rule(too_dear, tests=loose)) if m.parameter != "unused"]
    assert found == [
        "limit: 100 -> 200",
        "limit: 100 -> 50",
        "limit: 100 -> 101",
        "limit: 100 -> 99",
        "strict: true -> false",
    ]


def test_a_test_with_its_own_parameter_does_not_hold_that_of_the_rule() -> None:
    own = tuple(msgspec.structs.replace(c, params={"limit": 100}) for c in BOUNDARY)
    assert "limit: 100 -> 200" in [m.change for m in survivors(rule(too_dear, tests=own))]


class Kinds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    word: Literal["one", "two"] | None = "one"
    text: str = "abc"
    empty: str = ""
    ratio: float = 0.5
    one: int = 1
    names: tuple[str, ...] = ("a",)
    nothing: tuple[str, ...] = ()
    table: dict[str, int] = msgspec.field(default_factory=lambda: {"a": 1})
    off: bool = False
    missing: int | None = None


def test_every_kind_of_parameter_is_changed() -> None:
    changes = [m.change for m in mutants(rule(every_call, params=Kinds()))]
    assert changes == [
        'word: "one" -> "two"',
        'text: "abc" -> "abc-"',
        'text: "abc" -> ""',
        'empty: "" -> "x"',
        "ratio: 0.5 -> 1.0",
        "ratio: 0.5 -> 0.25",
        "ratio: 0.5 -> 1.5",
        "ratio: 0.5 -> -0.5",
        "one: 1 -> 2",
        "one: 1 -> 0",
        'names: ["a"] -> []',
        'table: {"a": 1} -> {}',
        "off: false -> true",
    ]


class Bounded(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    count: int = 1

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError("count is too small")


def test_a_value_that_the_type_refuses_is_no_mutant() -> None:
    assert [m.change for m in mutants(rule(every_call, params=Bounded()))] == ["count: 1 -> 2"]


def test_an_error_counts_as_noticed() -> None:
    def breaks(call: ToolCall, view: View, params: Limit) -> Iterator[Evidence]:
        if params.limit != 100:
            raise ZeroDivisionError
        yield from ()

    found = survivors(rule(breaks, tests=(case([pay(1)], []),)))
    assert "limit" not in {m.parameter for m in found}
