"""What names say: verbs in several languages and positions, nouns that are verbs elsewhere, handing over."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otelmon.checks.lib.verbs import STRENGTH, action_words, classify_name, name_words


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
