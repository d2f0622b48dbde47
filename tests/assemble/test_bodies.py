"""Errors in the payload of a call that looks successful, and payloads that only tell about errors."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otelmon.assemble.outcome import errors_in_body
from tests.assemble.test_outcome import verdict

BODIES_WITH_ERRORS: list[Any] = [
    {"ok": False},
    {"success": False, "message": "no such order"},
    {"status": "error", "message": "no such order"},
    {"status": "failed", "reason": "card expired"},
    {"error": "no such order"},
    {"error": {"code": "not_found", "message": "no such order"}},
    {"errors": [{"message": "amount must be positive"}]},
    {"errors": ["amount must be positive"]},
    {"isError": True, "content": [{"type": "text", "text": "no such order"}]},
    {"status": 404, "message": "not found"},
    {"statusCode": 422, "error": "Unprocessable Entity"},
    {"status_code": 500},
    {"code": 404, "message": "not found"},
    {"result": {"success": False, "error": "no such order"}},
    {"errors": [{"message": "bad date"}], "meta": {"trace": "t-1"}, "status": 400},
    {"data": None, "errors": [{"message": "field x unknown", "path": ["x"]}]},
    [{"type": "text", "text": "Error: no such order"}],
]

TEXTS_WITH_ERRORS = [
    "Error: no such order",
    "error: user not found",
    "ERROR - payment rejected: card expired",
    "Tool error: no such order",
    "Failed to cancel the order",
    "ValueError: amount must be positive",
    "requests.exceptions.ConnectionError: could not connect",
    "404 Not Found: no such order",
    "HTTP 500 Internal Server Error",
    "An error occurred while running the tool. Please try again. Error: boom",
    "Traceback (most recent call last):\n  File \"x.py\", line 1\nKeyError: 'a'",
    "Error executing tool 'cancel' with arguments {}: boom",
]

BODIES_WITHOUT: list[Any] = [
    {"ok": True},
    {"failed": 0},
    {"failed": 3, "passed": 9},
    {"errors": []},
    {"error": None},
    {"error": ""},
    {"error": False},
    {"error": "none"},
    {"error_rate": 0.1},
    {"errors": 0, "warnings": 2},
    {"error_count": 4},
    {"success": True, "error": "previous error was cleared"},
    {"status": "ok"},
    {"status": 200, "error": None},
    {"status": 201},
    {"order_id": "A-1", "status": "failed", "total": 5},
    {"id": 7, "status": "failed", "kind": "incident"},
    {"rows": [{"error": "disk full", "at": "10:00"}, {"error": "disk full", "at": "11:00"}]},
    {"created": 9, "errors": [{"row": 3, "message": "bad date"}]},
    {"data": {"order": {"id": 1}}, "errors": [{"message": "field x unknown"}]},
    {"results": [{"id": 1}], "errors": ["2 was skipped"]},
    {"logs": "Error: disk full\nError: disk full"},
    {"total": 404, "page": 1},
    {"code": 450, "name": "beam", "unit": "mm", "price": 3},
    [],
    [{"error": "disk full"}, {"error": "disk full"}],
    [{"name": "error"}],
    None,
    5,
]

TEXTS_WITHOUT = [
    "ok",
    "",
    "No errors found.",
    "0 errors, 0 warnings",
    "The error rate fell to 0.1 %.",
    "Errors in the log were discussed; the team found that a broken pump caused them.",
    "450 grams of flour",
    "404 items in stock",
    "Logins that failed: 0",
    "Error handling in Python. " + "Exceptions are objects that are raised. " * 80,
    "Terrorism is a word with error in it: none",
]


@pytest.mark.parametrize("body", BODIES_WITH_ERRORS, ids=json.dumps)
def test_errors_in_bodies_are_found(body: Any) -> None:
    assert errors_in_body(body, json.dumps(body)) is not None
    assert verdict(body).outcome == "failed"
    assert verdict(body).source == "result"


@pytest.mark.parametrize("text", TEXTS_WITH_ERRORS)
def test_texts_that_are_errors_are_found(text: str) -> None:
    assert errors_in_body(None, text) is not None
    assert verdict(text).outcome == "failed"


@pytest.mark.parametrize("body", BODIES_WITHOUT, ids=json.dumps)
def test_bodies_that_only_tell_about_errors_are_none(body: Any) -> None:
    assert errors_in_body(body, json.dumps(body)) is None
    assert verdict(body).outcome == "succeeded"


@pytest.mark.parametrize("text", TEXTS_WITHOUT)
def test_texts_that_only_tell_about_errors_are_none(text: str) -> None:
    assert errors_in_body(None, text) is None
    assert verdict(text).outcome == "succeeded"


def test_what_a_body_says_of_its_error_is_kept() -> None:
    found = errors_in_body({"error": {"code": "not_found", "message": "no such order"}}, None)
    assert found is not None
    assert (found.path, found.code, found.message) == ("error", "not_found", "no such order")
    inner = errors_in_body({"result": {"ok": False, "status": 404}}, None)
    assert inner is not None
    assert (inner.path, inner.status) == ("result.ok", 404)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["error", "status", "ok", "a"]), inner),
    max_leaves=20,
)


@given(json_values)
@settings(max_examples=200)
def test_any_body_is_read_without_trouble(value: Any) -> None:
    errors_in_body(value, None)


def test_a_deep_and_wide_body_is_read_in_bounds() -> None:
    deep: Any = {"ok": False}
    for _ in range(10_000):
        deep = {"result": deep}
    assert errors_in_body(deep, None) is None
    wide = {f"k{n}": n for n in range(100_000)} | {"ok": False}
    assert errors_in_body(wide, None) is None
