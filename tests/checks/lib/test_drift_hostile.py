"""Whatever a server says is a schema: nothing raises, nothing takes long, and the answer is always the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otelmon.checks.lib.drift import compare, version_hash
from otelmon.checks.lib.drift_schema import HANDLED
from otelmon.checks.lib.scopes import broad_scopes
from otelmon.vocabulary.catalogue import Tool

_KEYWORDS = st.sampled_from([*sorted(HANDLED), "const", "title", "examples", "$defs", "x-note"])
_SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=6)
    | st.sampled_from(["#", "#/$defs/a", "#/properties/a", "string", "object", "null", "*", "\ud800"])
)  # fmt: skip
_ANY = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYWORDS | st.sampled_from("ab"), inner, max_size=5),
    max_leaves=30,
)
_SCHEMA = st.dictionaries(_KEYWORDS, _ANY, max_size=6)


@given(_SCHEMA, _SCHEMA)
@settings(max_examples=400, deadline=None)
def test_any_object_is_compared(one: dict[str, Any], other: dict[str, Any]) -> None:
    before, after = Tool(name="run_sql", input_schema=one), Tool(name="run_sql", input_schema=other)
    found = compare(before, after)
    assert found.severity in ("info", "low", "medium", "high")
    assert (found.words(), len(found.facts())) == (compare(before, after).words(), min(20, len(found.changes)))
    assert not compare(before, before)
    assert bool(found) == (version_hash(before) != version_hash(after))
    broad_scopes(before)


@pytest.mark.parametrize("key", ["anyOf", "oneOf", "enum", "required"])
def test_what_is_said_twice_is_said_once(key: str) -> None:
    part: Any = {"minimum": 3} if key.endswith("Of") else "a"
    once, twice = (Tool(name="a", input_schema={"contains": [], key: [part] * times}) for times in (1, 2))
    assert not compare(once, twice)
    assert version_hash(once) == version_hash(twice)


@pytest.mark.parametrize("key", ["x-note", "default", "const", "$up"])
def test_false_is_not_zero(key: str) -> None:
    one, other = (Tool(name="a", input_schema={"properties": {"a": {key: value}}}) for value in (False, 0))
    assert compare(one, other)
    assert version_hash(one) != version_hash(other)


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


@pytest.mark.parametrize("depth", [10, 100, 900, 5_000, 100_000])
def test_depth_is_bounded(depth: int) -> None:
    one, other = Tool(name="a", input_schema=nested(depth)), Tool(name="a", input_schema=nested(depth + 1))
    told = compare(one, other)
    assert (told.worst == "breaking") or depth >= 900
    assert bool(told) == (version_hash(one) != version_hash(other))
    assert not compare(one, one)
    assert broad_scopes(one) == () or depth <= 10
    assert compare(one, Tool(name="a", input_schema={})).worst == "breaking"


def test_a_reference_to_itself() -> None:
    one = Tool(name="a", input_schema={"properties": {"a": {"$ref": "#"}}})
    other = Tool(name="a", input_schema={"properties": {"a": {"$ref": "#/properties/a"}}})
    assert bool(compare(one, other)) == (version_hash(one) != version_hash(other))
