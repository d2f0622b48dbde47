"""idempotency_key_reused beyond its inline tests."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from otelmon.checks.idempotency_key_reused import Params, across_conversations, in_conversation
from otelmon.checks.lib.keys import key_past
from otelmon.checks.view import View
from otelmon.vocabulary.finding import Evidence
from tests.checks.build import view
from tests.rules.helpers import entry

USER = {"user": "Pay 75 to AC-3 and AC-4."}


def pay(account: str, amount: Any = 75, **more: Any) -> dict[str, Any]:
    return {"tool": "create_payout", "args": {"account": account, "amount": amount}, "key": "k1", **more}


def found(seen: View) -> list[Evidence]:
    return [e for call in seen.calls for e in in_conversation(call, seen, Params())]


def test_the_evidence_says_what_differs() -> None:
    seen = view(USER, pay("AC-3"), pay("AC-4", 80))
    (evidence,) = found(seen)
    assert evidence.anchor == seen.calls[1].key
    assert evidence.details["differs"] == ["account", "amount"]
    assert evidence.details["idempotency_key"] == "k1"


def test_a_refused_attempt_does_not_hide_the_one_that_landed() -> None:
    seen = view(USER, pay("AC-3"), pay("AC-4", error="no"), pay("AC-5"))
    assert [e.anchor for e in found(seen)] == [seen.calls[1].key, seen.calls[2].key]


def test_numbers_in_another_notation_are_the_same_effect() -> None:
    assert found(view(USER, pay("AC-3", 75), pay("AC-3", 75.0))) == []


def test_a_denied_write_and_reads_are_silent() -> None:
    assert found(view(USER, pay("AC-3"), pay("AC-4", outcome="denied"))) == []
    read = {"tool": "get_payout", "args": {"id": 1}, "key": "k1"}
    assert found(view(USER, pay("AC-3"), read, {**read, "args": {"id": 2}})) == []


def test_another_server_has_keys_of_its_own() -> None:
    assert found(view(USER, pay("AC-3", server="bank-a"), pay("AC-4", server="bank-b"))) == []
    assert len(found(view(USER, pay("AC-3", server="bank-a"), pay("AC-4", server="bank-a")))) == 1


@pytest.mark.parametrize(
    ("argument", "fires"),
    [("idempotency_key", True), ("dedup_id", True), ("request_id", False), ("client_token", False)],
)
def test_two_tools_may_share_what_is_not_only_a_key(argument: str, *, fires: bool) -> None:
    one = {"tool": "create_payout", "args": {"account": "AC-3", argument: "k1"}}
    two = {"tool": "send_mail", "args": {"to": "AC-3", argument: "k1"}}
    assert bool(found(view(USER, one, two))) is fires


def test_a_key_in_the_headers_or_named_by_the_catalogue_is_only_a_key() -> None:
    header = [{"method": "POST", "url": "https://api.example.com", "idempotency_key": "k1", "status_code": 200}]
    one = {"tool": "create_payout", "args": {"account": "AC-3"}, "http": header}
    two = {"tool": "send_mail", "args": {"to": "AC-3"}, "http": header}
    assert len(found(view(USER, one, two))) == 1
    tools = [{"name": n, "idempotency_key": {"argument": "nr"}} for n in ("create_payout", "send_mail")]
    one = {"tool": "create_payout", "args": {"account": "AC-3", "nr": "k1"}}
    two = {"tool": "send_mail", "args": {"to": "AC-3", "nr": "k1"}}
    assert len(found(view(USER, one, two, catalogue={"tools": tools}))) == 1


def test_what_was_asked_for_must_be_told() -> None:
    bare = {"tool": "create_payout", "args": {"idempotency_key": "k1"}}
    full = {"tool": "create_payout", "args": {"account": "AC-3", "idempotency_key": "k1"}}
    assert found(view(USER, bare, full)) == []


def test_what_is_compared_is_bounded() -> None:
    seen = view(USER, *(pay(f"AC-{n}") for n in range(200)))
    assert max(len(key_past(call, seen).same_key) for call in seen.calls) == 8


def test_across_conversations_the_other_write_is_shown_and_one_conversation_is_left_to_its_own_check() -> None:
    one = entry(
        anchor="a:1", conversation_id="c1", effect_key="e1", arguments={"account": "AC-3"}, idempotency_key="k1"
    )
    two = entry(
        anchor="b:1", conversation_id="c2", effect_key="e2", arguments={"account": "AC-4"}, idempotency_key="k1"
    )
    (evidence,) = across_conversations((one, two), Params())
    assert (evidence.anchor, evidence.details["other"]["anchor"]) == ("b:1", "a:1")
    assert list(across_conversations((one, msgspec.structs.replace(two, conversation_id="c1")), Params())) == []
    shortened = {"arguments": "too long", "conversation_id": "c2"}
    assert list(across_conversations((one, msgspec.structs.replace(two, **shortened)), Params())) == []
