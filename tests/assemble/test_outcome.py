"""What is known of a call's effect: signs, bodies, texts, HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otelmon.assemble.outcome import Verdict, derive_outcome, errors_in_body
from otelmon.assemble.timeline import build
from otelmon.vocabulary.reading import Approval, HttpFields, ToolFields
from tests.assemble.builders import Spans, calls


def verdict(result: Any = None, http: tuple[HttpFields, ...] = (), **fields: Any) -> Verdict:
    text = result if isinstance(result, str) or result is None else json.dumps(result)
    value = None if isinstance(result, str) else result
    return derive_outcome(ToolFields("t", "t", result=value, result_text=text, **fields), http)


ERROR = ("status_error",)

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


@pytest.mark.parametrize(
    "fields",
    [
        {"signals": (*ERROR, "timeout"), "error_type": "timeout"},
        {"signals": ERROR, "error_type": "ReadTimeout"},
        {"signals": ERROR, "error_message": "deadline exceeded"},
        {"signals": ("exception",), "error_type": "asyncio.exceptions.TimeoutError"},
        {"signals": ERROR, "error_type": "-32001"},
        {"signals": ERROR, "error_message": "MCP error -32001: Request timed out"},
        {"outcome_hint": "timeout_unknown"},
        {"outcome_hint": "cancelled_unknown"},
        {"signals": (*ERROR, "cancelled"), "error_type": "CancelledError"},
        {"signals": (*ERROR, "abandoned"), "error_message": "Abandoned"},
        {"signals": ERROR, "error_message": "connection reset by peer"},
        {"signals": ERROR, "error_message": "no response received"},
    ],
    ids=str,
)
def test_sent_and_nobody_knows(fields: dict[str, Any]) -> None:
    assert verdict(**fields).outcome == "unknown"


@pytest.mark.parametrize(
    "result",
    [
        "Tool 'track' timed out after 0.05 seconds.",
        "Error: request timed out",
        "TimeoutError: the API did not answer in 5 s",
        {"error": "timeout", "message": "upstream did not answer"},
        {"status": 504, "message": "Gateway Timeout"},
        {"status": 502, "error": "Bad Gateway"},
        {"error": {"code": 504, "message": "upstream"}},
    ],
    ids=str,
)
def test_results_that_say_timeout_are_unknown(result: Any) -> None:
    assert verdict(result).outcome == "unknown"


@pytest.mark.parametrize(
    "result", ["The match timed out in the second half.", {"note": "the session timed out"}], ids=str
)
def test_results_that_only_mention_a_timeout_are_not(result: Any) -> None:
    assert verdict(result).outcome == "succeeded"


@pytest.mark.parametrize(
    "fields",
    [
        {"signals": ERROR, "error_type": "ConnectionRefusedError"},
        {"signals": ERROR, "error_message": "connect ECONNREFUSED 127.0.0.1:80"},
        {"outcome_hint": "not_started"},
        {"signals": ERROR, "error_message": "getaddrinfo ENOTFOUND api.example"},
        {"signals": ERROR, "error_type": "ConnectTimeout", "error_message": "connection timeout"},
    ],
    ids=str,
)
def test_what_never_began_is_failed_for_certain(fields: dict[str, Any]) -> None:
    found = verdict(**fields)
    assert (found.outcome, found.source) == ("failed", "not_started")


@pytest.mark.parametrize("signal", ["status_error", "exception", "is_error", "error_type"])
def test_every_sign_of_failure_counts_alone(signal: str) -> None:
    assert verdict(signals=(signal,)).outcome == "failed"


def test_a_failure_has_a_type_and_a_message() -> None:
    found = verdict(signals=ERROR, error_type="ValueError", error_message="no such order")
    assert found == Verdict("failed", "status_error", "ValueError", "no such order")


@pytest.mark.parametrize(
    "result",
    [
        {"error": "duplicate request"},
        {"status": 409, "message": "Conflict"},
        {"error": "payment is already being processed"},
        "Error: order already exists",
    ],
    ids=str,
)
def test_a_refused_duplicate_is_a_conflict(result: Any) -> None:
    found = verdict(result)
    assert (found.outcome, found.error_type) == ("failed", "conflict")


@pytest.mark.parametrize(
    "fields",
    [
        {"outcome_hint": "denied"},
        {"signals": ("denied",)},
        {"approval": Approval("rejected")},
        {"approval": Approval("rejected"), "signals": ERROR, "error_message": "not allowed"},
        {"signals": ERROR, "error_message": "The user rejected this tool call."},
        {"signals": ERROR, "error_message": "blocked by policy no-writes"},
    ],
    ids=str,
)
def test_refused_by_a_person_or_a_policy(fields: dict[str, Any]) -> None:
    assert verdict(**fields).outcome == "denied"


def test_a_denial_given_as_text_is_a_denial() -> None:
    assert verdict("Permission denied: the operator must approve this.").outcome == "denied"
    assert verdict("The user declined the request.").outcome == "denied"


def test_an_operating_systems_refusal_is_a_failure() -> None:
    fields: dict[str, Any] = {
        "signals": ("exception", "denied"),
        "error_type": "PermissionError",
        "error_message": "[Errno 13] denied",
    }
    assert verdict(**fields).outcome == "failed"


def test_rejected_and_executed_all_the_same_is_an_execution() -> None:
    span = Spans()
    span.tool("close", 0, 1, account="A", result={"closed": True}, fields={"approval": Approval("rejected", "user")})
    [only] = calls(build("c", span.readings))
    assert only.outcome == "succeeded"
    assert only.approval == Approval("rejected", "user")


@pytest.mark.parametrize(
    "result",
    [
        {"task_id": "t-1", "status": "working"},
        {"jobId": "7", "state": "queued"},
        {"status": "in_progress", "operation_id": "op"},
        {"task": {"taskId": "t-1", "status": "submitted"}},
    ],
    ids=json.dumps,
)
def test_a_handle_to_work_under_way_is_pending(result: Any) -> None:
    assert verdict(result).outcome == "pending"


@pytest.mark.parametrize(
    "result",
    [{"task_id": "t-1", "status": "completed"}, {"order_id": "A", "status": "pending"}, {"status": "running"}],
    ids=json.dumps,
)
def test_a_status_without_a_handle_or_an_end_is_not_pending(result: Any) -> None:
    assert verdict(result).outcome == "succeeded"


def test_waiting_for_approval_is_pending() -> None:
    assert verdict(signals=("pending",)).outcome == "pending"


def test_http_under_the_call_decides_when_the_span_says_nothing_else() -> None:
    assert verdict(http=(HttpFields("POST", status_code=404),)).outcome == "failed"
    assert verdict(http=(HttpFields("POST", status_code=504),), signals=ERROR).outcome == "unknown"
    assert (
        verdict(http=(HttpFields("POST", status_code=500), HttpFields("POST", status_code=200))).outcome == "succeeded"
    )
    assert verdict({"found": False}, http=(HttpFields("GET", status_code=404),)).outcome == "succeeded"


@pytest.mark.parametrize(
    ("hint", "outcome"),
    [
        ("completed", "succeeded"),
        ("failed", "failed"),
        ("not_started", "failed"),
        ("denied", "denied"),
        ("timeout_unknown", "unknown"),
        ("cancelled_unknown", "unknown"),
        ("pending", "pending"),
    ],
)
def test_the_shims_words(hint: str, outcome: str) -> None:
    assert verdict(outcome_hint=hint).outcome == outcome


def test_an_honest_word_does_not_hide_an_error_in_the_body() -> None:
    assert verdict({"ok": False}, outcome_hint="completed").outcome == "failed"
