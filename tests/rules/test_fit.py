"""Conditions against the schemas of the tools they are about: unknown arguments and wrong types are told on load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from otelmon.app.laws import load_laws
from otelmon.checks.lib.argument_types import argument_mistakes
from otelmon.rules.catalogue import load_catalogue
from otelmon.vocabulary.catalogue import Tool
from otelmon.vocabulary.config import Config
from otelmon.vocabulary.errors import UserError
from tests.checks.test_match import write

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "amount": {"type": "number"},
        "count": {"type": "integer"},
        "reason": {"type": "string"},
        "items": {"type": "array", "items": {"type": "object", "properties": {"sku": {"type": "string"}}}},
        "to": {"$ref": "#/$defs/to"},
    },
    "$defs": {"to": {"type": "object", "properties": {"iban": {"type": "string"}}}},
}
REFUND = {"name": "issue_refund", "inputSchema": SCHEMA}


def tools(*schemas: dict[str, Any] | None) -> list[Tool]:
    return [Tool(name=f"tool_{n}", input_schema=schema) for n, schema in enumerate(schemas)]


@pytest.mark.parametrize(
    "text",
    [
        "call.arguments.amount > 10.5 && call.arguments.amount > 10",
        "call.arguments.to.iban.startsWith('DE')",
        "call.arguments.items.exists(i, i.sku == 'a')",
        "has(call.arguments.reason) && call.arguments.reason.size() > 3",
        "'call.arguments.nothing' == call.name",
        "int(call.arguments.reason) > 3",
    ],
)
def test_what_fits(text: str) -> None:
    assert argument_mistakes(text, tools(SCHEMA)) == []


@pytest.mark.parametrize(
    ("text", "wrong", "do"),
    [
        ("call.arguments.amuont > 1", "the tools have no argument amuont", "did you mean amount?"),
        ("call.arguments.to.ibna == 'x'", "the tools have no argument to.ibna", "did you mean iban?"),
        ("has(call.arguments.zzz)", "the tools have no argument zzz", "known: amount, count, items, reason, to"),
        ("call.arguments.reason > 1", "compares or computes with values of different types", "convert with"),
        ("call.arguments.count + 1.5 > 2.0", "compares or computes with values of different types", "convert with"),
    ],
)
def test_what_does_not(text: str, wrong: str, do: str) -> None:
    (found,) = argument_mistakes(text, tools(SCHEMA))
    assert found[0] == wrong
    assert do in found[1]


def test_one_tool_that_has_it_is_enough_and_one_without_schema_decides_nothing() -> None:
    other = {"type": "object", "properties": {"memo": {"type": "string"}}}
    assert argument_mistakes("has(call.arguments.memo)", tools(SCHEMA)) != []
    assert argument_mistakes("has(call.arguments.memo)", tools(SCHEMA, other)) == []
    assert argument_mistakes("has(call.arguments.memo)", tools(SCHEMA, None)) == []
    assert argument_mistakes("has(call.arguments.memo)", []) == []


def test_a_schema_that_forbids_others_is_no_open_one() -> None:
    closed = {**SCHEMA, "additionalProperties": False}
    assert argument_mistakes("has(call.arguments.memo)", tools(closed)) != []
    assert argument_mistakes("has(call.arguments.memo)", tools({**SCHEMA, "additionalProperties": True})) == []


def catalogue(folder: Path, when: str, **more: Any) -> Path:
    policy = {"id": "large", "tools": ["issue_*"], "when": when, "action": "forbid", "reason": "r"}
    path = folder / "catalogue.yaml"
    path.write_text(yaml.safe_dump({"version": 1, "tools": [REFUND], "policy": [policy], **more}, sort_keys=False))
    return path


def test_a_policy_is_held_against_the_tools_of_its_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"catalogue.yaml:\d+:\d+: when: the tools have no argument amuont"):
        load_catalogue(catalogue(tmp_path, "call.arguments.amuont > 1"))
    load_catalogue(catalogue(tmp_path, "call.arguments.amount > 1"))
    load_catalogue(catalogue(tmp_path, "call.arguments.amuont > 1", complete=False))


@pytest.mark.parametrize(
    "params",
    [
        {"calls": {"tools": ["issue_*"]}, "when": "call.arguments.amuont > 1"},
        {"calls": {"tools": ["issue_*"], "when": "call.arguments.amuont > 1"}, "when": "true"},
        {
            "calls": {"tools": ["issue_*"]},
            "let": {"order": {"tools": ["get_order"], "where": "result.total > call.arguments.amuont"}},
            "when": "true",
        },
    ],
)
def test_a_rule_is_held_against_the_catalogue_in_force(tmp_path: Path, params: dict[str, Any]) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    path = write(rules, params)
    load_laws(Config(rules_dirs=(str(rules),)))
    listed = catalogue(tmp_path, "call.arguments.amount > 1")
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if "amuont" in text)
    with pytest.raises(UserError, match=rf"own_rule.yaml:{line}:\d+: the tools have no argument amuont; did you mean"):
        load_laws(Config(rules_dirs=(str(rules),), catalogue=str(listed)))
