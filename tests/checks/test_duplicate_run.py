"""duplicate_run beyond its inline tests: what a first run's failure explains, and histories of the ledger."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from otelmon.checks.duplicate_run import Params, across_conversations, in_conversation
from otelmon.checks.lib.deliveries import handlings_of
from otelmon.checks.lib.effects import effect_entry
from otelmon.checks.lib.histories import MAX_LISTED, history_keys, history_kind
from otelmon.checks.view import View
from otelmon.vocabulary.event import Timeline
from otelmon.vocabulary.finding import Evidence
from otelmon.vocabulary.messages import EffectEntry
from tests.checks.build import view
from tests.rules.helpers import entry

SECOND = 1_000_000_000
ASKED = "Refund the customer of OR-771."


def refund(n: int, **more: Any) -> list[dict[str, Any]]:
    return [
        {"user": ASKED, **more},
        {"tool": "issue_refund", "args": {"order": "OR-771", "amount": n}, "result": {"ref": n}},
    ]


def found(seen: View) -> list[Evidence]:
    return [e for run in seen.runs for e in in_conversation(run, seen, Params())]


def with_runs(seen: View, *changes: dict[str, Any]) -> View:
    runs = tuple(msgspec.structs.replace(run, **change) for run, change in zip(seen.runs, changes, strict=True))
    return View(Timeline(seen.conversation_id, runs, seen.events))


def test_the_evidence_shows_both_runs() -> None:
    seen = view(*refund(10, host="a"), *refund(12, host="b", trace="new"))
    (evidence,) = found(seen)
    assert evidence.anchor == seen.runs[1].run_id
    assert evidence.details["hosts"] == ["a", "b"]
    assert [w["arguments"]["amount"] for w in evidence.details["other"]["writes"]] == [10]
    assert [w["arguments"]["amount"] for w in evidence.details["this"]["writes"]] == [12]


def test_a_retry_of_a_run_that_failed_is_explained() -> None:
    seen = view(*refund(10, trigger="job-1"), *refund(12, trigger="job-1", trace="new"))
    assert len(found(seen)) == 1
    assert found(with_runs(seen, {"error_type": "ServerError"}, {})) == []
    # ... but not one that began while the first was still at work
    start = seen.runs[0].start_time_unix_nano
    early = with_runs(seen, {"error_type": "ServerError", "end_time_unix_nano": start + 3600 * SECOND}, {})
    assert len(found(early)) == 1


def test_the_same_words_on_one_host_count_only_while_the_first_is_at_work() -> None:
    seen = view(*refund(10, host="a"), *refund(12, host="a", trace="new"))
    assert found(seen) == []
    at_once = with_runs(seen, {"end_time_unix_nano": seen.runs[1].start_time_unix_nano + 1}, {})
    assert len(found(at_once)) == 1


def test_two_triggers_are_two_deliveries_whatever_the_words() -> None:
    assert found(view(*refund(10, host="a", trigger="m-1"), *refund(12, host="b", trigger="m-2", trace="new"))) == []


@pytest.mark.parametrize(
    ("said", "kept"),
    [(ASKED, True), ("Refund my order, please.", False), ("Yes, refund 771.", False), ("Thanks! 12345", False)],
)
def test_only_words_that_tell_a_request_make_a_history_of_their_own(said: str, *, kept: bool) -> None:
    seen = view({"user": said}, {"tool": "issue_refund", "args": {"order": "OR-771"}, "result": {"ref": 1}})
    assert [history_kind(key) for key in history_keys(seen.calls[0], seen)] == ["request"] * kept


def test_a_trigger_and_a_key_make_histories_and_keys_do_not_show() -> None:
    call = {"tool": "issue_refund", "args": {"order": "OR-771"}, "key": "very-secret", "result": {"ref": 1}}
    seen = view({"user": "Go on.", "trigger": "job-1"}, call)
    keys = history_keys(seen.calls[0], seen)
    assert [history_kind(key) for key in keys] == ["request", "key"]
    assert not any("secret" in key or "job-1" in key for key in keys)
    entry_ = effect_entry(seen.calls[0], seen)
    assert entry_ is not None
    assert history_kind(entry_.effect_key) == "effect"
    assert entry_.histories == keys


def run(n: int, start: float, **facts: Any) -> EffectEntry:
    at = int(start * SECOND)
    usual = {"anchor": f"t{n}:1", "trace_id": f"t{n}", "run_id": f"t{n}:0", "conversation_id": f"c{n}", "trigger": "job-1",
             "request_digest": "words", "start_time_unix_nano": at, "end_time_unix_nano": at + SECOND}  # fmt: skip
    return entry(**{**usual, **facts})


def across(*entries: EffectEntry) -> list[str]:
    return [e.anchor for e in across_conversations(entries, Params())]


def test_runs_of_two_conversations_are_compared_and_those_of_one_are_not() -> None:
    assert across(run(1, 0), run(2, 100)) == ["t2:0"]
    assert across(run(1, 0), run(2, 100, conversation_id="c1")) == []
    assert across(run(1, 0), run(2, 100, environment="prod", agent_name="another")) == []
    assert across(run(1, 0, run_failed=True), run(2, 100)) == []
    assert across(run(1, 0, idempotency_key="k"), run(2, 100, idempotency_key="k")) == []


def test_overlapping_runs_of_a_schedule_are_told_and_runs_in_a_row_are_not() -> None:
    assert across(*(run(n, 600 * n) for n in range(6))) == []
    together = [run(n, 600 * n) for n in range(4)] + [run(9, 600 * 3 + 0.5)]
    assert across(*together) == ["t9:0"]


def test_the_order_of_entries_changes_nothing() -> None:
    entries = [run(n, 30 * n, host=f"h{n % 3}") for n in range(3)]
    shuffled = entries.copy()
    random.Random(3).shuffle(shuffled)
    assert handlings_of(shuffled) == handlings_of(entries)


def test_many_runs_of_one_trigger_are_compared_in_bounds() -> None:
    many = [run(n, 0.001 * n) for n in range(3_000)]
    assert len(across(*many)) == 2_999


def test_a_run_of_many_writes_is_in_the_history_of_its_request_with_the_first_ones() -> None:
    writes = [
        {"tool": "add_note", "args": {"order": f"OR-{n}", "text": str(n)}, "result": {"ok": n}} for n in range(30)
    ]
    seen = view({"user": ASKED}, *writes)
    assert [bool(history_keys(call, seen)) for call in seen.calls] == [True] * MAX_LISTED + [False] * 10
