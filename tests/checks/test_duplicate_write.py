"""duplicate_write beyond its inline tests: what the evidence shows, and the ledger's form."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from otelmon.checks.duplicate_write import Params, across_conversations, in_conversation
from otelmon.checks.lib.effects import effect_entry
from otelmon.checks.view import View
from otelmon.vocabulary.finding import Evidence
from otelmon.vocabulary.messages import EffectEntry
from tests.checks.build import view

REFUND = {"tool": "issue_refund", "args": {"order": "OR-771", "amount": 18.5}}


def found(seen: View) -> list[Evidence]:
    return [e for call in seen.calls for e in in_conversation(call, seen, Params())]


def entry(**changes: Any) -> EffectEntry:
    seen = view({"user": "Refund OR-771."}, {**REFUND, "result": {"ref": "RF-1"}})
    made = effect_entry(seen.calls[0], seen)
    assert made is not None
    return msgspec.structs.replace(made, **changes)


def test_the_evidence_shows_both_calls_side_by_side() -> None:
    seen = view(
        {"user": "Refund OR-771."},
        {**REFUND, "result": {"ref": "RF-1"}, "id": "c1"},
        {**REFUND, "result": {"ref": "RF-2"}, "id": "c2", "after": 90},
    )
    (evidence,) = found(seen)
    first, second = seen.calls
    assert evidence.anchor == second.key
    assert evidence.span_ids == (second.span_id, first.span_id)
    assert evidence.details["other"]["tool_call_id"] == "c1"
    assert evidence.details["this"]["arguments"] == {"order": "OR-771", "amount": 18.5}
    assert (evidence.details["times"], evidence.details["same_request"]) == (2, False)
    assert "90.0 s" in evidence.summary


def test_a_call_id_that_the_model_used_twice_is_two_requests() -> None:
    asked: dict[str, Any] = {"assistant": "", "calls": [{"tool": "issue_refund", "args": REFUND["args"], "id": "c1"}]}
    once = [asked, {**REFUND, "id": "c1", "result": {"ref": "RF-1"}}, {**REFUND, "id": "c1", "result": {"ref": "RF-2"}}]
    (evidence,) = found(view({"user": "Refund OR-771 twice."}, *once))
    assert evidence.details["same_request"]
    again = [
        asked,
        {**REFUND, "id": "c1", "result": {"ref": "RF-1"}},
        asked,
        {**REFUND, "id": "c1", "result": {"ref": "RF-2"}},
    ]
    assert found(view({"user": "Refund OR-771 twice."}, *again)) == []


def test_the_servers_own_id_tells_a_replay_from_a_second_effect() -> None:
    same = {"tool": "create_order", "args": {"customer_id": "C-1"}, "result": {"order_id": "O-1", "customer_id": "C-1"}}
    other = {**same, "result": {"order_id": "O-2", "customer_id": "C-1"}}
    assert found(view({"user": "Order."}, same, same)) == []
    assert len(found(view({"user": "Order."}, same, other))) == 1


@pytest.mark.parametrize(
    ("said", "answer", "wanted"),
    [
        ("Shall I pay AC-3 once more?", "Yes, go ahead.", True),
        ("Anything else?", "Yes, what is the weather?", False),
        ("Done.", "Pay AC-3 for the other month as well.", True),
        ("Done.", "I need the receipt.", False),
        ("Done.", "Do that again.", True),
        ("Done.", "Thank you!", False),
    ],
)
def test_what_asks_again_in_a_new_turn(said: str, answer: str, *, wanted: bool) -> None:
    pay = {"tool": "create_payout", "args": {"account": "AC-3", "amount": 5}}
    seen = view({"user": "Pay 5 to AC-3."}, pay, {"assistant": said}, {"user": answer}, pay)
    assert bool(found(seen)) is not wanted


def test_without_values_the_words_of_the_tool_ask() -> None:
    start = {"tool": "start_report", "args": {"title": "all of it"}}
    for answer, wanted in (("Now another report.", True), ("A report, please.", True), ("How nice of you!", False)):
        seen = view({"user": "Start it."}, start, {"assistant": "Started."}, {"user": answer}, start)
        assert bool(found(seen)) is not wanted


def test_two_runs_with_other_words_are_two_requests() -> None:
    pay = {"tool": "create_payout", "args": {"account": "AC-3", "amount": 5}, "result": {"ok": True}}
    other = {"user": "For May too, AC-3.", "host": "b", "trace": "new"}
    assert found(view({"user": "Pay 5 to AC-3.", "host": "a"}, pay, other, pay)) == []


def test_a_write_that_names_the_record_in_a_list_changes_it() -> None:
    add = {"tool": "create_item", "args": {"sku": "S-1"}, "result": "done"}
    change = {"tool": "update_items", "args": {"skus": ["S-1", "S-2"]}, "result": {"ok": True}}
    assert found(view({"user": "x"}, add, change, add)) == []
    assert len(found(view({"user": "x"}, add, {**change, "error": "no"}, add))) == 1
    assert len(found(view({"user": "x"}, add, {**change, "args": {"skus": ["S-9"]}}, add))) == 1


def test_reads_unknown_tools_and_invisible_arguments_are_left_alone() -> None:
    for call in (
        {"tool": "get_order", "args": {"id": "A-1"}},
        {"tool": "frobnicate", "args": {"id": "A-1"}},
        {**REFUND, "fidelity": "truncated"},
        {**REFUND, "outcome": "pending"},
    ):
        assert found(view({"user": "Do it."}, call, call)) == []


def test_an_entry_says_what_the_ledger_must_know() -> None:
    seen = view(
        {"user": "Send kim@example.com the voucher again.", "trigger": "job-1", "host": "a"},
        {"tool": "send_voucher", "args": {"to": "kim@example.com", "request_id": "r1"}, "key": "k"},
    )
    made = effect_entry(seen.calls[0], seen)
    assert made is not None
    assert (made.effect, made.repeat, made.outcome) == ("external_send", "additive", "succeeded")
    assert (made.identifying, made.asked, made.state_changed) == (True, 2, False)
    assert (made.trigger, made.host, made.idempotency_key) == ("job-1", "a", "k")
    assert made.arguments == {"to": "kim@example.com"}


def test_what_can_not_have_landed_makes_no_entry() -> None:
    for more in ({"error": "refused"}, {"outcome": "denied"}, {"result": {"replayed": True}}, {"fidelity": "absent"}):
        seen = view({"user": "x"}, {**REFUND, **more})
        assert effect_entry(seen.calls[0], seen) is None
    seen = view({"user": "x"}, {"tool": "get_order", "args": {"id": "A-1"}})
    assert effect_entry(seen.calls[0], seen) is None


def test_a_large_entry_is_shortened() -> None:
    seen = view({"user": "x"}, {"tool": "create_note", "args": {"id": "N-1", "text": "x" * 50_000}})
    made = effect_entry(seen.calls[0], seen)
    assert made is not None
    assert len(str(made.arguments)) < 5_000


def test_a_loop_of_thousands_stays_bounded() -> None:
    call = {"tool": "send_message", "args": {"to": "dock-1", "text": "x" * 10_000}, "result": {"ok": True}}
    everything = found(view({"user": "thanks"}, {**call, "repeat": 2000}))
    assert len(everything) == 1999
    assert max(len(e.span_ids) for e in everything) == 3
    assert len(str(everything[-1].details)) < 20_000


def history(*entries: EffectEntry) -> list[Evidence]:
    return list(across_conversations(entries, Params()))


def test_two_conversations_close_in_time() -> None:
    first = entry(anchor="t:1", conversation_id="one", start_time_unix_nano=0)
    second = entry(anchor="t:2", conversation_id="two", start_time_unix_nano=60_000_000_000)
    (evidence,) = history(first, second)
    assert evidence.anchor == "t:2"
    assert evidence.details["other"]["conversation_id"] == "one"
    assert evidence.details["link"] == "two conversations"


def test_what_silences_the_ledger() -> None:
    first = entry(anchor="t:1", conversation_id="one", start_time_unix_nano=0)
    second = entry(anchor="t:2", conversation_id="two", start_time_unix_nano=60_000_000_000)
    replace = msgspec.structs.replace
    assert history(first, replace(second, conversation_id="one")) == []
    assert history(first, replace(second, identifying=False)) == []
    assert history(first, replace(second, repeat="absolute")) == []
    assert history(first, replace(second, state_changed=True)) == []
    assert history(first, replace(second, asked=2)) == []
    assert history(replace(first, outcome="unknown"), second) == []
    assert history(replace(first, idempotency_key="k"), replace(second, idempotency_key="k")) == []
    assert len(history(replace(first, idempotency_key="k"), replace(second, idempotency_key="l"))) == 1
    hour = replace(second, start_time_unix_nano=3_600_000_000_000)
    assert history(first, hour) == []
    assert len(history(replace(first, trigger="wf"), replace(hour, trigger="wf", identifying=False))) == 1
