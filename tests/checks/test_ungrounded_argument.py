"""The evidence of ungrounded_argument; when it fires is in rules/ungrounded_argument.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from otelmon.checks.lib.values import compact
from otelmon.checks.registry import run_check
from otelmon.checks.ungrounded_argument import Params, ungrounded_argument
from otelmon.vocabulary.finding import Evidence
from tests.checks.build import view
from tests.checks.real_runs import findings, records

TOOLS = {"tools": [{"name": "update_order", "effect": "write"}, {"name": "get_order", "effect": "read"}]}


def judged(*steps: dict[str, Any]) -> list[Evidence]:
    seen = view(*steps, catalogue=TOOLS)
    return run_check(ungrounded_argument, seen.calls[-1], seen, Params())


def test_one_evidence_lists_all_invented_values_and_the_lineage_of_the_rest() -> None:
    (found,) = judged(
        {"system": "Today is 2027-03-02."},
        {"user": "Update order WO-5."},
        {"tool": "update_order", "args": {"order": "WO-5", "due": "2031-05-14", "budget": 4200, "status": "open"}},
    )
    assert [item["path"] for item in found.details["arguments"]] == ["due", "budget", "status"]
    assert [(item["path"], item["source"]) for item in found.details["lineage"]] == [("order", "user")]
    assert found.severity == "high"


def test_a_status_alone_is_the_agents_own_choice() -> None:
    assert not judged({"user": "WO-5 is done."}, {"tool": "update_order", "args": {"order": "WO-5", "status": "x1"}})


def test_a_copied_example_is_named() -> None:
    (found,) = judged(
        {"define": {"name": "get_order", "description": "Get an order such as 'K-4711'."}},
        {"user": "Where is my order?"},
        {"tool": "get_order", "args": {"order_id": "K-4711"}},
    )
    assert found.details["from_tool_description"] == ["order_id"]


def test_a_date_without_a_stated_today_is_at_most_medium() -> None:
    steps: list[dict[str, Any]] = [
        {"user": "Pay WO-5."},
        {"tool": "update_order", "args": {"order": "WO-5", "date": "2019-09-14"}},
    ]
    (found,) = judged(*steps)
    assert found.severity == "medium"


def test_amounts_are_not_judged_on_reads() -> None:
    assert not judged({"user": "List cheap ones."}, {"tool": "get_order", "args": {"max_price": 730, "amount": 731}})


def test_arguments_that_can_not_be_seen_are_not_judged() -> None:
    assert not judged({"user": "Go."}, {"tool": "update_order", "args": {"order_id": "Q-7788"}, "fidelity": "hashed"})


@pytest.mark.data
def test_flagged_ids_of_real_runs_were_said_by_nobody(shared: Path, tmp_path: Path) -> None:
    runs = records(shared / "datasets" / "tau2_es" / "dev.jsonl.gz")
    flagged = invented = 0
    for run, found in zip(runs, findings(runs, "ungrounded_argument", tmp_path), strict=True):
        ids = [str(a["value"]) for f in found for a in f.evidence["arguments"] if a["role"] == "id"]
        flagged += len(ids)
        invented += sum(not _said_before_it_was_used(value, run["messages"]) for value in ids)
    assert flagged >= 10
    assert invented >= 0.98 * flagged


def _said_before_it_was_used(value: str, messages: list[dict[str, Any]]) -> bool:
    for message in messages:
        if value in str(message.get("tool_calls") or ""):
            return False
        words = {compact(word) for word in (message["content"] or "").split()}
        if message["role"] in ("system", "user") and compact(value) in words:
            return True
    return False
