"""What is known of a call's effect: signs, bodies, texts, HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otelmon.assemble.outcome import Verdict, derive_outcome
from otelmon.assemble.timeline import build
from otelmon.vocabulary.reading import Approval, HttpFields, ToolFields
from tests.assemble.builders import Spans, calls


def verdict(result: Any = None, http: tuple[HttpFields, ...] = (), **fields: Any) -> Verdict:
    text = result if isinstance(result, str) or result is None else json.dumps(result)
    value = None if isinstance(result, str) else result
    return derive_outcome(ToolFields("t", "t", result=value, result_text=text, **fields), http)


ERROR = ("status_error",)


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
        {"signals": ERROR, "error_message": "the API did not answer in 0.5 s"},
        {"signals": (*ERROR, "no_reason")},
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


def test_a_failure_that_says_how_is_no_silent_one() -> None:
    assert verdict(signals=(*ERROR, "no_reason"), error_message="order is closed").outcome == "failed"
    assert verdict(signals=ERROR).outcome == "failed"


def test_a_call_without_result_and_without_trouble_rests_on_its_status() -> None:
    assert verdict() == Verdict("succeeded", "status")
    assert verdict("ok", result_fidelity="exact") == Verdict("succeeded", "return")
    assert verdict(result_fidelity="truncated") == Verdict("succeeded", "return")
