"""unknown_argument beyond its inline tests, and what a schema declares."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otelmon.checks.lib.declared import undeclared
from otelmon.checks.unknown_argument import Params, unknown_argument
from otelmon.checks.view import View
from otelmon.vocabulary.finding import Evidence
from tests.checks.build import view

TEXT = {"type": "string"}
JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=4),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
                    max_leaves=12)  # fmt: skip


def found(seen: View) -> list[Evidence]:
    return [e for call in seen.calls for e in unknown_argument(call, seen, Params(ignored=("dummy",)))]


def paths(schema: dict[str, Any], value: Any) -> list[str]:
    return [extra.path for extra in undeclared(schema, value)]


def test_the_evidence_names_paths_and_what_was_meant() -> None:
    schema = {"type": "object", "properties": {"q": TEXT, "max_results": TEXT}}
    seen = view({"tool": "find", "args": {"q": "a", "max_result": 3, "lang": "de"}, "result": []},
                catalogue={"tools": [{"name": "find", "inputSchema": schema}]})  # fmt: skip
    (evidence,) = found(seen)
    assert evidence.details["paths"] == ["max_result", "lang"]
    assert evidence.details["nearest"] == {"max_result": "max_results"}
    assert evidence.severity == "medium"


def test_a_name_that_was_given_as_well_was_not_meant() -> None:
    schema = {"type": "object", "properties": {"q": TEXT, "max_results": TEXT}}
    seen = view({"tool": "find", "args": {"max_results": 3, "max_result": 3}, "result": []},
                catalogue={"tools": [{"name": "find", "inputSchema": schema}]})  # fmt: skip
    assert [e.severity for e in found(seen)] == ["low"]


@pytest.mark.parametrize(("fidelity", "fires"), [("exact", True), ("redacted", True), ("truncated", False)])
def test_what_was_cut_may_show_half_a_name(fidelity: str, *, fires: bool) -> None:
    schema = {"type": "object", "properties": {"q": TEXT}}
    seen = view({"tool": "find", "args": {"lang": "de"}, "fidelity": fidelity},
                catalogue={"tools": [{"name": "find", "inputSchema": schema}]})  # fmt: skip
    assert bool(found(seen)) is fires


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"properties": {"a": TEXT}}, ["x"]),
        ({"properties": {"a": TEXT, "x": TEXT}}, []),
        ({}, []),
        ({"properties": {"a": TEXT}, "additionalProperties": False}, []),
        ({"properties": {"a": TEXT}, "additionalProperties": True}, []),
        ({"properties": {"a": TEXT}, "additionalProperties": {"type": "string"}}, []),
        ({"properties": {"a": TEXT}, "unevaluatedProperties": False}, []),
        ({"properties": {"a": TEXT}, "patternProperties": {"^x": TEXT}}, []),
        ({"anyOf": [{"properties": {"a": TEXT}}, {"type": "null"}]}, ["x"]),
        ({"oneOf": [{"properties": {"a": TEXT}}, {"properties": {"x": TEXT}}]}, []),
        ({"allOf": [{"properties": {"a": TEXT}}, {"$ref": "#/$defs/more"}], "$defs": {"more": {"properties": {"x": TEXT}}}}, []),
        ({"properties": {"a": TEXT}, "allOf": [{"$ref": "https://example.com/x.json"}]}, []),
        ({"properties": {"a": TEXT}, "allOf": [{"$ref": "#/$defs/none"}]}, []),
        ({"properties": {"a": TEXT}, "if": {"properties": {"a": TEXT}}, "then": {"properties": {"x": TEXT}}}, []),
    ],
)  # fmt: skip
def test_what_a_schema_declares(schema: dict[str, Any], expected: list[str]) -> None:
    assert paths(schema, {"a": "1", "x": "2"}) == expected


def test_objects_inside_are_looked_at_too() -> None:
    inner = {"type": "object", "properties": {"sku": TEXT}}
    schema = {
        "properties": {"one": inner, "many": {"type": "array", "items": {"$ref": "#/$defs/item"}}},
        "$defs": {"item": inner},
    }
    value = {"one": {"sku": 1, "colour": 2}, "many": [{"sku": 1}, {"colour": 2}]}
    assert paths(schema, value) == ["one.colour", "many[1].colour"]


def test_hostile_schemas_and_values_end() -> None:
    endless: dict[str, Any] = {"properties": {"a": {"$ref": "#"}}, "allOf": [{"$ref": "#"}]}
    assert paths(endless, {"x": 1}) == []
    deep: Any = {"x": 1}
    for _ in range(500):
        deep = {"a": deep}
    assert paths({"properties": {"a": {"$ref": "#"}}}, deep) == []
    assert len(paths({"properties": {"a": TEXT}}, {f"x{n}": n for n in range(5_000)})) == 50


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from(["properties", "items", "allOf", "anyOf", "$ref", "then"]), JSON), JSON)
def test_no_schema_and_no_value_is_too_strange(schema: dict[str, Any], value: Any) -> None:
    assert all(extra.name in extra.path for extra in undeclared(schema, value))
