"""The evidence of false_success; when it fires is in rules/false_success.yaml."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from otelmon.checks.false_success import Params, claimed_by_sub_agent, claimed_in_messages
from otelmon.checks.registry import run_check
from otelmon.vocabulary.finding import Evidence
from tests.checks.build import view
from tests.checks.real_runs import findings, records


def judged(*steps: dict[str, Any], catalogue: dict[str, Any] | None = None, **params: bool) -> list[Evidence]:
    seen = view(*steps, catalogue=catalogue)
    return [e for run in seen.runs for e in run_check(claimed_in_messages, run, seen, Params(**params))]


CANCEL = {"user": "Cancel order A-77."}
FAILED = {"tool": "cancel_order", "args": {"order": "A-77"}, "outcome": "failed", "error": "locked"}
SAID = {"assistant": "Your order A-77 has been cancelled."}


def test_the_evidence_sets_claim_and_call_side_by_side() -> None:
    (found,) = judged(CANCEL, FAILED, SAID)
    (claim,) = found.details["claims"]
    assert claim["verb"] == "cancelled"
    assert claim["tried"][0]["tool"] == "cancel_order"
    assert claim["tried"][0]["outcome"] == "failed"
    assert claim["other"]
    assert found.span_ids == (found.anchor,)


@pytest.mark.parametrize("outcome", ["failed", "unknown", "pending", "denied"])
def test_only_success_makes_a_claim_true(outcome: str) -> None:
    assert judged(CANCEL, {**FAILED, "outcome": outcome}, SAID)
    assert not judged(CANCEL, {"tool": "cancel_order", "args": {"order": "A-77"}}, SAID)


@pytest.mark.parametrize(
    "between",
    [
        {"tool": "get_order", "args": {"order": "A-77"}, "result": {"status": "cancelled"}},
        {"tool": "run_sql", "args": {"sql": "update orders set state='x' where id='A-77'"}, "result": {"rows": 1}},
        {"tool": "delegate_task", "args": {"task": "cancel A-77"}, "result": "ok", "nested_calls": 2},
        {"tool": "update_order", "args": {"order": "A-77", "status": "cancelled"}, "result": {"ok": True}},
        {"context": "order A-77: cancelled by the shop"},
    ],
)
def test_the_effect_may_come_by_another_route(between: dict[str, Any]) -> None:
    assert not judged(CANCEL, between, SAID)


def test_a_started_task_that_was_read_as_finished_is_done() -> None:
    start = {"tool": "cancel_order", "args": {"order": "A-77"}, "outcome": "pending", "result": {"task": "tsk-81"}}
    poll = {"tool": "get_task", "args": {"task": "tsk-81"}, "result": {"status": "completed"}}
    assert judged(CANCEL, start, SAID)
    assert not judged(CANCEL, start, poll, SAID)


def test_another_record_than_the_claimed_one() -> None:
    other = {"tool": "cancel_order", "args": {"order": "B-12"}, "result": {"ok": True}}
    assert judged(CANCEL, FAILED, other, SAID)


def test_each_claimed_record_must_be_reached() -> None:
    done = {"tool": "cancel_order", "args": {"order": "B-12"}, "result": {"ok": True}}
    both = {"assistant": "Orders A-77 and B-12 have been cancelled."}
    one = {"assistant": "Order B-12 has been cancelled, but A-77 could not be."}
    assert judged(CANCEL, FAILED, done, both)
    assert not judged(CANCEL, FAILED, done, one)


def test_a_message_that_went_to_another_address() -> None:
    asked = {"user": "Mail kitchen@example.com that lunch is ready."}
    sent = {"tool": "send_email", "args": {"to": "relay@example.org", "body": "x"}, "result": {"ok": True}}
    assert judged(asked, sent, {"assistant": "I mailed kitchen@example.com."})
    assert not judged(asked, sent, {"assistant": "I mailed relay@example.org."})


def test_a_thing_with_a_tool_of_its_own_is_not_covered_by_another_write() -> None:
    tools = {
        "tools": [
            {"name": "update_trip_flights", "effect": "write"},
            {"name": "update_trip_baggages", "effect": "write"},
        ]
    }
    done = {"tool": "update_trip_flights", "args": {"trip": "T-1", "flights": ["X"]}, "result": {"ok": True}}
    said = {"assistant": "Your trip has been updated and 3 checked bags have been added."}
    assert judged({"user": "Go."}, done, said, catalogue=tools)
    listed = {"assistant": "Your trip has been updated with the new flights and one checked bag."}
    assert judged({"user": "Go."}, done, listed, catalogue=tools)
    assert not judged({"user": "Go."}, done, {"assistant": "Your trip has been updated."}, catalogue=tools)


def test_a_tool_whose_name_has_the_verb_covers_things_of_other_tools() -> None:
    tools = {
        "tools": [{"name": "send_money", "effect": "destructive"}, {"name": "schedule_transaction", "effect": "write"}]
    }
    sent = {"tool": "send_money", "args": {"amount": 5}, "result": {"ok": True}}
    said = {"assistant": "I have sent the transaction."}
    assert not judged({"user": "Go."}, sent, said, catalogue=tools)
    assert judged({"user": "Go."}, {**sent, "tool": "send_money", "outcome": "failed"}, said, catalogue=tools)


def test_a_description_may_tell_of_a_further_effect() -> None:
    read = {"tool": "get_emails", "args": {}, "result": [{"id": 7, "subject": "hi"}], "effect": "read"}
    said = {"assistant": "All the emails have been marked as read."}
    tool = {"name": "get_emails", "effect": "read"}
    marks = {**tool, "description": "Returns all emails. The tool marks the emails as read."}
    assert judged({"user": "Go."}, read, said, catalogue={"tools": [tool]})
    assert not judged({"user": "Go."}, read, said, catalogue={"tools": [marks]})


def test_the_catalogues_words_make_a_tool_the_cause() -> None:
    tool = {"name": "zap", "effect": "write"}
    call = {"tool": "zap", "args": {"x": 1}, "result": {"ok": True}}
    said = {"assistant": "The tickets have been emailed to you."}
    assert judged({"user": "Go."}, call, said, catalogue={"tools": [{**tool, "description": "Book a seat."}]})
    assert not judged({"user": "Go."}, call, said, catalogue={"tools": [{**tool, "claims": ["emailed"]}]})


def test_a_draft_that_asks_for_a_yes_is_no_claim() -> None:
    draft = {"assistant": "I've updated the booking details. Please confirm before I proceed."}
    assert not judged({"user": "Add Ann."}, draft)


@pytest.mark.parametrize(
    ("said", "false"),
    [
        ("I created report.csv for you.", True),
        ("I created tidy.py for you.", False),
        ("I created the node.js project.", False),
    ],
)
def test_created_files_must_be_in_a_call(said: str, false: bool) -> None:
    wrote = {"tool": "write_file", "args": {"path": "tidy.py", "text": "x"}, "result": {"ok": True}}
    assert bool(judged({"user": "Tidy."}, wrote, {"assistant": said})) is false


def test_denying_a_write_that_was_undone_is_honest() -> None:
    made = {"tool": "create_table", "args": {"table": "t77"}, "result": {"id": "t77"}}
    undone = {"tool": "delete_table", "args": {"table": "t77"}, "result": {"ok": True}}
    denied = {"assistant": "The check is finished; nothing was created."}
    assert judged({"user": "Try."}, made, denied)
    assert not judged({"user": "Try."}, made, undone, denied)


def test_the_sub_agents_finding_points_at_its_call() -> None:
    seen = view(
        {"user": "Look."},
        {"tool": "run_subagent", "args": {"task": "look"}, "nested_calls": 0, "result": "I read all 14 files."},
        {"assistant": "All fine."},
    )
    (found,) = run_check(claimed_by_sub_agent, seen.calls[0], seen, Params())
    assert found.anchor == seen.calls[0].key
    assert found.severity == "medium"


@pytest.mark.parametrize(("nested", "said"), [(None, "I read it."), (3, "I read it."), (0, "The file is empty.")])
def test_sub_agents_that_worked_or_claim_nothing(nested: int | None, said: str) -> None:
    seen = view({"user": "Look."}, {"tool": "run_subagent", "args": {}, "nested_calls": nested, "result": said})
    assert not run_check(claimed_by_sub_agent, seen.calls[0], seen, Params())


@pytest.mark.data
def test_hand_read_statements(shared: Path, tmp_path: Path) -> None:
    """Every statement read as false by hand is found, and none of the honest ones is."""
    folder = shared / "datasets"
    items = json.loads((folder / "claims_dev.json").read_text("utf-8"))["items"]
    wanted = {item["id"] for item in items}
    runs = [r for name in ("tau2", "taubench") for r in records(folder / name / "dev.jsonl.gz") if r["id"] in wanted]
    found = dict(zip([run["id"] for run in runs], findings(runs, "false_success", tmp_path), strict=True))
    messages = {run["id"]: run["messages"] for run in runs}
    for item in items:
        text = _plain(messages[item["id"]][item["msg"]]["content"])
        sentences = [c["claim"] for f in found[item["id"]] for c in f.evidence["claims"]]
        assert any(_plain(sentence) in text for sentence in sentences) is item["verdict"], item


def _plain(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())
