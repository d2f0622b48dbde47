"""idempotency_key_changed beyond its inline tests."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from otelmon.checks.idempotency_key_changed import across_runs, in_conversation
from otelmon.checks.lib.effects import effect_entry
from otelmon.checks.registry import NoParams
from otelmon.checks.view import View
from otelmon.vocabulary.finding import Evidence
from otelmon.vocabulary.messages import EffectEntry
from tests.checks.build import view

USER = {"user": "Pay 75 to AC-3."}
PAY: dict[str, Any] = {"tool": "create_payout", "args": {"account": "AC-3", "amount": 75}}
POST: dict[str, Any] = {"method": "POST", "url": "https://api.example.com/x"}


def found(seen: View) -> list[Evidence]:
    return [e for call in seen.calls for e in in_conversation(call, seen, NoParams())]


def entry(**more: Any) -> EffectEntry:
    seen = view({**USER, "trigger": more.pop("trigger", "job-1")}, {**PAY, "outcome": "unknown", **more})
    made = effect_entry(seen.calls[0], seen)
    assert made is not None
    return made


def named(made: EffectEntry, name: str, **more: Any) -> EffectEntry:
    return msgspec.structs.replace(made, anchor=name, conversation_id=name, **more)


def test_the_evidence_shows_both_keys() -> None:
    seen = view(USER, {**PAY, "key": "k1", "outcome": "unknown"}, {**PAY, "key": "k2", "result": {"id": "PO-2"}})
    (evidence,) = found(seen)
    assert evidence.anchor == seen.calls[1].key
    assert evidence.details["idempotency_keys"] == ["k1", "k2"]


@pytest.mark.parametrize(("outcome", "fires"), [("unknown", True), ("succeeded", True), ("pending", True),
                                                ("failed", False), ("denied", False)])  # fmt: skip
def test_only_what_may_have_landed_needs_its_key(outcome: str, *, fires: bool) -> None:
    seen = view(USER, {**PAY, "key": "k1", "outcome": outcome}, {**PAY, "key": "k2"})
    assert bool(found(seen)) is fires


def test_a_denied_attempt_and_one_without_a_key_are_silent() -> None:
    lost = {**PAY, "key": "k1", "outcome": "unknown"}
    assert found(view(USER, lost, {**PAY, "key": "k2", "outcome": "denied"})) == []
    assert found(view(USER, lost, PAY)) == []


def test_a_definite_failure_in_between_does_not_free_the_first_key() -> None:
    seen = view(
        USER, {**PAY, "key": "k1", "outcome": "unknown"}, {**PAY, "key": "k1", "error": "busy"}, {**PAY, "key": "k2"}
    )
    assert [e.anchor for e in found(seen)] == [seen.calls[2].key]


def test_an_attempt_that_names_the_one_it_repeats_is_one_however_it_was_sent() -> None:
    asked = {"assistant": "", "calls": [{"tool": "create_payout", "id": "c1"}, {"tool": "create_payout", "id": "c2"}]}
    first = {**PAY, "key": "k1", "id": "c1"}
    assert found(view(USER, asked, first, {**PAY, "key": "k2", "id": "c2", "parallel": True})) == []
    assert (
        len(found(view(USER, asked, first, {**PAY, "key": "k2", "id": "c2", "parallel": True, "retry_of": "c1"}))) == 1
    )


@pytest.mark.parametrize(
    ("one", "two", "fires"),
    [
        ({"error_type": "timeout"}, {"status_code": 200}, True),
        ({"status_code": 503}, {"status_code": 200}, True),
        ({"status_code": 200}, {"status_code": 200}, False),
        ({"status_code": 200}, {"status_code": 200, "resend_count": 1}, True),
        ({"error_type": "timeout"}, {"status_code": 200, "url": "https://api.example.com/y"}, False),
        ({"error_type": "timeout", "method": "PUT"}, {"status_code": 200, "method": "PUT"}, False),
    ],
)
def test_requests_inside_one_call(one: dict[str, Any], two: dict[str, Any], *, fires: bool) -> None:
    sent = [{**POST, "idempotency_key": "k1", **one}, {**POST, "idempotency_key": "k2", **two}]
    assert bool(found(view(USER, {**PAY, "http": sent}))) is fires


def test_across_runs_of_one_trigger() -> None:
    first, second = named(entry(key="k1"), "a"), named(entry(key="k2"), "b")
    (evidence,) = across_runs((first, second), NoParams())
    assert (evidence.anchor, evidence.details["idempotency_keys"]) == ("b", ["k1", "k2"])
    for other in (
        named(entry(key="k1"), "b"),
        named(entry(key="k2", trigger="job-2"), "b"),
        named(entry(key="k2"), "a"),
        named(entry(key="k2"), "b", state_changed=True),
        named(entry(), "b"),
    ):
        assert list(across_runs((first, other), NoParams())) == []
