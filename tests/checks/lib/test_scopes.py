"""Arguments that bound nothing."""

from __future__ import annotations

from typing import Any

import pytest

from otelmon.checks.lib.scopes import broad_scopes
from otelmon.vocabulary.catalogue import Tool

TEXT = {"type": "string"}


def found(name: str, effect: Any = None, whole: dict[str, Any] | None = None, **params: Any) -> list[tuple[str, str]]:
    schema = {"type": "object", "properties": params, **(whole or {})}
    return [(one.where, one.why) for one in broad_scopes(Tool(name=name, effect=effect, input_schema=schema))]


@pytest.mark.parametrize(
    ("name", "params", "expected"),
    [
        ("run_report", {"sql": TEXT}, [("sql", "sql")]),
        ("postgres_execute", {"query": TEXT}, [("query", "sql")]),
        ("find_order", {"query": TEXT}, []),
        ("execute", {"command": {"type": "array", "items": TEXT}}, [("command", "command")]),
        ("run", {"python_code": TEXT}, [("python_code", "code")]),
        ("set_status", {"status_code": {"type": "integer"}}, []),
        ("add_webhook", {"target_url": TEXT}, [("target_url", "address")]),
        ("add_webhook", {"target_url": {"type": "string", "pattern": "^https://shop[.]"}}, []),
        ("write_file", {"path": TEXT}, [("path", "path")]),
        ("write_file", {"path": {"type": "string", "enum": ["a", "b"]}}, []),
        ("read_file", {"path": TEXT}, []),
        ("fetch_page", {"url": TEXT}, []),
        ("update_record", {"fields": {"type": "object"}}, [("fields", "anything")]),
        ("update_record", {"fields": {"type": "object", "properties": {"a": TEXT}}}, []),
        ("grant_access", {"scope": {"type": "string", "default": "*"}}, [("scope", "wildcard")]),
        ("grant_access", {"role": TEXT}, []),
    ],
)
def test_what_bounds_nothing(name: str, params: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert found(name, **params) == expected


def test_arguments_of_any_name() -> None:
    assert found("update", whole={"additionalProperties": True}) == [("", "anything")]
    assert found("update", whole={"additionalProperties": {"type": "string"}}) == [("", "anything")]
    assert found("update") == []
    assert found("update", whole={"additionalProperties": True}, note=TEXT) == []


def test_what_the_operator_looked_at_is_not_reported() -> None:
    assert found("run_report", effect="read", sql=TEXT) == []
    assert (
        str(broad_scopes(Tool(name="x", input_schema={"properties": {"sql": TEXT}}))[0]) == "sql takes SQL of any kind"
    )
