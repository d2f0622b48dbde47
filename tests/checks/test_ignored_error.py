"""The evidence of ignored_error; when it fires is in rules/ignored_error.yaml."""

from __future__ import annotations

from typing import Any

import pytest

from otelmon.checks.ignored_error import Params, ignored_error
from otelmon.checks.registry import run_check
from otelmon.vocabulary.finding import Evidence
from tests.checks.build import view

ASKED = {"user": "Create repo lamp and push main.c."}
MISSED = {"tool": "create_repo", "args": {"name": "lamp"}, "outcome": "failed", "error": "quota exceeded", "id": "c1"}
PUSHED = {"tool": "push_files", "args": {"repo": "lamp", "files": ["main.c"]}, "result": {"ok": True}}


def judged(*steps: dict[str, Any]) -> list[Evidence]:
    seen = view(*steps)
    return run_check(ignored_error, seen.calls[-1], seen, Params())


def test_the_evidence_names_the_failed_call_and_what_is_shared() -> None:
    (found,) = judged(ASKED, MISSED, PUSHED)
    assert found.details["failed"]["tool_call_id"] == "c1"
    assert found.details["failed"]["error"] == "quota exceeded"
    assert found.details["shared"] == ["repo=lamp"]
    assert found.severity == "high"
    assert len(found.span_ids) == 2


@pytest.mark.parametrize("outcome", ["failed", "unknown", "denied"])
def test_every_outcome_that_is_no_success_counts(outcome: str) -> None:
    assert judged(ASKED, {**MISSED, "outcome": outcome}, PUSHED)


def test_calls_of_one_batch_do_not_see_each_other() -> None:
    asked = [{"tool": "create_repo"}, {"tool": "push_files"}]
    assert not judged(ASKED, {"assistant": "", "calls": asked}, MISSED, PUSHED)


def test_an_unknown_verb_only_matters_before_what_can_not_be_undone() -> None:
    backup = {"tool": "backup_db", "args": {"db": "shop"}, "outcome": "failed", "error": "disk full", "effect": "write"}
    drop = {"tool": "delete_db", "args": {"db": "shop"}, "result": {"ok": True}}
    touch = {"tool": "update_label", "args": {"db": "shop"}, "result": {"ok": True}}
    assert judged({"user": "Go."}, backup, drop)
    assert not judged({"user": "Go."}, backup, touch)


def test_a_refund_after_a_failed_cancellation_stands_on_it() -> None:
    missed = {"tool": "cancel_order", "args": {"order": "A-7"}, "outcome": "failed", "error": "shipped"}
    assert judged({"user": "Go."}, missed, {"tool": "refund_order", "args": {"order": "A-7"}, "result": {"ok": 1}})
    assert not judged({"user": "Go."}, missed, {"tool": "update_order", "args": {"order": "A-7"}, "result": {"ok": 1}})


def test_a_denied_write_did_not_use_anything() -> None:
    assert not judged(ASKED, MISSED, {**PUSHED, "outcome": "denied"})


def test_other_things_are_not_shared() -> None:
    assert not judged(ASKED, MISSED, {"tool": "push_files", "args": {"repo": "moon"}, "result": {"ok": True}})


def test_a_success_that_is_only_asserted_needs_nothing_shared() -> None:
    missed = {"tool": "create_user", "args": {"login": "zed"}, "outcome": "failed", "error": "invalid email"}
    said = {"assistant": "User created. Assigning the role.", "calls": [{"tool": "assign_role"}]}
    (found,) = judged(
        {"user": "Go."}, missed, said, {"tool": "assign_role", "args": {"role": "x"}, "result": {"ok": 1}}
    )
    assert found.details["asserted"] == "user created."


@pytest.mark.parametrize("answer", ["rollback_migration", "notify_operator", "transfer_to_human", "delete_repo"])
def test_undoing_telling_and_handing_over_answer_the_failure(answer: str) -> None:
    assert not judged(ASKED, MISSED, {"tool": answer, "args": {"name": "lamp"}, "result": {"ok": True}})
