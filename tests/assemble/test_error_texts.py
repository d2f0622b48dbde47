"""Short texts that are the error of their call, and texts that only begin like one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otelmon.assemble.error_texts import returns_logs, short_error
from otelmon.assemble.outcome import Verdict, derive_outcome
from otelmon.assemble.timeline import build
from otelmon.vocabulary.reading import ToolFields
from tests.assemble.builders import Spans, assistant, call, calls, response, user

UNKNOWN = [
    ("refund", "timed out after 30s; no response received"),
    ("charge", "gateway timeout (504)"),
    ("charge", "Request timeout"),
    ("charge", "Upstream service did not respond"),
    ("charge", "Read timed out. (read timeout=10)"),
    ("charge", "HTTP/1.1 502 Bad Gateway"),
    ("charge", "connection reset by peer"),
]
FAILED = [
    ("scrape", "400 unknown country"),
    ("scrape", "HTTP 400 Bad things"),
    ("charge", "HTTP 503"),
    ("get_page", "503 Service Unavailable"),
    ("fetch_page", "connection refused"),
    ("fetch", "Too many requests"),
    ("link_plans", "source and target must differ"),
    ("create_repo", "name already exists on this account"),
    ("transfer", "Insufficient funds"),
    ("charge", "Error code: 429"),
    ("publish", "409 duplicate content: an identical post is already being processed"),
    ("charge", "card_number is a required property"),
    ("read_file", "no such file"),
    ("glob", "missing required: pattern"),
    ("scrape", "expected string, received null"),
    ("search_notes", "'5' is not of type 'integer'"),
    ("look_up", "unknown tool"),
    ("crear_pedido", "No se pudo completar la operación"),
    ("crear_pedido", "Pedido no encontrado."),
    ("crear_pedido", "El campo RUC es obligatorio"),
    ("enviar_correo", "Acceso denegado"),
    ("auftrag_anlegen", "Auftrag nicht gefunden"),
    ("auftrag_anlegen", "Der Kunde existiert bereits"),
    ("auftrag_anlegen", "Zugriff verweigert"),
    ("creer_commande", "Commande introuvable"),
    ("criar_pedido", "Não foi possível criar o pedido"),
]
FINE = [
    ("buscar_pedido", "Pedido no encontrado"),
    ("suche_auftrag", "Auftrag nicht gefunden"),
    ("crear_pedido", "El cliente ya existe, se ha actualizado"),
    ("auftrag_anlegen", "Der Kunde existiert bereits und wurde aktualisiert"),
    ("crear_pedido", "Pedido creado"),
    ("fetch_page", "Timed out requests are retried three times by default."),
    ("fetch_page", "HTTP 400 and other client errors"),
    ("search_docs", "Connection refused errors: how to fix them"),
    (
        "search_docs",
        "503 Service Unavailable means the server is overloaded. Try again later or ask its operator first.",
    ),
    ("get_config", "timeout: 30"),
    ("get_page", "Timeouts are set in the config"),
    ("tail_logs", "timed out after 30s"),
    ("get_log_lines", "connection refused"),
    ("get_logs", "ERROR: payment failed"),
    ("get_notes", "timed out"),
    ("get_stock", "450 grams"),
    ("find", "404 items found"),
    ("count", "500 errors found"),
    ("dedupe", "409 duplicate rows removed"),
    ("check_coupon", "The coupon is invalid"),
    ("check_sim", "The card is locked with a PIN code."),
    ("create_label", "Label already exists, reused"),
    ("cancel", "Cancelled; the fee could not be refunded"),
    ("create_ticket", "Ticket T-1 must be approved by a manager"),
    ("run", "ok"),
    ("close", "invalid entries:\nnone"),
    ("close", "Invalid entries are listed below and must be given again. " * 5),
]


def verdict(name: str, text: str) -> Verdict:
    return derive_outcome(ToolFields(name, name, result_text=text, result_fidelity="exact"))


@pytest.mark.parametrize(("name", "text"), UNKNOWN)
def test_what_was_sent_and_never_answered_is_unknown(name: str, text: str) -> None:
    assert verdict(name, text).outcome == "unknown"


@pytest.mark.parametrize(("name", "text"), FAILED)
def test_a_short_refusal_is_a_failure_with_its_words(name: str, text: str) -> None:
    found = verdict(name, text)
    assert (found.outcome, found.error_message) == ("failed", text)


@pytest.mark.parametrize(("name", "text"), FINE)
def test_texts_about_errors_and_answers_are_fine(name: str, text: str) -> None:
    assert verdict(name, text).outcome == "succeeded"


@pytest.mark.parametrize(
    ("name", "result", "outcome"),
    [
        ("get_job", {"job_id": 7, "status": "failed", "error": "disk full"}, "succeeded"),
        ("check_payment", {"id": "p-1", "state": "rejected", "reason": "no funds"}, "succeeded"),
        ("start_job", {"job_id": 7, "status": "failed", "error": "disk full"}, "failed"),
        ("get_job", {"status": "failed", "error": "disk full"}, "failed"),
        ("get_job", {"job_id": 7, "status": "error", "error": "no such job"}, "failed"),
    ],
)
def test_a_reader_of_records_that_shows_a_failed_one_did_its_work(name: str, result: Any, outcome: str) -> None:
    fields = ToolFields(name, name, result=result, result_text=json.dumps(result), result_fidelity="exact")
    assert derive_outcome(fields).outcome == outcome


def test_a_status_is_kept_as_a_number() -> None:
    found = short_error("scrape", "HTTP 400 Bad things")
    assert found is not None
    assert found.status == 400


@pytest.mark.parametrize(
    ("name", "logs"), [("tail_logs", True), ("getLogs", True), ("log_call", False), ("find_user_by_log", False)]
)
def test_readers_of_logs_by_name(name: str, logs: bool) -> None:
    assert returns_logs(name) is logs


def test_a_call_that_only_history_shows_ends_with_what_its_text_says() -> None:
    spans = Spans()
    asked = [user("Refund A-1."), assistant(call("refund", "c1", order="A-1"))]
    answer = response("timed out after 30s; no response received", "c1")
    spans.model([*asked, answer], [assistant("It timed out.")], 0, 1)
    [seen] = calls(build("conv", spans.readings))
    assert (seen.derived, seen.outcome, seen.outcome_source) == (True, "unknown", "timeout")


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_of_any_tool_is_read_without_trouble(name: str, text: str) -> None:
    found = short_error(name, text)
    assert found is None or found.message == text.strip()
