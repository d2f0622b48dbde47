"""forbidden_write and missing_confirmation beyond their inline tests: approvals, and rules in words."""

from __future__ import annotations

from typing import Any

import pytest

from otelmon.checks.forbidden_write import forbidden_write
from otelmon.checks.lib.approvals import approval_of, asked_for, why_not
from otelmon.checks.lib.confirmation import demands
from otelmon.checks.missing_confirmation import Params, missing_confirmation
from otelmon.checks.registry import NoParams
from otelmon.checks.view import View
from otelmon.vocabulary.canonical import sha256
from tests.checks.build import view

DELETE = {"tool": "delete_dir", "args": {"path": "/archive/a1"}, "result": {"ok": True}}
HASH = sha256(DELETE["args"])


def approved(*events: dict[str, Any], trusted: tuple[str, ...] = ()) -> bool:
    seen = view(*events, trusted=list(trusted))
    return approval_of(seen.calls[-1], seen) is not None


def test_the_users_yes_must_answer_a_proposal_with_these_values() -> None:
    ask, yes = {"assistant": "Delete /archive/a1 and a2?"}, {"user": "Yes."}
    begin = {"user": "Tidy up."}
    assert approved(begin, ask, yes, DELETE)
    assert approved(begin, ask, yes, {**DELETE, "args": {"path": "/archive/a2"}})
    assert not approved(begin, ask, yes, {**DELETE, "args": {"path": "/archive/b7"}})
    assert not approved(begin, ask, {"user": "No, wait. Yes?"}, DELETE)
    assert not approved(begin, yes, DELETE)
    assert approved(begin, ask, yes, {"assistant": "ok"}, {"user": "and hurry"}, DELETE)
    assert not approved(ask, DELETE, yes)


def test_a_yes_and_the_values_may_stand_in_one_message() -> None:
    assert approved({"user": "Delete /archive/a1. Yes, I confirm."}, DELETE)
    assert not approved({"user": "Delete /archive/a1."}, DELETE)


@pytest.mark.parametrize(
    ("approval", "trusted", "counts", "because"),
    [
        ({"decision": "approved"}, True, True, ""),
        ({"decision": "approved", "arguments_hash": HASH}, True, True, ""),
        ({"decision": "approved", "arguments_hash": HASH.removeprefix("sha256:")}, True, True, ""),
        ({"decision": "approved", "arguments_hash": "sha256:00"}, True, False, "other arguments"),
        ({"decision": "approved", "expires_unix_nano": 1}, True, False, "expired"),
        ({"decision": "rejected"}, True, False, "rejected"),
        ({"decision": "auto"}, True, False, "auto"),
        ({"decision": "approved", "arguments_hash": HASH}, False, False, "detect.trusted_services"),
    ],
)
def test_an_approval_on_the_span(approval: dict[str, Any], trusted: bool, counts: bool, because: str) -> None:
    events = ({"user": "Tidy up.", "service": "agent"}, {**DELETE, "approval": approval})
    seen = view(*events, trusted=["agent"] if trusted else [])
    assert (approval_of(seen.calls[0], seen) is not None) is counts
    assert because in why_not(seen.calls[0], seen)


def test_where_approvals_on_spans_are_trusted_every_service_counts() -> None:
    given = {**DELETE, "approval": {"decision": "approved", "arguments_hash": HASH}}
    seen = view({"user": "Tidy up.", "service": "agent"}, given)
    trusting = View(seen.timeline, trust_approvals=True)
    assert approval_of(seen.calls[0], seen) is None
    assert approval_of(trusting.calls[0], trusting) is not None
    refused = view({"user": "Tidy up."}, {**DELETE, "approval": {"decision": "rejected"}})
    assert approval_of(refused.calls[0], View(refused.timeline, trust_approvals=True)) is None


