"""loop beyond its inline tests."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otelmon.checks.loop import Params, loop
from otelmon.checks.view import View
from otelmon.vocabulary.finding import Evidence
from tests.checks.build import view

USER = {"user": "Plan the stock count."}


def step(name: str, n: int = 0, **more: Any) -> dict[str, Any]:
    return {"tool": name, "args": {"n": n}, "result": "unchanged", **more}


def found(seen: View, params: Params | None = None) -> list[Evidence]:
    return [e for call in seen.calls for e in loop(call, seen, params or Params())]


def test_one_finding_a_cycle_however_long_it_goes_on() -> None:
    seen = view(USER, *[step("set_items")] * 300)
    (evidence,) = found(seen)
    assert evidence.anchor == seen.calls[3].key
    assert (evidence.details["period"], evidence.details["rounds"]) == (1, 300)
    assert evidence.details["other"]["anchor"] == seen.calls[0].key


def test_a_longer_cycle_is_told_by_its_shortest_period() -> None:
    seen = view(USER, *[step("edit_file"), step("run_tests")] * 8)
    (evidence,) = found(seen)
    assert evidence.anchor == seen.calls[5].key
    assert evidence.details["period"] == 2
    assert [c["tool_name"] for c in evidence.details["calls"]] == ["edit_file", "run_tests"]


def test_a_cycle_that_begins_again_after_something_else_is_another() -> None:
    four = [step("set_items")] * 4
    seen = view(USER, *four, step("get_plan"), *four)
    assert [e.anchor for e in found(seen)] == [seen.calls[3].key, seen.calls[8].key]


def test_a_single_call_that_repeats_inside_a_longer_cycle() -> None:
    seen = view(USER, *[step("edit_file"), step("edit_file"), step("run_tests")] * 3)
    (evidence,) = found(seen)
    assert (evidence.anchor, evidence.details["period"]) == (seen.calls[8].key, 3)


def test_two_agents_at_work_are_two_sequences() -> None:
    one, two = step("set_items", agent="a"), step("get_plan", agent="b", run="new")
    seen = view(USER, *[one] * 3, *[two] * 3)
    assert found(seen) == []


@pytest.mark.parametrize("fidelity", ["absent", "truncated", "hashed"])
def test_a_read_whose_answer_can_not_be_seen_may_get_on(fidelity: str) -> None:
    read = {"tool": "get_plan", "args": {"n": 1}, "result_fidelity": fidelity}
    assert found(view(USER, *[read] * 6)) == []
    assert len(found(view(USER, *[{**read, "error": "no"}] * 6))) == 1


def test_a_step_without_arguments_gets_on_and_a_read_does_not() -> None:
    assert found(view(USER, *[{"tool": "next_page", "args": {}, "result": "ok"}] * 6)) == []
    assert len(found(view(USER, *[{"tool": "list_files", "args": {}, "result": "ok"}] * 6))) == 1


def test_notes_to_itself_with_other_words_are_no_cycle() -> None:
    thoughts = [{"tool": "think", "args": {"thought": f"step {n}"}, "result": ""} for n in range(6)]
    assert found(view(USER, *thoughts)) == []
    assert len(found(view(USER, *[thoughts[0]] * 6))) == 1


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 2), max_size=30))
def test_what_is_found_really_goes_round(numbers: list[int]) -> None:
    seen = view(USER, *(step("set_items", n) for n in numbers), {"assistant": "Done."})
    anchors = [e.anchor for e in found(seen)]
    assert len(anchors) == len(set(anchors))
    for evidence in found(seen):
        place = next(n for n, call in enumerate(seen.calls) if call.key == evidence.anchor)
        period = evidence.details["period"]
        rounds = 4 if period == 1 else 3
        last = numbers[place + 1 - period : place + 1]
        assert numbers[place + 1 - rounds * period : place + 1] == last * rounds


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 2), max_size=30), st.integers(0, 2))
def test_four_equal_calls_in_a_row_are_never_missed(numbers: list[int], last: int) -> None:
    seen = view(USER, *(step("set_items", n) for n in [*numbers, last, last, last, last]))
    places = {e.anchor for e in found(seen)}
    assert any(call.key in places for call in seen.calls)
