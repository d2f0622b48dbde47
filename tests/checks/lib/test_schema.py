"""JSON Schema behind guards."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otelmon.checks.lib.schema import MAX_VIOLATIONS, NotEvaluableError, violations
from otelmon.checks.lib.schema_cost import UNBOUNDED, looks_at_a_place

SCHEMA = {
    "type": "object",
    "properties": {"q": {"type": "string", "maxLength": 3}, "n": {"type": "integer"}, "kind": {"enum": ["a", "b"]}},
    "required": ["q"],
    "additionalProperties": False,
}


def test_every_violation_is_named_by_place_and_keyword_and_no_value_is_shown() -> None:
    found = violations(SCHEMA, {"q": "secret", "n": "topsecret", "kind": "hidden", "more": 1})
    assert {(v.path, v.keyword) for v in found} == {
        ("/q", "maxLength"), ("/n", "type"), ("/kind", "enum"), ("", "additionalProperties"),
    }  # fmt: skip
    assert not any(word in v.expected for v in found for word in ("secret", "hidden"))


def test_a_valid_value_has_none() -> None:
    assert violations(SCHEMA, {"q": "abc", "n": 1}) == []
    assert violations({}, {"anything": 1}) == []


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "https://example.com/s.json"},
        {"$ref": "file:///etc/passwd"},
        {"$ref": "#/nowhere"},
        {"type": "strin"},
        {"required": True},
        {"pattern": "(?=x)a"},
        {"description": "x" * 300_000},
    ],
)
def test_what_is_no_usable_schema_gives_no_verdict(schema: dict[str, Any]) -> None:
    with pytest.raises(NotEvaluableError):
        violations(schema, "text")


def _deep(levels: int) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for _ in range(levels):
        data = {"a": data}
    return data


def test_size_and_depth_are_bounded() -> None:
    for value in (_deep(100), {"a": "x" * 2_000_000}):
        with pytest.raises(NotEvaluableError):
            violations({}, value)
    with pytest.raises(NotEvaluableError):
        violations({"not": _deep(100)}, {})
    with pytest.raises(NotEvaluableError):
        violations({}, {"a": {1, 2}.__iter__()})
    many = violations({"items": {"type": "string"}}, list(range(1000)))
    assert len(many) == MAX_VIOLATIONS


def test_a_pattern_that_would_backtrack_is_linear_here() -> None:
    assert [v.keyword for v in violations({"pattern": "^(a+)+$"}, "a" * 50_000 + "!")] == ["pattern"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=10,
)
WORDS = st.sampled_from(["type", "properties", "items", "enum", "required", "$ref", "pattern", "anyOf", "not", "x"])
SCHEMAS = st.dictionaries(WORDS, JSON, max_size=4)


@given(SCHEMAS, JSON)
def test_any_schema_and_any_value_end_in_a_verdict_or_in_none(schema: dict[str, Any], value: Any) -> None:
    try:
        found = violations(schema, value)
    except NotEvaluableError:
        return
    assert len(found) <= MAX_VIOLATIONS


def doubling(steps: int) -> dict[str, Any]:
    """Every step asks the next one twice."""
    defs: dict[str, Any] = {f"s{n}": {"allOf": [{"$ref": f"#/$defs/s{n + 1}"}] * 2} for n in range(steps)}
    return {"$defs": {**defs, f"s{steps}": {"type": "object"}}, "$ref": "#/$defs/s0"}


TREE = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "left": {"$ref": "#/$defs/node"},
                "right": {"$ref": "#/$defs/node"},
                "v": {"type": "integer"},
            },
        }
    },
    "$ref": "#/$defs/node",
}
TWICE = {
    "$defs": {"node": {"properties": {"n": {"allOf": [{"$ref": "#/$defs/node"}] * 2}, "v": {"type": "integer"}}}},
    "$ref": "#/$defs/node",
}


def chain(name: str, levels: int) -> Any:
    value: Any = {"v": "text"}
    for _ in range(levels):
        value = {name: value}
    return value


def test_references_that_multiply_are_not_evaluable_and_few_of_them_are() -> None:
    assert [v.keyword for v in violations(doubling(3), 1)] != []
    with pytest.raises(NotEvaluableError):
        violations(doubling(40), 1)


def test_recursion_costs_by_how_deep_the_value_is() -> None:
    assert len(violations(TREE, chain("left", 60))) == 1
    assert len(violations(TWICE, chain("n", 2))) >= 1
    with pytest.raises(NotEvaluableError):
        violations(TWICE, chain("n", 60))


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"$dynamicRef": "#x", "allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"$dynamicAnchor": "x"}}},
    ],
)
def test_references_in_a_circle_or_beyond_our_sight_are_not_evaluable(schema: dict[str, Any]) -> None:
    with pytest.raises(NotEvaluableError):
        violations(schema, {"a": 1})


def test_a_bound_holds_for_what_a_validator_does() -> None:
    """One ask at a place costs one, and what is asked in place adds up."""
    assert looks_at_a_place({}, 5) == 1
    assert looks_at_a_place(doubling(4), 0) >= 2**4
    assert looks_at_a_place(doubling(40), 0) == UNBOUNDED
    assert looks_at_a_place(TREE, 64) < 500