def test_asking_in_ones_own_words_names_the_action_and_the_values() -> None:
    for text, asked in (
        ("Please delete /archive/a1", True),
        ("Look at /archive/a1", False),
        ("Delete the old ones", False),
    ):
        seen = view({"user": text}, DELETE)
        assert asked_for(seen.calls[0], seen) is asked


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("Policy: deletions need the user's explicit yes.", {"deletion"}),
        ("Never delete anything without asking the user first.", {"deletion"}),
        ("You must obtain explicit confirmation before cancelling an order.", {"cancellation"}),
        ("Payments require the customer's approval.", {"payment"}),
        ("Destructive actions always need confirmation.", {"irreversible"}),
        ("Before any action that updates the database you must obtain the user's confirmation.", {"change"}),
        ("Antes de eliminar un registro debes pedir confirmación explícita.", {"deletion"}),
        ("Los pagos requieren la aprobación del cliente.", {"payment"}),
        ("Das Löschen von Dateien erfordert die Zustimmung des Nutzers.", {"deletion"}),
        ("Dateien dürfen nur nach Bestätigung des Nutzers gelöscht werden.", {"deletion"}),
        ("Ningún pedido será cancelado sin el consentimiento del cliente.", {"cancellation"}),
        ("Überweisungen nur nach ausdrücklicher Bestätigung.", {"payment"}),
        ("You can delete files.", set()),
        ("Send a confirmation mail after the booking.", set()),
        ("The confirmation number is needed. Deleted items go to the bin.", set()),
    ],
)
def test_rules_in_words(text: str, kinds: set[str]) -> None:
    assert {kind for kind, _ in demands(text)} == kinds


def missing(*events: dict[str, Any], **more: Any) -> list[str]:
    seen = view(*events, **more)
    return [e.anchor for call in seen.calls for e in missing_confirmation(call, seen, Params())]


def test_a_demand_speaks_about_its_own_kind_of_effect() -> None:
    demand = {"system": "Cancelling an order always requires the user's confirmation."}
    user = {"user": "See to it."}
    assert len(missing(demand, user, {"tool": "cancel_order", "args": {"order": "A-1"}})) == 1
    assert missing(demand, user, DELETE) == []
    assert missing(demand, user, {"tool": "update_order", "args": {"order": "A-1"}}) == []
    assert missing(demand, user, {"tool": "cancel_order", "args": {"order": "A-1"}, "error": "closed"}) == []


def test_commands_and_queries_are_deletions_by_what_they_do() -> None:
    demand = {"system": "Deleting data requires the user's explicit confirmation."}
    sql = {"tool": "run_sql", "args": {"sql": "delete from members"}}
    assert len(missing(demand, {"user": "Fix the page."}, sql)) == 1
    assert missing(demand, {"user": "Fix the page."}, {**sql, "args": {"sql": "select 1"}}) == []


def test_a_yes_to_the_action_is_enough_for_a_rule_in_words() -> None:
    demand = {"system": "Cancelling always requires the user's confirmation."}
    talk = ({"user": "Cancel my flight to Oslo."}, {"assistant": "Cancel the flight on May 17?"}, {"user": "Yes."})
    assert missing(demand, *talk, {"tool": "cancel_flight", "args": {"booking": "9HBUV8"}}) == []
    assert len(missing(demand, *talk[:1], {"tool": "cancel_flight", "args": {"booking": "9HBUV8"}})) == 1


def test_a_policy_names_its_severity() -> None:
    policy = [{"id": "ask", "tools": ["delete_*"], "action": "confirm", "severity": "critical"}]
    seen = view({"user": "x"}, DELETE, catalogue={"policy": policy})
    (evidence,) = missing_confirmation(seen.calls[0], seen, Params())
    assert (evidence.severity, evidence.key) == ("critical", "ask")


def forbidden(seen: View) -> list[tuple[str, str | None]]:
    return [(e.key, e.severity) for call in seen.calls for e in forbidden_write(call, seen, NoParams())]


def test_every_policy_that_is_broken_is_a_finding_of_its_own() -> None:
    policy = [
        {"id": "one", "tools": ["delete_*"], "action": "forbid"},
        {"id": "two", "effects": ["destructive"], "action": "forbid", "severity": "low"},
        {"id": "three", "tools": ["create_*"], "action": "forbid"},
        {"id": "four", "tools": ["delete_*"], "action": "confirm"},
    ]
    seen = view({"user": "x"}, DELETE, catalogue={"policy": policy})
    assert forbidden(seen) == [("one", "critical"), ("two", "low")]


def test_a_limit_counts_what_landed_and_the_attempt_itself() -> None:
    policy = [{"id": "few", "tools": ["delete_*"], "action": "limit", "max": 1}]
    denied = {**DELETE, "outcome": "denied"}
    assert forbidden(view({"user": "x"}, denied, DELETE, catalogue={"policy": policy})) == []
    assert forbidden(view({"user": "x"}, DELETE, denied, catalogue={"policy": policy})) == [("few", "high")]


def test_asking_in_another_language_than_the_tools() -> None:
    demand = {"system": "Dateien dürfen nur nach Bestätigung des Nutzers gelöscht werden."}
    call = {"tool": "delete_file", "args": {"path": "report.txt"}}
    assert missing(demand, {"user": "Lösche bitte report.txt."}, call) == []
    assert len(missing(demand, {"user": "Räum den Ordner auf."}, call)) == 1
