"""Whether a condition fits the schemas of the tools it is about: names of arguments, and what is done with their values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any

import cel

from otelmon.checks.lib.declared import resolved, undeclared
from otelmon.checks.lib.expressions import FIELDS, context_of, without_texts
from otelmon.vocabulary.catalogue import Tool

_PATH = re.compile(r"(?<![\w.])call\s*\.\s*arguments((?:\s*\.\s*\w+)+)(\s*\()?")
_EMPTY: dict[str, Any] = {"string": "", "integer": 0, "number": 0.0, "boolean": False, "array": [], "null": None}
_CLOSED = ("additionalProperties", "unevaluatedProperties")
_MAX_DEPTH = 4
Mistake = tuple[str, str]


def argument_mistakes(text: str, tools: Sequence[Tool]) -> list[Mistake]:
    """What is wrong with a condition (one that is right in itself) over calls of these tools, as pairs of the mistake
    and what to do. Nothing where a tool has no schema: then anything may be meant."""
    schemas = [_unclosed(tool.input_schema, 0) for tool in tools if tool.input_schema]
    if not schemas or len(schemas) < len(tools):
        return []
    found = list(_unknown(without_texts(text), schemas))
    return found or list(_mistyped(text, schemas))


def _unclosed(schema: Any, depth: int) -> Any:
    """A schema without what it forbids: the names it does not declare are then found as those of any other."""
    if depth > 3 * _MAX_DEPTH:
        return schema
    if isinstance(schema, list):
        return [_unclosed(part, depth + 1) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {k: _unclosed(v, depth + 1) for k, v in schema.items() if not (k in _CLOSED and v is False)}


def _unknown(bare: str, schemas: Sequence[dict[str, Any]]) -> Iterator[Mistake]:
    for path in dict.fromkeys(_paths(bare)):
        value: Any = None
        for name in reversed(path):
            value = {name: value}
        extras = [undeclared(schema, value) for schema in schemas]
        if all(extras):
            wrong = extras[0][0]
            near = get_close_matches(wrong.name, wrong.unused, n=1)
            known = ", ".join(sorted(wrong.unused)) or "none"
            yield (
                f"the tools have no argument {wrong.path}",
                f"did you mean {near[0]}?" if near else f"known: {known}",
            )


def _paths(bare: str) -> Iterator[tuple[str, ...]]:
    """The names behind `call.arguments`, without a method at the end."""
    for names, method in _PATH.findall(bare):
        path = tuple(part.strip() for part in names.split(".") if part.strip())
        path = path[:-1] if method else path
        if path:
            yield path


def _mistyped(text: str, schemas: Sequence[dict[str, Any]]) -> Iterator[Mistake]:
    """Asks it of an example of each schema: what is a type error for all of them is one for every call."""
    program = cel.compile(text)
    for schema in schemas:
        try:
            program.execute(context_of({"call": {**FIELDS, "arguments": _example(schema, schema, 0)}}))
        except TypeError:
            continue
        except Exception:  # noqa: BLE001 - an example proves nothing but the types
            return
        return
    yield "compares or computes with values of different types", "convert with string(), int() or double()"


def _example(schema: Any, root: dict[str, Any], depth: int) -> Any:
    """A value that the schema allows, as far as types go."""
    schema = resolved(schema, root)
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return None
    values = schema.get("enum")
    if isinstance(values, list) and values:
        return values[0]
    kind = schema.get("type")
    kind = next((k for k in kind if k != "null"), None) if isinstance(kind, list) else kind
    if kind == "object" or isinstance(schema.get("properties"), dict):
        properties = schema.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        return {name: _example(part, root, depth + 1) for name, part in properties.items()}
    return _EMPTY.get(kind) if isinstance(kind, str) else None
