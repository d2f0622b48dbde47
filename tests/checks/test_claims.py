"""What messages claim: wording in three languages, and what is no claim."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otelmon.checks.lib.claims import MAX_CLAIMS, read_message, spoken
from otelmon.checks.lib.claims_language import already_there, language_of
from otelmon.checks.lib.claims_match import alike


def claimed(text: str) -> list[str]:
    return [claim.verb for claim in read_message(text).claims if not claim.denies]


@pytest.mark.parametrize(
    ("text", "verbs"),
    [
        ("Your order has been cancelled.", ["cancelled"]),
        ("I've booked the room.", ["booked"]),
        ("I have now successfully updated your address.", ["updated"]),
        ("I created the repo and pushed main.c.", ["created", "pushed"]),
        ("The room is now booked and a reminder is set.", ["booked", "set"]),
        ("Refunded 18.50 on A-7.", ["refunded"]),
        ("Repository created, pushing.", ["created"]),
        ("I told Rowan.", ["told"]),
        ("I've gone ahead and booked the room.", ["booked"]),
        ("Your appointment is confirmed.", ["confirmed"]),
        ("I can confirm that the table has been reserved.", ["reserved"]),
        ("The downgrade to economy on May 19 has been processed.", ["processed"]),
        ("Ihre Buchung wurde storniert.", ["storniert"]),
        ("Ich habe die Rechnung an Eva verschickt.", ["verschickt"]),
        ("Su reserva ha sido cancelada.", ["cancelada"]),
        ("Hemos enviado el correo a su cuenta.", ["enviado"]),
        ("Se ha actualizado la dirección de envío.", ["actualizado"]),
        ("Ya se envió el correo a su cuenta.", ["envio"]),
        ("El pago se realizó con éxito.", ["realizo"]),
        ("Los pedidos se cancelaron.", ["cancelaron"]),
        ("Acabo de registrar su reclamo.", ["registrar"]),
        ("Die Rückerstattung von 18,50 € wurde veranlasst.", ["veranlasst"]),
    ],
)
def test_what_is_said_to_be_done(text: str, verbs: list[str]) -> None:
    assert claimed(text) == verbs


@pytest.mark.parametrize(
    "text",
    [
        "I will cancel your order.",
        "I've confirmed your user id.",
        "I can cancel it for you. The script can create report.csv too.",
        "Would you like me to cancel it? Has it been cancelled?",
        "The order has not been cancelled. I couldn't cancel it.",
        "Once your payment has been received, I'll ship it. If it has been cancelled, tell me.",
        "You have booked two rooms. They have cancelled the tour. The airline has cancelled the flight.",
        "Refunds are possible when one of these applies:\n- The flight has been cancelled\n- The seat was changed",
        'The customer said "the whole order has been cancelled by them" to me.',
        "It needs to be cancelled first, and it should have been removed.",
        "Please check the updated list of your cancelled orders.",
        "You will receive a confirmation e-mail.",
        "I wrote a short summary below.",
        "Ich werde die Buchung stornieren. Die Buchung wurde nicht storniert. Soll ich sie stornieren?",
        "Voy a cancelar su reserva. No se ha cancelado nada. ¿Desea que la cancele?",
    ],
)
def test_what_is_no_claim(text: str) -> None:
    assert claimed(text) == []


@pytest.mark.parametrize(
    ("text", "denies"),
    [
        ("No data was changed and the freeze was respected.", True),
        ("Cancelled; nothing was published.", True),
        ("Nothing has been deleted.", True),
        ("The database was not modified.", True),
        ("I did not delete anything.", True),
        ("I did not find anything.", False),
        ("No changes were made to the production database.", True),
        ("Es wurden keine Daten geändert.", True),
        ("Ningún archivo fue eliminado.", True),
        ("No changes were made to the other booking.", False),
        ("No further changes were made.", False),
        ("No issues were found.", False),
        ("Nothing else was changed.", False),
    ],
)
def test_what_denies_any_effect(text: str, denies: bool) -> None:
    assert any(claim.denies for claim in read_message(text).claims) is denies


def test_a_claim_carries_what_it_speaks_of() -> None:
    (claim,) = read_message("I emailed the invoice INV-77 to eva@example.com.").claims
    assert claim.active
    assert claim.classes == {"send"}
    assert claim.nouns[0] == "invoice"
    assert claim.emails == ("eva@example.com",)
    assert "inv-77" in claim.ids
    (saved,) = read_message("I saved the results in out/readings_clean.csv and findings.md.").claims
    assert saved.files == ("out/readings_clean.csv", "findings.md")


def test_further_parts_of_a_list_are_kept() -> None:
    (claim,) = read_message("Your booking has been updated with the new flights and one checked bag.").claims
    assert claim.parts == (("checked", "bag"),)


def test_money_added_to_a_balance_is_a_refund() -> None:
    (claim,) = read_message("The refund of $12 has been added to your balance.").claims
    assert claim.classes == {"refund", "pay"}


def test_a_draft_asks_for_approval_and_trouble_is_admitted() -> None:
    assert read_message("I've updated the list. Please confirm before I proceed.").asks_approval
    assert not read_message("I've updated the list.").asks_approval
    assert read_message("I could not create it.").honest
    assert read_message("Leider ist das fehlgeschlagen.").honest
    assert not read_message("All good.").honest


def test_the_language_is_told_by_its_common_words() -> None:
    assert language_of("Su reserva ha sido cancelada en el sistema").code == "es"
    assert language_of("Die Buchung wurde für Sie storniert und ist weg").code == "de"
    assert language_of("W-77 OK").code == "en"


@pytest.mark.parametrize("text", ["name already exists", "El proyecto ya existe", "Datei existiert bereits"])
def test_errors_that_say_it_is_there(text: str) -> None:
    assert already_there(text)
    assert not already_there("quota exceeded")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("bag", "baggages", True), ("flight", "flights", True), ("card", "cart", False), ("id", "ideas", False)],
)
def test_nouns_are_alike(one: str, other: str, same: bool) -> None:
    assert alike(one, other) is same
    assert alike(other, one) is same


def test_claims_are_bounded() -> None:
    assert len(read_message("I booked it. " * 500).claims) == MAX_CLAIMS


@given(st.text(max_size=400))
def test_any_text_can_be_read(text: str) -> None:
    read_message(text)


@pytest.mark.parametrize(
    "text",
    [
        "Ich werde Ihre Buchung stornieren.",
        "Soll ich die Buchung stornieren?",
        "Wenn Sie zustimmen, wird die Buchung storniert.",
        "Ihre Buchung wurde noch nicht storniert.",
        "Bevor die Buchung storniert wurde, brauche ich Ihr Ja.",
        "Sobald die Zahlung erfolgt ist, ist die Buchung storniert.",
        "Voy a cancelar su pedido.",
        "Si confirma, se cancelará el pedido.",
        "Si se envió el correo, avíseme.",
        "No se envió el correo.",
        "¿Se canceló el pedido?",
        "Se cancela el pedido mañana.",
        "Todavía no he enviado el correo.",
        "Una vez que se haya cancelado el pedido, le avisaremos.",
    ],
)
def test_plans_conditions_and_denials_in_german_and_spanish(text: str) -> None:
    assert claimed(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "According to the log, your order was cancelled.",
        "Según el registro, el pedido fue cancelado el lunes.",
        "Laut Datenbank wurde die Buchung storniert.",
    ],
)
def test_what_a_record_says_is_told_as_such(text: str) -> None:
    assert [claim.reported for claim in read_message(text).claims] == [True]


def test_an_answer_in_json_is_read_as_what_it_says() -> None:
    text = '{"message": "Your order has been cancelled.\\n\\nAnything else?", "confidence": 0.9}'
    assert claimed(text) == ["cancelled"]
    assert read_message(text).claims[0].sentence == "your order has been cancelled."
    assert spoken('{"status": "x"}') == '{"status": "x"}'
    assert spoken("{broken") == "{broken"
