"""What people's words ask for, in three languages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otelmon.checks.lib.wording import MANY, agrees, asked_count, is_status_question, only_thanks, says


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Refund 18.50 on order OR-771.", 1),
        ("Comment 'parts arrived' on item WI-31.", 1),
        ("I have two cats; book the room.", 1),
        ("Create 2 separate records for BRK-9.", 2),
        ("Send it twice.", 2),
        ("Book two rooms.", 2),
        ("Add three identical rooms, please", 3),
        ("One per pallet, please.", MANY),
        ("Move it to 2024-05-15 at 10:00. Rooms are free.", 1),
        ("It is the 15. Rooms are free.", 1),
        ("Book 2 rooms", 2),
        ("Room no. 2, description follows", 1),
        ("Reserva dos salas iguales", 2),
        ("Envíalo dos veces", 2),
        ("una por cada palé", MANY),
        ("Buche zwei gleiche Zimmer", 2),
        ("Bitte zweimal buchen", 2),
        ("je eine pro Palette", MANY),
        ("", 1),
    ],
)
def test_how_often(text: str, count: int) -> None:
    assert asked_count(text, "book_room", {"room": "Cedar"}) == count


def test_a_number_counts_only_with_what_the_call_is_about() -> None:
    assert asked_count("two rooms", "book_room") == 2
    assert asked_count("two rooms", "send_mail") == 1


@pytest.mark.parametrize(
    "text", ["again please", "do it once more", "otra vez", "bitte nochmal", "resend it", "repítelo"]
)
def test_again(text: str) -> None:
    assert says("again", text) or says("more", text)


@pytest.mark.parametrize("text", ["against", "agains the wall", "retrying", "other", "morning", "Extraordinary"])
def test_parts_of_words_are_no_words(text: str) -> None:
    assert not says("again", text)
    assert not says("more", text)


@pytest.mark.parametrize(
    "text",
    [
        "Yes, go ahead",
        "Sí, adelante",
        "Ja, gerne",
        "ok",
        "I confirm.",
        "No problem, go ahead.",
        "Kein Problem, ja",
        "Yes, can you cancel it?",
        "That works. What is next?",
        "“Yes” — please do",
    ],
)
def test_a_yes(text: str) -> None:
    assert agrees(text)


@pytest.mark.parametrize(
    "text",
    [
        "No, that is not right.",
        "nein, ok nicht",
        "Stop. yes I mean it",
        "maybe",
        "yesterday",
        "That is not ok.",
        "Are you sure?",
        "Is that ok?",
        "Before I confirm, tell me the price.",
        "nicht in ordnung",
        "I will confirm later",
        "no, espera",
    ],
)
def test_no_yes(text: str) -> None:
    assert not agrees(text)


def test_questions_and_thanks_ask_for_nothing() -> None:
    assert is_status_question("Did it go through?")
    assert is_status_question("¿Ya se hizo?")
    assert not is_status_question("Refund it.")
    assert not is_status_question("Did it? Then send another one?")
    assert only_thanks("Thanks a lot!")
    assert only_thanks("danke dir")
    assert not only_thanks("Cancel it")


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    assert asked_count(text) >= 1
    assert isinstance(agrees(text), bool)
