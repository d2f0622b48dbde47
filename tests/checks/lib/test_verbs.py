"""What names say: verbs in several languages and positions, nouns that are verbs elsewhere, handing over."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otelmon.checks.lib.verbs import STRENGTH, action_words, classify_description, classify_name, name_words


@pytest.mark.parametrize(
    ("name", "effect", "repeat"),
    [
        ("get_order", "read", "absolute"),
        ("listAllUsers", "read", "absolute"),
        ("HTTPGet", "read", "absolute"),
        ("can_send_mail", "read", "absolute"),
        ("cancel_order", "destructive", "absolute"),
        ("create_booking", "write", "additive"),
        ("set_status", "write", "absolute"),
        ("book_room", "write", "additive"),
        ("refund", "destructive", "additive"),
        ("send_email", "external_send", "additive"),
        ("send_money", "destructive", "additive"),
        ("make_payment", "destructive", "additive"),
        ("update_payment_method", "write", "absolute"),
        ("update_status", "write", "absolute"),
        ("issue_read", "read", "absolute"),
        ("issue_refund", "destructive", "additive"),
        ("issue_write", "write", "absolute"),
        ("calendar_create", "write", "additive"),
        ("order_status", "read", "absolute"),
        ("order_pizza", "destructive", "additive"),
        ("check_in_guest", "write", "absolute"),
        ("check_stock", "read", "absolute"),
        ("find_and_delete_files", "destructive", "absolute"),
        ("find_and_book_room", "write", "additive"),
        ("search_items_by_name_or_type", "read", "absolute"),
        ("get_or_create_customer", "write", "absolute"),
        ("mark_all_notifications_read", "write", "absolute"),
        ("transfer_to_human", "write", "absolute"),
        ("transfer_funds", "destructive", "additive"),
        ("add_label_to_issue", "write", "absolute"),
        ("add_issue_comment", "write", "additive"),
        ("add_user_to_channel", "write", "absolute"),
        ("apply_credit", "destructive", "additive"),
        ("apply_template", "write", "absolute"),
        ("post_payment", "destructive", "additive"),
        ("post_update", "external_send", "additive"),
        ("toggle_wifi", "write", "absolute"),
        ("run_query", "read", "absolute"),
        ("run_workflow", "write", "additive"),
        ("run_command", "unknown", "additive"),
        ("slack_list_channels", "read", "absolute"),
        ("resolve_library_id", "read", "absolute"),
        ("resolve_ticket", "write", "absolute"),
        ("borrarCliente", "destructive", "absolute"),
        ("consultar_saldo", "read", "absolute"),
        ("crear_factura", "write", "additive"),
        ("geld_überweisen", "destructive", "additive"),
        ("kunde_loeschen", "destructive", "absolute"),
        ("kundenLöschen", "destructive", "absolute"),
        ("suche_kunden", "read", "absolute"),
        ("mcp__github__list_issues", "read", "absolute"),
        ("mcp__github__create_issue", "write", "additive"),
        ("mcp__mail__delete_message", "destructive", "absolute"),
        ("aws_s3_list_buckets", "read", "absolute"),
        ("slack.chat.postMessage", "external_send", "additive"),
        ("orders.get", "read", "absolute"),
        ("orders-cancel", "destructive", "absolute"),
        ("OrderStatus", "read", "absolute"),
        ("deploy_status", "read", "absolute"),
        ("issue_list", "read", "absolute"),
        ("post_list", "external_send", "additive"),
        ("post_status", "external_send", "additive"),
        ("refund_policy", "read", "absolute"),
        ("charge_fee", "destructive", "additive"),
        ("cancellation_policy", "read", "absolute"),
        ("meal_log", "unknown", "additive"),
        ("process_status", "unknown", "additive"),
        ("payments.create", "destructive", "additive"),
        ("refund_create", "destructive", "additive"),
        ("user_profile_update", "write", "absolute"),
        ("file_search_delete", "destructive", "absolute"),
        ("git_log", "read", "absolute"),
        ("git_commit", "write", "additive"),
        ("add_numbers", "read", "absolute"),
        ("add_price", "write", "additive"),
        ("quote_price", "read", "absolute"),
        ("start_vm", "write", "absolute"),
        ("start_job", "write", "additive"),
        ("open_front_door", "write", "absolute"),
        ("open_ticket", "write", "additive"),
        ("checkout_cart", "destructive", "additive"),
        ("checkout_branch", "write", "absolute"),
        ("format_disk", "destructive", "absolute"),
        ("format_comment", "unknown", "additive"),
        ("format_date", "read", "absolute"),
        ("estado_pedido", "read", "absolute"),
        ("statut_commande", "read", "absolute"),
        ("Kontostand", "read", "absolute"),
        ("bestellstatus", "read", "absolute"),
        ("stand", "unknown", "additive"),
        ("supprimer_fichier", "destructive", "absolute"),
        ("rechercher_produit", "read", "absolute"),
        ("cadastrar_cliente", "write", "additive"),
        ("excluir_arquivo", "destructive", "absolute"),
        ("visualizar_pedido", "read", "absolute"),
        ("annulla_prenotazione", "destructive", "absolute"),
        ("cerca_cliente", "read", "absolute"),
        ("crea_ordine", "write", "additive"),
        ("leggi_e_elimina", "destructive", "absolute"),
        ("frobnicate", "unknown", "additive"),
        ("", "unknown", "additive"),
        ("___", "unknown", "additive"),
    ],
)
def test_a_name_says_what_a_tool_does(name: str, effect: str, repeat: str) -> None:
    found = classify_name(name)
    assert (found.effect, found.repeat) == (effect, repeat)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("getUserById", ("get", "user", "by", "id")),
        ("kebab-case_and.dots", ("kebab", "case", "and", "dots")),
        ("HTTPServerStart", ("http", "server", "start")),
        ("añadirSeñal", ("anadir", "senal")),
    ],
)
def test_names_are_split_into_words(name: str, words: tuple[str, ...]) -> None:
    assert name_words(name) == words


def test_the_action_of_a_name_is_its_clear_verb() -> None:
    assert action_words("cancel_order") == ("cancel",)
    assert action_words("order") == ("order",)


@pytest.mark.parametrize(
    ("description", "effect", "repeat"),
    [
        ("Returns the menu of the day.", "read", "absolute"),
        ("This tool is used to list the rooms of a floor.", "read", "absolute"),
        ("Creates a note for the night shift.", "write", "additive"),
        ("Creates a refund for the last stay.", "destructive", "additive"),
        ("Processes payments of guests.", "destructive", "additive"),
        ("Processes the queue of guests.", "unknown", "additive"),
        ("Deletes the note; cannot be undone.", "destructive", "absolute"),
        ("Reads and deletes the oldest message", "destructive", "absolute"),
        ("Lists notes and updates of the last night.", "read", "absolute"),
        ("Notifies the guest by text.", "external_send", "additive"),
        ("Crea una nota para la noche.", "write", "additive"),
        ("Devuelve el menú del día.", "read", "absolute"),
        ("Löscht die Notiz.", "destructive", "absolute"),
        ("Erstellt eine Notiz.", "write", "additive"),
        ("Zeigt die Zimmer.", "read", "absolute"),
        ("The menu of the day.", "unknown", "additive"),
        ("Delete", "unknown", "additive"),
        ("", "unknown", "additive"),
    ],
)
def test_a_description_says_what_a_tool_does_by_its_first_verb(description: str, effect: str, repeat: str) -> None:
    found = classify_description(description)
    assert (found.effect, found.repeat) == (effect, repeat)


@given(st.text(max_size=300))
def test_any_description_has_a_class(text: str) -> None:
    assert classify_description(text).effect in STRENGTH


@given(st.text(max_size=60))
def test_any_name_has_a_class(name: str) -> None:
    assert classify_name(name).effect in STRENGTH


def _records(path: Path) -> list[Any]:
    with gzip.open(path, "rt") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.data
def test_names_of_real_tools_are_told_apart(shared: Path) -> None:
    """The truth: types declared in the tools' own code, and hints of a large real server."""
    writes: dict[str, bool] = {}
    for record in _records(shared / "datasets" / "tau2_es" / "dev.jsonl.gz"):
        types = record["labels"].get("tool_types") or {}
        writes |= {name: kind == "WRITE" for name, kind in types.items() if kind in ("READ", "WRITE")}
    for release in _records(shared / "datasets" / "tooldrift" / "releases.jsonl.gz"):
        for tool in release["tools"]:
            hint = (tool.get("annotations") or {}).get("readOnlyHint")
            if hint is not None:
                writes[tool["name"]] = not hint
    right = sum((classify_name(name).effect not in ("read", "unknown")) == truth for name, truth in writes.items())
    assert len(writes) > 200
    assert right / len(writes) >= 0.97
    taken_for_reads = [name for name, truth in writes.items() if truth and classify_name(name).effect == "read"]
    assert taken_for_reads == []


@pytest.mark.data
def test_descriptions_of_real_tools_are_told_apart(shared: Path) -> None:
    """Weaker than names, so that they only speak where these are silent; and they must not take a write for a read."""
    said: dict[tuple[str, str], bool] = {}
    for record in _records(shared / "datasets" / "tau2_es" / "dev.jsonl.gz"):
        types = record["labels"].get("tool_types") or {}
        kinds = {tool["name"]: (tool["name"], tool["description"]) for tool in record["tools"]}
        said |= {kinds[n]: kind == "WRITE" for n, kind in types.items() if n in kinds and kind in ("READ", "WRITE")}
    for release in _records(shared / "datasets" / "tooldrift" / "releases.jsonl.gz"):
        for tool in release["tools"]:
            hint = (tool.get("annotations") or {}).get("readOnlyHint")
            if hint is not None:
                said[tool["name"], tool["description"]] = not hint
    words = {key: classify_description(key[1]).effect for key in said}
    spoken = {key: writes for key, writes in said.items() if words[key] != "unknown"}
    right = sum((words[key] != "read") == writes for key, writes in spoken.items())
    assert len(spoken) / len(said) >= 0.85
    assert right / len(spoken) >= 0.99
