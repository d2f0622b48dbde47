"""Errors in the payload of a call that looks successful, and payloads that only tell about errors."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otelmon.assemble.outcome import derive_outcome, errors_in_body
from otelmon.vocabulary.reading import ToolFields
from tests.assemble.test_outcome import verdict

BODIES_WITH_ERRORS: list[Any] = [
    {"ok": False},
    {"success": False, "message": "no such order"},
    {"status": "error", "message": "no such order"},
    {"status": "failed", "reason": "card expired"},
    {"error": "no such order"},
    {"error": {"code": "not_found", "message": "no such order"}},
    {"errors": [{"message": "amount must be positive"}]},
    {"errors": ["amount must be positive"]},
    {"isError": True, "content": [{"type": "text", "text": "no such order"}]},
    {"status": 404, "message": "not found"},
    {"statusCode": 422, "error": "Unprocessable Entity"},
    {"status_code": 500},
    {"code": 404, "message": "not found"},
    {"result": {"success": False, "error": "no such order"}},
    {"errors": [{"message": "bad date"}], "meta": {"trace": "t-1"}, "status": 400},
    {"data": None, "errors": [{"message": "field x unknown", "path": ["x"]}]},
    [{"type": "text", "text": "Error: no such order"}],
    {"success": "false", "msg": "no such order"},
    {"success": "no"},
    {"success": 0, "message": "no such order"},
    {"failed": True, "message": "no such order"},
    {"error": 1, "message": "no such order"},
    {"traceback": "Traceback (most recent call last): ..."},
    {"error_code": 17, "error_msg": "no such order"},
    {"errcode": 40001, "errmsg": "invalid credential"},
    {"ErrorCode": "AccessDenied", "Message": "no access"},
    {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "Invalid params"}},
    {"data": {"error": "no such order"}},
    {"data": {"issue": None}, "errors": [{"message": "Could not resolve", "path": ["issue"]}]},
    {"data": {"createOrder": {"userErrors": [{"message": "no stock"}], "order": None}}},
    {"type": "https://example.com/no-credit", "title": "Not enough credit", "status": 403, "detail": "30 are missing"},
    {"meta": {"code": 400, "error": "bad request"}},
    {"status": {"code": 400, "message": "bad request"}},
    {"head": {"status": 500}, "body": None},
    {"exito": False, "mensaje": "no hay stock"},
    {"Éxito": False},
    {"estado": "fallido", "motivo": "tarjeta vencida"},
    {"estado": "error", "mensaje": "sin conexión"},
    {"erfolg": False},
    {"fehler": "Auftrag nicht gefunden"},
    {"status": "fehlgeschlagen"},
    {"statut": "x", "erreur": {"message": "commande introuvable"}},
    {"sucesso": False, "mensagem": "pedido recusado"},
]

# Objects with nothing but a text, and the answers of web frameworks: judged by the outcome, which knows the tool.
LONE_ERRORS: list[Any] = [
    {"detail": "Not found."},
    {"detail": [{"loc": ["body", "x"], "msg": "field required", "type": "value_error.missing"}]},
    {"message": "order_id is required"},
    {"mensaje": "Pedido no encontrado"},
]

TEXTS_WITH_ERRORS = [
    "Error: no such order",
    "error: user not found",
    "ERROR - payment rejected: card expired",
    "Tool error: no such order",
    "Failed to cancel the order",
    "ValueError: amount must be positive",
    "requests.exceptions.ConnectionError: could not connect",
    "404 Not Found: no such order",
    "HTTP 500 Internal Server Error",
    "An error occurred while running the tool. Please try again. Error: boom",
    "Traceback (most recent call last):\n  File \"x.py\", line 1\nKeyError: 'a'",
    "Error executing tool 'cancel' with arguments {}: boom",
    "Tool execution failed: no such order",
    "Internal server error",
    "MCP error -32602: Invalid params",
    "<error>no such order</error>",
    "<tool_use_error>no such order</tool_use_error>",
    "Error: no se encontró el pedido",
    "Error al procesar el pago",
    "Fehler: Auftrag nicht gefunden",
    "Fehler beim Speichern",
    "Erreur : commande introuvable",
    "Échec: paiement refusé",
    "Erro ao salvar o pedido",
]

BODIES_WITHOUT: list[Any] = [
    {"ok": True},
    {"failed": 0},
    {"failed": 3, "passed": 9},
    {"errors": []},
    {"error": None},
    {"error": ""},
    {"error": False},
    {"error": "none"},
    {"error_rate": 0.1},
    {"errors": 0, "warnings": 2},
    {"error_count": 4},
    {"success": True, "error": "previous error was cleared"},
    {"status": "ok"},
    {"status": 200, "error": None},
    {"status": 201},
    {"order_id": "A-1", "status": "failed", "total": 5},
    {"id": 7, "status": "failed", "kind": "incident"},
    {"rows": [{"error": "disk full", "at": "10:00"}, {"error": "disk full", "at": "11:00"}]},
    {"created": 9, "errors": [{"row": 3, "message": "bad date"}]},
    {"data": {"order": {"id": 1}}, "errors": [{"message": "field x unknown"}]},
    {"results": [{"id": 1}], "errors": ["2 was skipped"]},
    {"logs": "Error: disk full\nError: disk full"},
    {"total": 404, "page": 1},
    {"code": 450, "name": "beam", "unit": "mm", "price": 3},
    {"success": 0},
    {"success": 1},
    {"success": 0, "failed": 3, "pending": 2},
    {"failed": True, "job_id": "J-1", "kind": "job"},
    {"failed": [], "succeeded": [1]},
    {"errcode": 0, "errmsg": "ok"},
    {"error_code": 0},
    {"errorCode": "0", "errorMessage": None},
    {"error_code": "E12", "meaning": "door open"},
    {"error_code": "E12", "message": "door open", "device": "lift 3"},
    {"errorMessage": "", "id": 3},
    {"status": 404, "items": 5},
    {"code": 404, "city": "Lima"},
    {"code": 500, "unit": "g"},
    {"data": {"error": None}},
    {"data": {"createOrder": {"userErrors": [], "order": {"id": 1}}}},
    {"data": {"issue": {"id": 1}}, "errors": [{"message": "field x unknown"}]},
    {"meta": {"code": 200}, "data": []},
    {"meta": {"code": 404, "pages": 9, "label": "rooms"}},
    {"last_error": "timeout", "state": "running", "id": 3},
    {"detail": {"size": 3}},
    {"exito": True},
    {"errores": []},
    {"fehler": 0},
    {"error": "ninguno"},
    {"estado": "activo"},
    {"estado": "fallido", "id": "P-1", "importe": 3},
    {"estado": "rechazado", "solicitud": "S-1"},
    [],
    [{"error": "disk full"}, {"error": "disk full"}],
    [{"name": "error"}],
    None,
    5,
]

TEXTS_WITHOUT = [
    "ok",
    "",
    "No errors found.",
    "0 errors, 0 warnings",
    "The error rate fell to 0.1 %.",
    "Errors in the log were discussed; the team found that a broken pump caused them.",
    "450 grams of flour",
    "404 items in stock",
    "Logins that failed: 0",
    "Error handling in Python. " + "Exceptions are objects that are raised. " * 80,
    "Terrorism is a word with error in it: none",
    "Sin errores.",
    "Se corrigió el error del pedido.",
    "Keine Fehler gefunden",
    "Fehlerbehandlung in Python",
    "Errores: 0",
    "Errand done",
]


@pytest.mark.parametrize("body", BODIES_WITH_ERRORS, ids=json.dumps)
def test_errors_in_bodies_are_found(body: Any) -> None:
    assert errors_in_body(body, json.dumps(body)) is not None
    assert verdict(body).outcome == "failed"
    assert verdict(body).source == "result"


@pytest.mark.parametrize("body", LONE_ERRORS, ids=json.dumps)
def test_an_object_that_is_nothing_but_an_error(body: Any) -> None:
    assert errors_in_body(body, json.dumps(body)) is None
    assert verdict(body).outcome == "failed"
    assert verdict(body | {"id": 3}).outcome == "succeeded"


def test_the_verdict_of_a_validation_is_what_was_asked_for() -> None:
    body = {"is_valid": False, "errors": ["amount must be positive"]}
    outcomes = {
        name: derive_outcome(ToolFields(name, name, result=body)).outcome for name in ("validate_order", "create_order")
    }
    assert outcomes == {"validate_order": "succeeded", "create_order": "failed"}


@pytest.mark.parametrize("text", TEXTS_WITH_ERRORS)
def test_texts_that_are_errors_are_found(text: str) -> None:
    assert errors_in_body(None, text) is not None
    assert verdict(text).outcome == "failed"


@pytest.mark.parametrize("body", BODIES_WITHOUT, ids=json.dumps)
def test_bodies_that_only_tell_about_errors_are_none(body: Any) -> None:
    assert errors_in_body(body, json.dumps(body)) is None
    assert verdict(body).outcome == "succeeded"


@pytest.mark.parametrize("text", TEXTS_WITHOUT)
def test_texts_that_only_tell_about_errors_are_none(text: str) -> None:
    assert errors_in_body(None, text) is None
    assert verdict(text).outcome == "succeeded"


def test_what_a_body_says_of_its_error_is_kept() -> None:
    found = errors_in_body({"error": {"code": "not_found", "message": "no such order"}}, None)
    assert found is not None
    assert (found.path, found.code, found.message) == ("error", "not_found", "no such order")
    inner = errors_in_body({"result": {"ok": False, "status": 404}}, None)
    assert inner is not None
    assert (inner.path, inner.status) == ("result.ok", 404)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["error", "status", "ok", "a"]), inner),
    max_leaves=20,
)


@given(json_values)
@settings(max_examples=200)
def test_any_body_is_read_without_trouble(value: Any) -> None:
    errors_in_body(value, None)


def test_a_deep_and_wide_body_is_read_in_bounds() -> None:
    deep: Any = {"ok": False}
    for _ in range(10_000):
        deep = {"result": deep}
    assert errors_in_body(deep, None) is None
    wide = {f"k{n}": n for n in range(100_000)} | {"ok": False}
    assert errors_in_body(wide, None) is None
