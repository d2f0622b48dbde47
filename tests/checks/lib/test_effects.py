"""The effect of a call: from name, hints and operator; refined by the call; and who may lower it."""

from __future__ import annotations

from typing import Any

import pytest

from otelmon.checks.lib.effects import EffectOf, effect_of, stronger
from otelmon.vocabulary.catalogue import Annotations, Tool
from tests.checks.build import call


def effect(
    name: str, arguments: Any = None, *, trusted: bool = False, hint: str | None = None, **tool: Any
) -> EffectOf:
    known = Tool(name=name, **tool) if tool else None
    return effect_of(call(name, arguments, effect_hint=hint), known, trusted)


def test_the_operator_is_stronger_than_a_hint_and_a_hint_than_a_verb() -> None:
    hints = Annotations(read_only_hint=False, destructive_hint=True)
    assert effect("get_order").source == "verb"
    assert (effect("get_order", annotations=hints).effect, effect("get_order", annotations=hints).source) == (
        "destructive",
        "hint",
    )
    found = effect("delete_order", annotations=hints, effect="read")
    assert (found.effect, found.source) == ("read", "operator")


def test_a_hint_never_lowers_what_the_name_says_unless_the_service_is_trusted() -> None:
    claims = Annotations(read_only_hint=True)
    assert effect("delete_order", annotations=claims).effect == "destructive"
    assert effect("delete_order", annotations=claims, trusted=True).effect == "read"
    assert effect("frobnicate", annotations=claims).effect == "read"
    assert effect("send_money", annotations=Annotations(destructive_hint=False)).effect == "destructive"


def test_what_the_span_says_of_its_tool_is_a_hint_too() -> None:
    assert effect("get_order", hint="destructive").effect == "destructive"
    assert effect("delete_order", hint="read").effect == "destructive"
    assert effect("delete_order", hint="read", trusted=True).effect == "read"
    assert effect("get_order", hint="nonsense").effect == "read"


def test_a_write_hint_says_write_and_only_a_destructive_hint_says_more() -> None:
    assert effect("frobnicate", annotations=Annotations(read_only_hint=False)).effect == "write"
    assert (
        effect("frobnicate", annotations=Annotations(read_only_hint=False, destructive_hint=True)).effect
        == "destructive"
    )


def test_hints_that_are_all_defaults_say_nothing() -> None:
    defaults = Annotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True)
    assert effect("get_order", annotations=defaults).effect == "read"
    assert effect("frobnicate", annotations=defaults) == EffectOf("unknown", "additive", "none", known=False)


def test_an_idempotent_hint_makes_a_repeat_harmless_but_not_for_payments() -> None:
    idempotent = Annotations(read_only_hint=False, idempotent_hint=True)
    assert effect("create_record", annotations=idempotent).repeat == "absolute"
    assert effect("send_money", annotations=idempotent).repeat == "additive"
    assert effect("send_money", annotations=idempotent, trusted=True).repeat == "absolute"
    assert effect("send_money", repeat="absolute").repeat == "absolute"


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("run_sql", {"sql": "select 1"}, "read"),
        ("run_sql", {"sql": "drop table a"}, "destructive"),
        ("postgres_query", {"query": "insert into a values (1)"}, "write"),
        ("search_notes", {"query": "delete from the list"}, "read"),
        ("run_command", {"command": "cat a"}, "read"),
        ("bash", {"cmd": ["rm", "x"]}, "destructive"),
        ("robot_move", {"command": "rm"}, "write"),
        ("fetch", {"url": "https://example.com", "method": "POST"}, "write"),
        ("fetch", {"url": "https://example.com", "method": "GET"}, "read"),
        ("choose", {"method": "POST"}, "unknown"),
        ("run_command", {"command": "./unknown.sh"}, "unknown"),
        ("run_command", "rm x", "unknown"),
    ],
)
def test_the_call_itself_refines(name: str, arguments: Any, expected: str) -> None:
    assert effect(name, arguments).effect == expected


ACTIONS = {"properties": {"method": {"enum": ["get", "list", "create", "delete"]}, "kind": {"enum": ["a", "b"]}}}
WAYS = {"properties": {"method": {"enum": ["transfer", "cash", "card"]}}}


@pytest.mark.parametrize(
    ("name", "arguments", "schema", "expected"),
    [
        ("issue_write", {"method": "delete"}, ACTIONS, "destructive"),
        ("issue_write", {"method": "list"}, ACTIONS, "read"),
        ("issue_write", {"method": "delete"}, None, "write"),
        ("record_sale", {"method": "transfer"}, WAYS, "write"),
        ("delete_issue", {"method": "get"}, ACTIONS, "destructive"),
        ("memory", {"command": "view_all"}, None, "unknown"),
        ("memory", {"command": "delete"}, None, "destructive"),
        ("memory", {"action": "remove_note"}, None, "destructive"),
        ("memory", {"action": "transfer"}, None, "unknown"),
        ("memory", {"action": "get all of it"}, None, "read"),
        ("memory", {"action": 5}, None, "unknown"),
        ("memory", {"action": "get" * 20}, None, "unknown"),
        ("memory", ["delete"], None, "unknown"),
    ],
)
def test_a_tool_of_many_actions_does_what_it_is_asked(name: str, arguments: Any, schema: Any, expected: str) -> None:
    assert effect(name, arguments, input_schema=schema).effect == expected


def test_the_operator_is_above_the_action_asked_for() -> None:
    assert effect("issue_write", {"method": "delete"}, input_schema=ACTIONS, effect="write").source == "operator"


def test_the_description_speaks_where_the_name_and_the_hints_do_not() -> None:
    found = effect("frobnicate", description="Deletes the whole archive.")
    assert (found.effect, found.source, found.known) == ("destructive", "description", True)
    assert effect("frobnicate", description="The archive.").source == "none"
    assert effect("get_archive", description="Deletes the whole archive.").effect == "read"
    reader = Annotations(read_only_hint=True)
    assert effect("frobnicate", annotations=reader, description="Creates a view.").source == "hint"
    assert effect("frobnicate", effect="write", description="Returns a view.").source == "operator"


def test_a_refined_call_of_a_destructive_tool_may_be_a_read() -> None:
    hints = Annotations(read_only_hint=False, destructive_hint=True)
    found = effect("run_sql", {"sql": "select count(*) from a"}, annotations=hints)
    assert (found.effect, found.source) == ("read", "call")
    assert effect("run_sql", {"sql": "???"}, annotations=hints).effect == "destructive"


def test_stronger_of_two() -> None:
    assert stronger("read", "write") == "write"
    assert stronger("destructive", "external_send") == "destructive"
