"""Claims about time and sums in conversations: what time it was, whose record is meant, what followed."""

from __future__ import annotations

from typing import Any

import pytest

from otelmon.checks.lib.timespans import now_at
from otelmon.checks.view import View
from otelmon.checks.wrong_arithmetic import MAX_CLAIMING, Params, wrong_arithmetic
from otelmon.vocabulary.event import AssistantMessage
from otelmon.vocabulary.finding import Evidence
from tests.checks.build import view

CLAIM = {"assistant": "Your order A-1001 was placed within the last 24 hours."}
ORDER = {"tool": "get_order", "args": {"id": "A-1001"}, "result": {"id": "A-1001", "created_at": "2024-05-01T10:00:00"}}


def found(seen: View) -> list[Evidence]:
    return [evidence for run in seen.runs for evidence in wrong_arithmetic(run, seen, Params())]


def last(seen: View) -> AssistantMessage:
    return [event for event in seen.events if isinstance(event, AssistantMessage)][-1]


@pytest.mark.parametrize(
    ("event", "day"),
    [
        ({"system": "The current date is 2024-05-15."}, 15),
        ({"context": "Hoy es 2024-05-16."}, 16),
        ({"tool": "get_current_time", "args": {}, "result": "2024-05-17T10:00:00"}, 17),
        ({"tool": "get_current_time", "args": {"zone": "CET"}, "result": "2024-05-17T10:00:00"}, None),
        ({"tool": "get_order", "args": {}, "result": "2024-05-17T10:00:00"}, None),
        ({"user": "Today is 2024-05-18."}, None),
    ],
)
def test_who_says_what_time_it_is(event: dict[str, Any], day: int | None) -> None:
    seen = view(event, {"user": "When was it?"}, CLAIM)
    now = now_at(last(seen), seen)
    assert (now.first.day if now else None) == day


def test_the_message_says_it_itself() -> None:
    seen = view({"user": "When was it?"}, {"assistant": "It was placed on 2024-05-01; today is 2024-05-15."})
    now = now_at(last(seen), seen)
    assert now is not None
    assert now.first.day == 15


def test_the_record_that_the_message_names_is_looked_at() -> None:
    now = {"system": "The current time is 2024-05-15 12:00."}
    fresh = {**ORDER, "result": {"id": "A-1001", "created_at": "2024-05-15T10:00:00"}}
    other = {**ORDER, "result": {"id": "B-2002", "created_at": "2024-05-01T10:00:00"}, "args": {"id": "B-2002"}}
    assert found(view(now, {"user": "Can I cancel?"}, ORDER, CLAIM))
    assert not found(view(now, {"user": "Can I cancel?"}, fresh, CLAIM))
    assert not found(view(now, {"user": "Can I cancel?"}, other, CLAIM))
    assert not found(view({"user": "Can I cancel?"}, ORDER, CLAIM))  # nobody says what time it is


def test_only_what_changes_something_is_acting_on_it() -> None:
    now = {"system": "The current time is 2024-05-15 12:00."}
    done = {"assistant": "Good."}
    for tool, outcome, severity in (
        ("cancel_order", "succeeded", "high"),
        ("cancel_order", "failed", "medium"),
        ("get_order", "succeeded", "medium"),
    ):
        act: dict[str, Any] = {"tool": tool, "args": {"id": "A-1001"}, "result": {"ok": True}, "outcome": outcome}
        seen = view(now, {"user": "Can I cancel?"}, ORDER, CLAIM, {"user": "Yes."}, act, done)
        assert [evidence.severity for evidence in found(seen)] == [severity]


def test_of_a_very_long_run_the_first_claims_are_judged() -> None:
    now = {"system": "The current time is 2024-05-15 12:00."}
    turns = [event for _ in range(MAX_CLAIMING + 5) for event in ({"user": "And?"}, CLAIM)]
    assert len(found(view(now, {"user": "Can I cancel?"}, ORDER, *turns))) == MAX_CLAIMING
