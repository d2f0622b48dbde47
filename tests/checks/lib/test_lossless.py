"""What can be converted without loss, and what can not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otelmon.checks.lib.lossless import lossless

INTEGER: dict[str, Any] = {"type": "integer"}
MAYBE = {"anyOf": [INTEGER, {"type": "null"}]}
ITEM = {"$ref": "#/$defs/Item"}
ORDER = {
    "type": "object",
    "properties": {"items": {"type": "array", "items": ITEM}, "zip": {"type": "string"}, "note": {}},
    "$defs": {"Item": {"type": "object", "properties": {"count": INTEGER}}},
}


@pytest.mark.parametrize(
    ("value", "schema", "converted"),
    [
        ("5", INTEGER, 5),
        ("5", MAYBE, 5),
        ("null", MAYBE, None),
        ("5", {"type": ["integer", "null"]}, 5),
        ("True", {"type": "boolean"}, True),
        ('["a"]', {"type": "array"}, ["a"]),
        ('{"a": 1}', {"type": "object"}, {"a": 1}),
        (5, {"type": "string"}, "5"),
        (
            {"items": [{"count": "2"}], "zip": 10115, "note": "5"},
            ORDER,
            {"items": [{"count": 2}], "zip": "10115", "note": "5"},
        ),
        ({"items": '[{"count": 2}]'}, ORDER, {"items": [{"count": 2}]}),
    ],
)
def test_what_is_converted(value: Any, schema: Any, converted: Any) -> None:
    assert lossless(value, schema) == converted


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ("five", INTEGER), ("a", {"type": "array"}), ("5", {"type": ["integer", "string"]}), ('"5"', INTEGER),
        (True, {"type": "string"}), ("5", {"anyOf": [INTEGER, {"$ref": "https://example.com/x"}]}), ("9" * 41, INTEGER),
        ("5", {"$ref": "#/$defs/Gone"}), ("5", True), ("5", None),
    ],
)  # fmt: skip
def test_what_stays(value: Any, schema: Any) -> None:
    assert lossless(value, schema) == value


def test_a_reference_in_a_circle_ends() -> None:
    assert lossless({"a": "5"}, {"$ref": "#"}) == {"a": "5"}
    looped: dict[str, Any] = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}
    assert lossless("5", looped) == "5"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda s: st.lists(s) | st.dictionaries(st.text(), s)
    )
)
def test_a_schema_that_asks_for_nothing_changes_nothing(value: Any) -> None:
    assert lossless(value, {}) == value
