"""ambiguous_selection beyond its inline tests: what makes a choice a guess, and what decides it."""

from __future__ import annotations

from typing import Any

import pytest

from otelmon.checks.ambiguous_selection import ambiguous_selection
from otelmon.checks.registry import NoParams
from otelmon.vocabulary.finding import Evidence
from tests.checks.build import view

Step = dict[str, Any]


def found(*events: Step) -> list[Evidence]:
    seen = view(*events)
    return [e for call in seen.calls for e in ambiguous_selection(call, seen, NoParams())]


def look_up(result: Any, **args: Any) -> Step:
    return {"tool": "find_person", "args": args, "result": result}


def send(person: Any, tool: str = "send_note", **args: Any) -> Step:
    return {"tool": tool, "args": {"person_id": person, **args}, "result": {"ok": True}}


ROWANS = {
    "ambiguous": True,
    "candidates": [{"id": "k-1", "name": "Rowan (yard)"}, {"id": "k-2", "name": "Rowan (office)"}],
}
TELL: Step = {"user": "Tell Rowan it is done."}


def test_a_flag_or_a_note_of_the_result_says_that_it_is_a_guess() -> None:
    (evidence,) = found(TELL, look_up(ROWANS, q="Rowan"), send("k-1"))
    assert evidence.details["matches"] == ["k-1", "k-2"]
    noted = {"matches": ROWANS["candidates"], "message": "multiple matches, please narrow down"}
    assert len(found(TELL, look_up(noted, q="R"), send("k-1"))) == 1


def test_a_plain_text_may_say_so() -> None:
    text = "Multiple matches: rowan.yard (id u-17), rowan.office (id u-18). Please narrow down."
    (evidence,) = found(TELL, look_up(text, q="Rowan"), send("u-17"))
    assert evidence.details["matches"] == ["u-17", "u-18"]
    assert found({"user": "Tell u-17, Rowan, it is done."}, look_up(text, q="Rowan"), send("u-17")) == []
    assert found(TELL, look_up("One match: rowan.yard (id u-17)", q="Rowan"), send("u-17")) == []


@pytest.mark.parametrize(
    ("said", "taken"),
    [
        ("Tell Rowan from the office it is done.", "k-2"),
        ("Tell whichever Rowan you find.", "k-1"),
        ("Tell both Rowans.", "k-1"),
    ],
)
def test_the_words_of_the_user_decide(said: str, taken: str) -> None:
    assert found({"user": said}, look_up(ROWANS, q="Rowan"), send(taken)) == []


def test_the_words_decide_for_another_one_than_was_taken() -> None:
    assert len(found({"user": "Tell Rowan from the office it is done."}, look_up(ROWANS, q="Rowan"), send("k-1"))) == 1


def test_the_only_exact_name_is_no_guess() -> None:
    two = {"ambiguous": True, "candidates": [{"id": "k-1", "name": "Rowan"}, {"id": "k-2", "name": "Rowan Smith"}]}
    assert found(TELL, look_up(two, q="Rowan"), send("k-1")) == []
    assert len(found(TELL, look_up(two, q="Rowan"), send("k-2"))) == 1


def test_two_accounts_of_one_address() -> None:
    two = [{"person_id": n, "email": "kim@example.com"} for n in (1001, 1002)]
    asked: Step = {"user": "Reset the password of kim@example.com"}
    assert len(found(asked, look_up(two, email="kim@example.com"), send(1001, "reset_password"))) == 1
    other = [two[0], {"person_id": 1002, "email": "kimberly@example.com"}]
    assert found(asked, look_up(other, email="kim@example.com"), send(1001, "reset_password")) == []


def test_a_thing_of_a_kind_may_be_any_of_it() -> None:
    papers = look_up([{"sku": "P-1", "name": "Paper A4"}, {"sku": "P-2", "name": "Paper A5"}], q="paper")
    order = {"tool": "create_order", "args": {"sku": "P-1"}, "result": {"ok": True}}
    assert found({"user": "Order paper for the printer."}, papers, order) == []
    kims = look_up([{"sku": "C-1", "name": "Kim Novak"}, {"sku": "C-2", "name": "Kim Novak"}], q="Kim Novak")
    bill = {"tool": "create_bill", "args": {"sku": "C-1"}, "result": {"ok": True}}
    assert len(found({"user": "Make a bill for Kim Novak."}, kims, bill)) == 1


def test_a_later_turn_has_been_asked_about() -> None:
    assert (
        found(TELL, look_up(ROWANS, q="Rowan"), {"assistant": "Which one?"}, {"user": "That one."}, send("k-1")) == []
    )
