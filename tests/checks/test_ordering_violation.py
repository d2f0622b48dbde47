"""ordering_violation beyond its inline tests."""

from __future__ import annotations

from typing import Any

import pytest

from otelmon.checks.ordering_violation import Params, ordering_violation
from otelmon.checks.view import View
from otelmon.vocabulary.finding import Evidence
from tests.checks.build import view

USER = {"user": "Close ticket T-7."}
LOOK: dict[str, Any] = {"tool": "get_ticket", "args": {"id": "T-7"}, "result": {"status": "open"}}
WRITE: dict[str, Any] = {"tool": "update_ticket", "args": {"id": "T-7", "status": "closed"}, "result": {"ok": True}}
LAW: dict[str, Any] = {"id": "look", "action": "after", "tools": ["update_ticket"], "calls": ["get_ticket"]}


def found(seen: View, params: Params | None = None) -> list[Evidence]:
    return [e for call in seen.calls for e in ordering_violation(call, seen, params or Params())]


def law(**more: Any) -> dict[str, Any]:
    return {"tools": [], "policy": [{**LAW, **more}]}


def told(description: str = "", system: str = "", name: str = "update_ticket") -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = [{"system": system}] if system else []
    steps += [{"define": {"name": "get_ticket", "description": "Read a ticket."}}]
    return [*steps, {"define": {"name": name, "description": description}}, USER]


def test_the_evidence_says_what_was_missing_and_where_it_came() -> None:
    seen = view(USER, WRITE, LOOK, catalogue=law(reason="tickets move"))
    (evidence,) = found(seen)
    assert evidence.anchor == seen.calls[0].key
    assert (evidence.details["policy"], evidence.details["required"]) == ("look", "get_ticket")
    assert evidence.details["later"]["anchor"] == seen.calls[1].key
    assert evidence.details["says"] == "tickets move"


def test_each_missing_call_is_a_finding() -> None:
    both = law(calls=["get_ticket", "verify_*"])
    assert [e.key for e in found(view(USER, WRITE, catalogue=both))] == ["look:get_ticket", "look:verify_*"]
    known = {"tool": "verify_caller", "args": {}, "result": {"ok": True}}
    assert [e.key for e in found(view(USER, known, WRITE, catalogue=both))] == ["look:get_ticket"]


@pytest.mark.parametrize(
    ("look", "fires"),
    [
        (LOOK, False),
        ({**LOOK, "outcome": "pending"}, False),
        ({**LOOK, "outcome": "unknown"}, True),
        ({**LOOK, "error": "503"}, True),
        ({**LOOK, "args": {"id": "T-8"}}, True),
        ({**LOOK, "args": {"id": ["T-8", "T-7"]}}, False),
        ({**LOOK, "args": {"query": "lift"}}, False),
        ({**LOOK, "took": 60}, True),  # it had not answered yet
    ],
)
def test_what_counts_as_the_earlier_call(look: dict[str, Any], *, fires: bool) -> None:
    assert bool(found(view(USER, look, WRITE, catalogue=law()))) is fires


@pytest.mark.parametrize(
    ("more", "severity"),
    [({}, "high"), ({"error": "no"}, "low"), ({"outcome": "denied"}, "low"), ({"outcome": "unknown"}, "high")],
)
def test_an_attempt_that_was_refused_weighs_less(more: dict[str, Any], severity: str) -> None:
    assert [e.severity for e in found(view(USER, {**WRITE, **more}, catalogue=law()))] == [severity]
    assert [e.severity for e in found(view(USER, {**WRITE, **more}, catalogue=law(severity="info")))] == ["info"]


@pytest.mark.parametrize(
    ("description", "fires"),
    [
        ("Update a ticket. You must call get_ticket first.", True),
        ("Requires a call of get_ticket.", True),
        ("Always use `get_ticket` before this tool.", True),
        ("Never use this without calling get_ticket.", True),
        ("Must be called after get_ticket.", True),
        ("Use only after get_ticket.", True),
        ("You may call get_ticket first.", False),
        ("Call get_ticket first if the ticket is not known.", False),
        ("Needs the revision returned by get_ticket.", False),
        ("Do not call get_ticket first.", False),
        ("See also get_ticket.", False),
        ("Call get_record first.", False),
    ],
)
def test_descriptions_that_demand_an_order(description: str, *, fires: bool) -> None:
    hits = found(view(*told(description), WRITE))
    assert bool(hits) is fires
    assert found(view(*told(description), LOOK, WRITE)) == []


@pytest.mark.parametrize(
    ("system", "fires"),
    [
        ("Always call get_ticket before update_ticket.", True),
        ("Never call update_ticket before get_ticket.", True),
        ("Do not use update_ticket without calling get_ticket.", True),
        ("update_ticket must only be used after get_ticket.", True),
        ("Call get_ticket before updating a ticket.", True),
        ("Call get_ticket before you go home.", False),
        ("You can call get_ticket before update_ticket.", False),
        ("Use get_ticket and update_ticket.", False),
        ("Always call update_ticket before get_ticket.", False),
    ],
)
def test_instructions_that_demand_an_order(system: str, *, fires: bool) -> None:
    assert bool(found(view(*told(system=system), WRITE))) is fires
    assert found(view(*told(system=system), WRITE), Params(documented=False)) == []


def test_a_policy_is_not_told_twice() -> None:
    demanding = told("You must call get_ticket first.")
    assert [e.key for e in found(view(*demanding, WRITE, catalogue=law()))] == ["look:get_ticket"]


def test_a_plain_word_is_a_name_only_in_quotes() -> None:
    def steps(text: str) -> list[dict[str, Any]]:
        return [{"define": {"name": "search"}}, {"define": {"name": "update_ticket", "description": text}}, USER, WRITE]

    assert found(view(*steps("Always call search first."))) == []
    assert len(found(view(*steps("Always call `search` first.")))) == 1


@pytest.mark.parametrize(
    ("late", "fires"),
    [
        ({"tool": "read_file", "args": {"path": "s.txt"}, "error": "empty"}, True),
        ({"tool": "append_file", "args": {"path": "s.txt"}, "error": "no such file"}, True),
        ({"tool": "append_file", "args": {"path": "s.txt"}, "error": "read-only"}, False),
        ({"tool": "read_file", "args": {"path": "s.txt"}, "outcome": "unknown"}, False),
        ({"tool": "read_file", "args": {"path": "s.txt"}, "result": "ok"}, False),
    ],
)
def test_what_a_race_breaks(late: dict[str, Any], *, fires: bool) -> None:
    write = {"tool": "write_file", "args": {"path": "s.txt", "text": "ok"}, "result": {"ok": True}, "took": 9}
    assert bool(found(view(USER, write, {**late, "parallel": True}))) is fires
    assert found(view(USER, {**write, "error": "disk full"}, {**late, "parallel": True})) == []
