"""effect_mismatch beyond its inline tests: where a result repeats values, and in which forms."""

from __future__ import annotations

from typing import Any

import pytest

from otelmon.checks.effect_mismatch import effect_mismatch
from otelmon.checks.registry import NoParams
from otelmon.vocabulary.finding import Evidence
from tests.checks.build import view


def found(tool: str, args: dict[str, Any], result: Any, said: str = "Go on.") -> list[Evidence]:
    seen = view({"user": said}, {"tool": tool, "args": args, "result": result})
    return [e for call in seen.calls for e in effect_mismatch(call, seen, NoParams())]


@pytest.mark.parametrize(
    ("tool", "args", "result"),
    [
        ("create_order", {"sku": "SK-A", "quantity": 5}, {"order": {"id": "O-1", "items": [{"sku": "SK-A", "quantity": 1}]}}),
        ("send_mail", {"to": "a@example.com"}, {"id": "m1", "to": ["z@example.com"]}),
        ("create_event", {"start": "2026-03-04 10:00"}, {"start": "2026-03-04 11:00"}),
        ("transfer_money", {"iban": "DE12500105170648489890", "amount": 500}, "Transferred 50.00 EUR to DE12500105170648489890."),
        ("refund_payment", {"amount": 500}, {"message": "Refunded EUR 50 to the card."}),
        ("refund_payment", {"amount": 500}, {"refunded_amount": 50}),
        ("issue_refund", {"amount": "1.500,00"}, {"amount": 150}),
        ("update_line", {"muted": False}, {"line": {"muted": True}}),
        ("create_payout", {"amount": 75, "currency": "EUR"}, {"data": {"currency": "USD", "amount": 75}}),
    ],
)  # fmt: skip
def test_another_value_is_seen(tool: str, args: dict[str, Any], result: Any) -> None:
    assert len(found(tool, args, result)) == 1


@pytest.mark.parametrize(
    ("tool", "args", "result"),
    [
        ("create_event", {"start": "2026-03-04 10:00"}, {"start": "2026-03-04T09:00:00Z"}),
        ("create_event", {"start": "2026-03-04"}, {"start": "2026-03-04 00:00"}),
        ("create_event", {"start": "2026-03-04 23:30"}, {"start": "2026-03-05T04:30:00Z"}),
        ("transfer_money", {"amount": 500}, "Transferred 500.00 EUR, fee charged 2.50 EUR."),
        ("charge_card", {"amount": 20}, {"charged": True, "balance": 70}),
        ("set_priority", {"ticket": "T-1", "priority": "urgent"}, {"ticket": "T-1", "priority": 1}),
        ("issue_refund", {"amount": 12.5}, {"amount": -12.5}),
        ("issue_refund", {"amount": 12.5}, {"amount": 1250}),
        ("update_user", {"name": "Lee, Ann"}, {"name": "Ann Lee"}),
        ("update_user", {"email": "Ann@Example.com", "phone": "+49 30 123456"}, {"email": "ann@example.com", "phone": "4930123456"}),
        ("update_user", {"account": "orders/A-1"}, {"account": "A-1"}),
        ("add_tags", {"tags": ["a1", "b2"]}, {"tags": ["b2", "a1", "c3"]}),
        ("delete_items", {"items": ["SK-1"]}, {"items": ["SK-2"]}),
        ("send_mail", {"to": "a@example.com"}, {"to": "a***@example.com"}),
        ("list_orders", {"status": "open", "limit": 5}, {"status": "ok", "limit": 10}),
    ],
)  # fmt: skip
def test_one_value_in_another_form_or_sense_is_none(tool: str, args: dict[str, Any], result: Any) -> None:
    assert [e.details["differs"] for e in found(tool, args, result)] == []


def test_a_converted_amount_is_no_mismatch_of_the_amount() -> None:
    (evidence,) = found("convert_money", {"amount": 75, "currency": "EUR"}, {"amount": 81.2, "currency": "USD"})
    assert [d["argument"] for d in evidence.details["differs"]] == ["currency"]


def test_an_unknown_id_is_that_of_a_new_record_and_a_known_one_is_not() -> None:
    args, result = {"order_id": "OR-1"}, {"order_id": "OR-2"}
    assert found("copy_order", args, result) == []
    assert len(found("copy_order", args, result, said="I have OR-1 and OR-2.")) == 1
    assert len(found("cancel_order", args, result)) == 1


def test_all_differences_are_shown_once() -> None:
    (evidence,) = found("issue_refund", {"amount": 5, "date": "2026-03-04"}, {"amount": 6, "date": "2026-04-04"})
    assert [d["argument"] for d in evidence.details["differs"]] == ["amount", "date"]
