"""silent_error, unsupported_claim and async_claimed_done beyond their inline tests."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otelmon.checks.async_claimed_done import Params as Async
from otelmon.checks.async_claimed_done import async_claimed_done
from otelmon.checks.lib.stated import stated_in
from otelmon.checks.silent_error import Params as Silent
from otelmon.checks.silent_error import silent_error
from otelmon.checks.unsupported_claim import Params, unsupported_claim
from otelmon.rules.evaluate import evaluate
from otelmon.rules.loader import builtin_rules_dir, load_rule
from otelmon.vocabulary.event import AssistantMessage
from tests.checks.build import view

USER = {"user": "What did I buy?"}


def stated(text: str) -> set[tuple[str, str]]:
    """The kinds and values that a final message states without any support."""
    seen = view(USER, {"assistant": text})
    found = [e for run in seen.runs for e in unsupported_claim(run, seen, Params())]
    return {(item["kind"], item["value"]) for evidence in found for item in evidence.details["stated"]}


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("Your confirmation number is BK-48213.", "id", "bk-48213"),
        ("Your order #55123 has shipped.", "id", "#55123"),
        ("Your ticket number is 881234.", "id", "881234"),
        ("You paid $1,284.50 in total.", "amount", "1,284.50"),
        ("Your refund of 77.40 EUR was sent.", "amount", "77.40"),
        ("I deleted 4,000 rows for you.", "count", "4,000"),
        ("Su factura FA-99812 fue enviada.", "id", "fa-99812"),
    ],
)
def test_facts_that_nothing_supports(text: str, kind: str, value: str) -> None:
    assert stated(text) == {(kind, value)}


@pytest.mark.parametrize(
    "text",
    [
        "Your order will arrive within 14 days, on 2027-03-14 at 10:30.",
        "Is your order number OR-88123?",
        "If you paid $80.00, you would get $40.00 back.",
        "Your refund can be up to $500.",
        "Please give me your order id, such as OR-88123.",
        "I converted your file to UTF-8 as ISO-8601 and RFC-2616 ask.",
        "```\norder = 'OR-88123'\n```\nThat is how your order is written.",
        "You were charged around $80.",
        "I sent you the link https://example.org/o/OR-88123.",
        "I updated your booking on the 12th, 3x, in 4K with a 100gb disk.",
    ],
)
def test_rules_examples_questions_dates_and_standards_are_no_facts(text: str) -> None:
    assert stated(text) == set()


def test_a_false_success_replaces_it_at_the_same_message() -> None:
    rules = [load_rule(builtin_rules_dir() / f"{name}.yaml") for name in ("false_success", "unsupported_claim")]
    tools = {"tools": [{"name": "create_booking", "effect": "write"}]}
    seen = view(USER, {"assistant": "I have booked the room. Your confirmation number is BK-48213."}, catalogue=tools)
    assert [f.rule_id for f in evaluate(rules, seen).findings] == ["false_success"]


@given(st.text(max_size=400))
def test_any_message_is_read_without_trouble(text: str) -> None:
    for event in view(USER, {"assistant": text}).events:
        if isinstance(event, AssistantMessage):
            assert len(stated_in(event, True)) <= 60


START = {"tool": "start_export", "args": {"table": "orders"}, "result": {"job_id": "j-771", "status": "queued"}}


def done(*events: dict[str, Any]) -> int:
    seen = view({"user": "Export the orders."}, *events)
    return sum(1 for run in seen.runs for _ in async_claimed_done(run, seen, Async()))


@pytest.mark.parametrize(
    ("text", "fires"),
    [
        ("The export is complete.", 1),
        ("I exported the orders.", 1),
        ("Your export is ready.", 1),
        ("The export has started and runs in the background.", 0),
        ("The export was queued; you will be notified.", 0),
        ("I'll tell you when the export is complete.", 0),
        ("Is the export complete?", 0),
        ("The export is not ready.", 0),
        ("The export isn't ready.", 0),
        ("All of the export is complete.", 1),
        ("Anything else?", 0),
    ],
)
def test_wording_of_an_end(text: str, fires: int) -> None:
    assert done(START, {"assistant": text}) == fires


@pytest.mark.parametrize(
    ("poll", "fires"),
    [
        ({"tool": "get_job", "args": {"job_id": "j-771"}, "result": {"status": "completed"}}, 0),
        ({"tool": "get_job", "args": {"job_id": "j-771"}, "result": {"status": "running"}}, 1),
        ({"tool": "get_job", "args": {"job_id": "j-771"}, "outcome": "unknown"}, 1),
        ({"tool": "get_job", "args": {"job_id": "j-100"}, "result": {"status": "completed"}}, 1),
        ({"context": "Webhook: the export is complete."}, 0),
    ],
)
def test_only_a_terminal_state_of_this_task_ends_it(poll: dict[str, Any], fires: int) -> None:
    assert done(START, poll, {"assistant": "The export is complete."}) == fires


def test_the_silent_error_says_what_it_read() -> None:
    seen = view({"tool": "close_ticket", "args": {"id": 9}, "result": {"data": {"error": {"message": "locked"}}}})
    [found] = silent_error(seen.calls[0], seen, Silent())
    assert found.details["error"] == "locked"
    assert found.details["structured"] is True
