"""wrong_record beyond its inline tests: how a record is named, and what explains another one."""

from __future__ import annotations

from typing import Any

import pytest

from otelmon.checks.registry import NoParams
from otelmon.checks.wrong_record import wrong_record
from otelmon.vocabulary.finding import Evidence
from tests.checks.build import view

Step = dict[str, Any]


def found(*events: Step) -> list[Evidence]:
    seen = view(*events)
    return [e for call in seen.calls for e in wrong_record(call, seen, NoParams())]


def read(tool: str, result: Any, **args: Any) -> Step:
    return {"tool": tool, "args": args, "result": result}


def write(tool: str, **args: Any) -> Step:
    return {"tool": tool, "args": args, "result": {"ok": True}}


FILES = read(
    "list_files", [{"file_id": "f3", "name": "report-final.docx"}, {"file_id": "f4", "name": "report-final-v2.docx"}]
)
PEOPLE = read(
    "search_contacts",
    [{"name": "Ann Lee", "email": "ann.lee@example.com"}, {"name": "Anna Bell", "email": "anna.bell@example.com"}],
)
TRIPS = read(
    "list_bookings",
    [{"ref": "AB1234", "to": "Oslo", "date": "2026-06-12"}, {"ref": "CD2345", "to": "Rome", "date": "2026-06-12"}],
)
CHARGES = read("list_charges", [{"charge_id": "ch_12", "amount": 49.9}, {"charge_id": "ch_13", "amount": 19.9}])
VISITS = read("list_visits", [{"visit_id": "V-101", "day": "2026-05-03"}, {"visit_id": "V-102", "day": "2026-05-13"}])
LAMPS = read(
    "list_orders",
    [{"order_id": "O-101", "items": [{"name": "desk lamp"}]}, {"order_id": "O-102", "items": [{"name": "oak table"}]}],
)
LINES = read("list_lines", {"77001": {"plan": "Gold"}, "77002": {"plan": "Silver"}})
TEXT = read("list_orders", "- order_id: O-101\n  title: lamp\n- order_id: O-102\n  title: table\n")


@pytest.mark.parametrize(
    ("said", "listed", "wrong", "right"),
    [
        ("Delete the file report-final.docx.", FILES, write("delete_file", file_id="f4"), write("delete_file", file_id="f3")),
        ("Email Ann that we are closed.", PEOPLE, write("send_email", to="anna.bell@example.com"), write("send_email", to="ann.lee@example.com")),
        ("Please cancel my trip to Oslo on 12 June.", TRIPS, write("cancel_booking", ref="CD2345"), write("cancel_booking", ref="AB1234")),
        ("Refund the 49.90 charge please.", CHARGES, write("refund_charge", charge_id="ch_13"), write("refund_charge", charge_id="ch_12")),
        ("Cancela mi cita del 3 de mayo.", VISITS, write("cancel_visit", visit_id="V-102"), write("cancel_visit", visit_id="V-101")),
        ("Open a return for the one with the broken lamp.", LAMPS, write("create_return", order_id="O-102"), write("create_return", order_id="O-101")),
        ("Turn the Silver line off.", LINES, write("disable_line", line_id="77001"), write("disable_line", line_id="77002")),
        ("Cancel the lamp.", TEXT, write("cancel_order", order_id="O-102"), write("cancel_order", order_id="O-101")),
    ],
)  # fmt: skip
def test_a_record_is_named_by_what_it_is(said: str, listed: Step, wrong: Step, right: Step) -> None:
    assert len(found({"user": said}, listed, wrong)) == 1
    assert found({"user": said}, listed, right) == []


SUBSCRIPTIONS = read("list_subscriptions", {"subscriptions": [{"id": "SUB-21"}, {"id": "SUB-22"}]})
ORDERS = read("list_orders", [{"order_id": "OR-5500", "total": 8}, {"order_id": "OR-6600", "total": 9}])


def test_a_ticket_names_the_record_whether_handed_over_or_read() -> None:
    body = "Please cancel my subscription SUB-22."
    handed = [{"context": f"Ticket T-9: {body}"}, {"user": "Handle ticket T-9."}]
    looked_up = [
        {"user": "Handle ticket T-9."},
        read("get_ticket", {"ticket_id": "T-9", "body": body}, ticket_id="T-9"),
    ]
    for ticket in (handed, looked_up):
        assert len(found(*ticket, SUBSCRIPTIONS, write("cancel_subscription", subscription_id="SUB-21"))) == 1
        assert found(*ticket, SUBSCRIPTIONS, write("cancel_subscription", subscription_id="SUB-22")) == []


def test_another_one_is_taken_because_the_one_named_is_not_there() -> None:
    missing = {"tool": "get_order", "args": {"order_id": "OR-7712"}, "error": "not found"}
    (evidence,) = found({"user": "Refund OR-7712."}, missing, ORDERS, write("issue_refund", order_id="OR-5500"))
    assert (evidence.details["asked_for"], evidence.details["value"]) == ("OR-7712", "OR-5500")


def test_ids_of_other_things_are_no_record_of_this_kind() -> None:
    customer = read("get_order", {"order_id": 10442, "customer_id": 77812}, order_id=10442)
    assert found({"user": "Mail the customer of order 10442."}, customer, write("send_email", customer_id=77812)) == []
    ticket = read("get_ticket", {"id": 901, "text": "wants money"}, id=901)
    orders = read("list_orders", [{"id": 1044}, {"id": 1055}])
    assert found({"user": "Handle ticket 901."}, ticket, orders, write("cancel_order", id=1044)) == []


def test_what_the_one_named_leads_to_may_be_written() -> None:
    parent = read("get_ticket", {"ticket_id": "T-101", "parent": {"ticket_id": "T-90"}}, ticket_id="T-101")
    assert found({"user": "Close the parent of T-101."}, parent, write("close_ticket", ticket_id="T-90")) == []


def test_a_yes_to_a_proposal_keeps_what_was_named_before() -> None:
    talk = [{"user": "Refund OR-6600."}, ORDERS, {"assistant": "Shall I refund it?"}, {"user": "Yes, please."}]
    assert len(found(*talk, write("issue_refund", order_id="OR-5500"))) == 1
    assert found(*talk, write("issue_refund", order_id="OR-6600")) == []


def test_two_that_fit_equally_are_not_this_rule() -> None:
    twins = read(
        "list_visits",
        [
            {"visit_id": "V-1", "doctor": "Haas"},
            {"visit_id": "V-2", "doctor": "Haas"},
            {"visit_id": "V-3", "doctor": "Ott"},
        ],
    )
    assert found({"user": "Cancel my visit with Haas."}, twins, write("cancel_visit", visit_id="V-3")) == []
