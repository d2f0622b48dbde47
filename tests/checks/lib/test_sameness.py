"""When two calls are one effect."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otelmon.checks.lib import sameness
from otelmon.checks.lib.sameness import business_arguments, comparable, idempotency_key_of
from otelmon.vocabulary.canonical import canonical
from otelmon.vocabulary.catalogue import IdempotencyKey, Tool
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.reading import HttpFields
from tests.checks.build import call

AMOUNT = Tool(
    name="pay", input_schema={"type": "object", "properties": {"amount": {"type": "number"}, "n": {"type": "string"}}}
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def effect_key(made: ToolCall, tool: Tool | None) -> str:
    return sameness.effect_key(made, business_arguments(made, tool))


def key(arguments: Any, tool: Tool | None = None, **more: Any) -> str:
    return effect_key(call("pay", arguments, **more), tool)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"amount": 18.5}, {"amount": 18.50}),
        ({"amount": 18.0}, {"amount": 18}),
        ({"amount": "18.50"}, {"amount": 18.5}),
        ({"amount": "7"}, {"amount": 7}),
        ({"a": 1, "b": None}, {"a": 1}),
        ({"a": 1, "request_id": "x"}, {"a": 1, "requestId": "y"}),
        ({"a": 1, "idempotency_key": "x"}, {"a": 1}),
        ({"a": 1, "reasoning": "because"}, {"a": 1, "reasoning": "I think"}),
        ({"a": {"x": 1.0, "y": None}}, {"a": {"x": 1}}),
    ],
)
def test_what_does_not_matter(one: Any, other: Any) -> None:
    assert key(one, AMOUNT) == key(other, AMOUNT)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"amount": 18.5}, {"amount": 18.51}),
        ({"n": "7"}, {"n": 7}),
        ({"to": "a"}, {"to": "b"}),
        ({"at": "10:00"}, {"at": "11:00"}),
        ({"timestamp": 1}, {"timestamp": 2}),
        ({"a": [1, 2]}, {"a": [2, 1]}),
        ({"a": True}, {"a": 1}),
    ],
)
def test_what_does(one: Any, other: Any) -> None:
    assert key(one, AMOUNT) != key(other, AMOUNT)


def test_scope_and_tool_are_part_of_the_effect() -> None:
    same = key({"a": 1})
    assert same != key({"a": 1}, environment="prod")
    assert same != key({"a": 1}, service_namespace="shop")
    assert same != key({"a": 1}, server="billing")
    assert same != effect_key(call("refund", {"a": 1}), None)
    assert same == key({"a": 1}, host="other", tool_call_id="other")


def test_the_catalogue_names_what_counts() -> None:
    identity = Tool(name="pay", identity=("order",))
    assert key({"order": 1, "note": "x"}, identity) == key({"order": 1, "note": "y"}, identity)
    volatile = Tool(name="pay", volatile=("client_clock",), idempotency_key=IdempotencyKey(argument="slip"))
    assert key({"order": 1, "client_clock": 5, "slip": "a"}, volatile) == key({"order": 1}, volatile)
    assert business_arguments(call("pay", {"order": 1, "slip": "a"}), volatile) == {"order": 1}


def test_arguments_that_can_not_be_compared_are_never_equal() -> None:
    for fidelity in ("truncated", "absent"):
        one = call("pay", {"a": 1}, arguments_fidelity=fidelity, key="t:1")
        two = call("pay", {"a": 1}, arguments_fidelity=fidelity, key="t:2")
        assert effect_key(one, None) != effect_key(two, None)
    masked = call("pay", {"a": {"b": ["[REDACTED]"]}}, arguments_fidelity="redacted")
    assert not comparable(masked)
    assert comparable(call("pay", {"a": "tok_81aa"}, arguments_fidelity="redacted"))


def test_hashed_and_plain_text_arguments_are_compared_as_they_are() -> None:
    hashed = {"arguments": None, "arguments_fidelity": "hashed"}
    assert key(None, arguments_fidelity="hashed", arguments_hash="x") == key(
        None, arguments_fidelity="hashed", arguments_hash="x"
    )
    assert key(None, arguments_fidelity="hashed", arguments_hash="x") != key(
        None, arguments_fidelity="hashed", arguments_hash="y"
    )
    assert not comparable(call("pay", **hashed))
    assert key("pay 5 to kim") == key("pay 5 to kim") != key("pay 6 to kim")


@given(st.dictionaries(st.text(max_size=8), JSON, max_size=4))
def test_any_arguments_have_one_key(arguments: dict[str, Any]) -> None:
    shuffled = dict(reversed(list(arguments.items())))
    assert key(arguments) == key(shuffled)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)


@given(ANYTHING)
def test_the_quick_way_writes_the_same_canonical_bytes(value: Any) -> None:
    assert sameness._canonical(value) == canonical(value)


@pytest.mark.parametrize(
    ("more", "tool", "expected"),
    [
        ({"idempotency_key": "shim"}, None, "shim"),
        ({"arguments": {"idempotencyKey": "k"}}, None, "k"),
        ({"arguments": {"client_token": "k"}}, None, "k"),
        ({"arguments": {"slip": "k"}}, Tool(name="pay", idempotency_key=IdempotencyKey(argument="slip")), "k"),
        ({"arguments": {"slip": "k"}}, None, None),
        ({"arguments": {"idempotency_key": ""}}, None, None),
        ({"http": (HttpFields("POST", idempotency_key="h"), HttpFields("POST", idempotency_key="h"))}, None, "h"),
        ({"http": (HttpFields("POST", idempotency_key="h"), HttpFields("POST", idempotency_key="i"))}, None, None),
        ({"http": (HttpFields("POST", idempotency_key="h"), HttpFields("POST"))}, None, None),
    ],
)
def test_where_an_idempotency_key_can_be(more: dict[str, Any], tool: Tool | None, expected: str | None) -> None:
    assert idempotency_key_of(call("pay", **more), tool) == expected
