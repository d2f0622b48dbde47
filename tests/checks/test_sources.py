"""Where a value must come from: the language of places, and what wrong_source and provenance say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from otelmon.checks.lib.provenance import lineage
from otelmon.checks.lib.sources import Term, comes_from, mistakes, parse, values_at
from otelmon.checks.wrong_source import Params, wrong_source
from otelmon.rules.loader import load_rule, with_params
from otelmon.vocabulary.errors import UserError
from tests.checks.build import view

PACK = Path(__file__).parents[2] / "rules" / "examples" / "payments"
ORDER = {"order": {"lines": [{"sku": "A-1", "net": 4}, {"sku": "B-2", "net": 6.5}], "note": None}, "total": "10,50"}


def test_places_are_fields_of_results_and_kinds_of_text() -> None:
    assert parse('get_order.items[].amount | user|"shop.find".*.id') == (
        Term(tool="get_order", path=("items[]", "amount")),
        Term(kind="user"),
        Term(tool="shop.find", path=("*", "id")),
    )
    assert [str(term) for term in parse("get_*.a[].b")] == ["get_*.a[].b"]
    with pytest.raises(ValueError, match="no source"):
        parse("anything")
    assert mistakes("a.b") == []


@pytest.mark.parametrize(
    ("path", "values"),
    [
        (("order", "lines[]", "net"), [4, 6.5]),
        (("order", "lines", "sku"), ["A-1", "B-2"]),
        (("*", "lines[]", "sku"), ["A-1", "B-2"]),
        (("total",), ["10,50"]),
        (("order",), []),
        (("order", "note"), []),
        (("lines", "net"), []),
    ],
)
def test_values_are_found_by_their_path(path: tuple[str, ...], values: list[Any]) -> None:
    assert list(values_at(ORDER, path)) == values
    assert list(values_at([ORDER, ORDER], path)) == values * 2


@pytest.mark.parametrize(
    ("name", "value", "place", "term"),
    [
        ("amount", "10.50", "get_order.total", "get_order.total"),
        ("amount", 10.5, "get_order.order.lines[].net", "get_order.order.lines[].net"),  # a sum of two
        ("amount_cents", 1050, "get_order.total", "get_order.total"),
        ("amount", 1050, "get_order.total", None),
        ("sku", "b2", "get_order.order.lines[].sku", "get_order.order.lines[].sku"),
        ("amount", 99, "user", "user"),
        ("amount", 98, "user", None),
        ("amount", 98, "system", "system"),
        ("amount", 97, "result", "result"),
        ("amount", 97, "get_order.total", None),
        ("customer", "u-7", "run", "run"),
        ("amount", 55, "user", None),  # said after the call
        ("amount", 55, "get_order.total | user | system", None),
    ],
)
def test_a_value_comes_from_the_place_that_held_it(name: str, value: Any, place: str, term: str | None) -> None:
    seen = view(
        {"system": "At most 98."},
        {"user": "I paid 99.", "principal": "u-7"},
        {"tool": "get_order", "args": {}, "result": ORDER},
        {"tool": "get_fee", "args": {}, "result": {"fee": 97}},
        {"tool": "pay", "args": {name: value}},
        {"user": "It was 55."},
        {"tool": "get_order", "args": {}, "result": {"total": 55}},
    )
    call = seen.calls[2]
    found = comes_from(lineage(call, seen)[0], call, parse(place), seen)
    assert (str(found) if found else None) == term


def test_the_finding_says_what_was_there_and_where_the_value_came_from() -> None:
    tools = [{"name": "refund", "effect": "destructive", "sources": {"amount": "get_order.total"}}]
    seen = view(
        {"user": "Refund me 50."},
        {"tool": "get_order", "args": {}, "result": {"total": 12.5}},
        {"tool": "get_order", "args": {}, "result": {"total": 30}},
        {"tool": "refund", "args": {"amount": 50}},
        catalogue={"tools": tools, "complete": False},
    )
    (found,) = wrong_source(seen.calls[2], seen, Params())
    assert found.summary == (
        "refund: amount=50 must come from get_order.total (there: 30, 12.5); it came from the user"
    )
    assert [item["value"] for item in found.details["expected"]] == [30, 12.5]
    assert found.details["argument"] == "amount"


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"from": "usr"}, "did you mean user"),
        ({"argument": "items[0].sku"}, "is no path"),
        ({"argument": ""}, "is no path"),
        ({"unless": "argument.sourc == 'user'"}, "argument has no field sourc"),
        ({"unless": "result == 1"}, "unknown variable result"),
        ({"calls": {"when": "call.amount"}}, "call has no field amount"),
    ],
)
def test_mistakes_of_a_rule_are_told(params: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        with_params(load_rule(PACK / "payments_refund_source.yaml"), params)
