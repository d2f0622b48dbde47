"""redundant_read beyond its inline tests."""

from __future__ import annotations

from typing import Any

import pytest

from otelmon.checks.redundant_read import Params, redundant_read
from otelmon.checks.view import View
from otelmon.vocabulary.finding import Evidence
from tests.checks.build import view

USER = {"user": "Where is order A-1?"}
READ = {"tool": "get_order", "args": {"id": "A-1"}, "result": {"status": "sent"}}


def found(seen: View, params: Params | None = None) -> list[Evidence]:
    return [e for call in seen.calls for e in redundant_read(call, seen, params or Params())]


def test_the_evidence_shows_the_first_read_and_counts() -> None:
    seen = view(USER, READ, READ, READ)
    evidence = found(seen)[-1]
    assert evidence.anchor == seen.calls[2].key
    assert evidence.details["times"] == 3
    assert evidence.details["other"]["anchor"] == seen.calls[0].key


@pytest.mark.parametrize("name", ["update_order", "bash", "wait"])
def test_what_may_have_changed_the_answer(name: str) -> None:
    assert found(view(USER, READ, {"tool": name, "args": {"x": 1}, "result": {"ok": True}}, READ)) == []


@pytest.mark.parametrize(
    "between",
    [
        {"tool": "update_order", "args": {"id": "A-1"}, "error": "no"},
        {"tool": "get_carrier", "args": {"id": 7}, "result": {"ok": True}},
        {"assistant": "Let me look."},
    ],
)
def test_what_changed_nothing(between: dict[str, Any]) -> None:
    assert len(found(view(USER, READ, between, READ))) == 1


@pytest.mark.parametrize(
    ("result", "fires"),
    [
        ({"status": "sent", "took_ms": 12}, True),
        ({"status": "lost"}, False),
        ({"status": "sent", "id": 7}, False),
        ({"status": "sent", "stops": [1]}, False),
    ],
)
def test_only_times_and_request_ids_may_differ(result: dict[str, Any], *, fires: bool) -> None:
    assert bool(found(view(USER, READ, {**READ, "result": result}))) is fires


def test_a_read_without_a_visible_answer_is_no_repeat() -> None:
    blank = {"tool": "get_order", "args": {"id": "A-1"}}
    assert found(view(USER, blank, blank)) == []


def test_one_request_executed_twice_is_not_the_agents_choice() -> None:
    asked = {"assistant": "", "calls": [{"tool": "get_order", "id": "c1"}]}
    once = {**READ, "id": "c1"}
    assert found(view(USER, asked, once, {**once, "parallel": True})) == []
    assert len(found(view(USER, asked, once, asked, once))) == 1


def test_a_long_record_with_a_status_is_no_task() -> None:
    record = {f"field_{n}": n for n in range(12)} | {"status": "pending"}
    assert len(found(view(USER, {**READ, "result": record}, {**READ, "result": record}))) == 1
    task = {"tool": "get_job", "args": {"id": "A-1"}, "result": record}
    assert found(view(USER, task, task)) == []


def test_without_user_text_every_run_is_a_stretch_of_its_own() -> None:
    assert found(view(READ, {**READ, "run": "new"})) == []
    assert len(found(view(READ, READ))) == 1


def test_writes_and_unknown_tools_are_left_alone() -> None:
    for name in ("set_status", "frobnicate"):
        step = {"tool": name, "args": {"id": "A-1"}, "result": {"ok": True}}
        assert found(view(USER, step, step)) == []
