"""unsafe_retry beyond its inline tests."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from otelmon.checks.lib.effects import effect_entry
from otelmon.checks.unsafe_retry import Params, across_runs, in_conversation
from otelmon.checks.view import View
from otelmon.vocabulary.finding import Evidence
from otelmon.vocabulary.messages import EffectEntry
from tests.checks.build import view

PAY = {"tool": "charge_card", "args": {"account": "AC-9", "amount": 12}}
LOST = {**PAY, "outcome": "unknown"}
POST: dict[str, Any] = {"method": "POST", "url": "https://api.example.com/x"}


def found(seen: View) -> list[Evidence]:
    return [e for call in seen.calls for e in in_conversation(call, seen, Params())]


def test_the_evidence_shows_both_attempts_and_their_keys() -> None:
    seen = view({"user": "Charge AC-9."}, {**LOST, "key": "k1"}, {**PAY, "key": "k2"})
    (evidence,) = found(seen)
    assert evidence.anchor == seen.calls[1].key
    assert evidence.details["idempotency_keys"] == ["k1", "k2"]
    assert evidence.details["other"]["outcome"] == "unknown"


def test_each_further_attempt_is_unsafe_until_one_is_known_to_have_landed() -> None:
    seen = view({"user": "Charge AC-9."}, LOST, LOST, PAY, PAY)
    assert [e.anchor for e in found(seen)] == [seen.calls[1].key, seen.calls[2].key]


def test_a_definite_failure_in_between_does_not_settle_the_first() -> None:
    seen = view({"user": "Charge AC-9."}, LOST, {**PAY, "error": "bad amount"}, PAY)
    assert [e.anchor for e in found(seen)] == [seen.calls[1].key, seen.calls[2].key]


def test_calls_sent_at_once_are_no_retry() -> None:
    one = {"assistant": "", "calls": [{"tool": "charge_card", "id": c} for c in ("c1", "c2")]}
    seen = view({"user": "Charge."}, one, {**LOST, "id": "c1", "took": 30}, {**PAY, "id": "c2"})
    assert found(seen) == []


def test_undone_first_and_denied_attempts_are_safe() -> None:
    undo = {"tool": "cancel_charge", "args": {"account": "AC-9"}, "result": {"ok": True}}
    assert found(view({"user": "Charge AC-9."}, LOST, undo, PAY)) == []
    assert found(view({"user": "Charge AC-9."}, LOST, {**PAY, "outcome": "denied"})) == []


@pytest.mark.parametrize(
    ("requests", "fires"),
    [
        ([{**POST, "error_type": "timeout"}, {**POST, "status_code": 200}], True),
        ([{**POST, "status_code": 503}, {**POST, "status_code": 200}], True),
        ([{**POST, "status_code": 408}, {**POST, "status_code": 200}], True),
        ([{**POST, "status_code": 422}, {**POST, "status_code": 200}], False),
        ([{**POST, "status_code": 200}, {**POST, "status_code": 200}], False),
        ([{**POST, "error_type": "timeout"}], False),
        ([{**POST, "error_type": "timeout"}, {**POST, "url": "https://api.example.com/y", "status_code": 200}], False),
        ([{**POST, "method": "PUT", "error_type": "timeout"}, {**POST, "method": "PUT", "status_code": 200}], False),
        ([{**POST, "idempotency_key": "k", "error_type": "timeout"}, {**POST, "idempotency_key": "k"}], False),
        ([{**POST, "idempotency_key": "k", "error_type": "timeout"}, {**POST, "idempotency_key": "l"}], True),
    ],
)
def test_repeats_inside_the_http_client(requests: list[dict[str, Any]], *, fires: bool) -> None:
    seen = view({"user": "Charge."}, {**PAY, "http": requests})
    assert bool(found(seen)) is fires


@pytest.mark.parametrize(
    ("one", "two", "fires"),
    [
        ({"channel": "news", "text": "Open day on the 4th"}, {"channel": "news", "text": "Open day on the 4th!"}, True),
        ({"channel": "news", "text": "Open day on the 4th"}, {"channel": "news", "text": "Open day on the 5th"}, False),
        ({"channel": "news", "text": "Open day on the 4th"}, {"channel": "club", "text": "Open day on the 4th"}, False),
        ({"channel": "news", "text": "Open day on the 4th"}, {"channel": "news"}, False),
        ({"channel": "news", "text": "hello"}, {"channel": "news", "text": "hello!"}, False),
        ({"channel": "news", "size": 4}, {"channel": "news", "size": 5}, False),
    ],
)
def test_which_other_words_are_the_same_effect(one: dict[str, Any], two: dict[str, Any], *, fires: bool) -> None:
    first = {"tool": "publish_post", "args": one, "outcome": "unknown"}
    second = {"tool": "publish_post", "args": two, "result": {"id": "p-2"}}
    assert bool(found(view({"user": "Publish it."}, first, second))) is fires
    assert found(view({"user": "Publish it."}, first, {**second, "server": "other"})) == []


def test_an_idempotent_tool_may_repeat_its_requests() -> None:
    requests = [{**POST, "error_type": "timeout"}, {**POST, "status_code": 200}]
    hints = {"readOnlyHint": False, "idempotentHint": True}
    seen = view({"user": "x"}, {"tool": "create_record", "args": {}, "annotations": hints, "http": requests})
    assert found(seen) == []


def entry(**changes: Any) -> EffectEntry:
    seen = view({"user": "Charge AC-9."}, PAY)
    made = effect_entry(seen.calls[0], seen)
    assert made is not None
    return msgspec.structs.replace(made, trigger="job", **changes)


def test_another_run_of_the_trigger() -> None:
    replace = msgspec.structs.replace
    lost = entry(anchor="t:1", conversation_id="one", outcome="unknown")
    second = entry(anchor="t:2", conversation_id="two")
    assert [e.anchor for e in across_runs((lost, second), Params())] == ["t:2"]
    for pair in (
        (replace(lost, outcome="succeeded"), second),
        (replace(lost, trigger=None), replace(second, trigger=None)),
        (lost, replace(second, conversation_id="one")),
        (lost, replace(second, repeat="absolute")),
        (replace(lost, idempotency_key="k"), replace(second, idempotency_key="k")),
    ):
        assert list(across_runs(pair, Params())) == []


def test_the_same_effect_is_found_however_far_back_and_another_wording_only_among_the_latest() -> None:
    def note(text: str) -> dict[str, Any]:
        return {"tool": "create_note", "args": {"text": text}}

    others = [{"tool": "create_note", "args": {"text": f"something else entirely, number {n}"}} for n in range(250)]
    lost = {**note("please call the customer back tomorrow"), "outcome": "unknown"}
    exact = view({"user": "Write it down."}, lost, *others, note("please call the customer back tomorrow"))
    assert [e.anchor for e in found(exact)] == [exact.calls[-1].key]
    near = view({"user": "Write it down."}, lost, *others[:100], note("please call the customer back tomorrow!"))
    assert [e.anchor for e in found(near)] == [near.calls[-1].key]
    far = view({"user": "Write it down."}, lost, *others, note("please call the customer back tomorrow!"))
    assert found(far) == []
