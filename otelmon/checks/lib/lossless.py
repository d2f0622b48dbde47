"""Values as their schema wants them, where nothing is lost by it: numbers, lists and objects that were written as text,
and numbers where text is wanted. Lenient servers and recorders convert these without a word."""

from __future__ import annotations

from typing import Any

import msgspec

_MAX_DEPTH, _MAX_ITEMS, _MAX_NUMBER = 6, 200, 40
_NUMBERS = frozenset(("integer", "number"))


def lossless(value: Any, schema: Any, root: dict[str, Any] | None = None, depth: int = 0) -> Any:
    """The value converted where the schema (or one of its alternatives) asks for another type; what can not be
    converted without loss stays as it is. `root` is the schema that local references point into."""
    root = schema if root is None and isinstance(schema, dict) else root or {}
    schema = _resolved(schema, root)
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return value
    wanted = _types(schema, root)
    if isinstance(value, str) and wanted and "string" not in wanted:
        return _from_text(value, wanted)
    if isinstance(value, int | float) and not isinstance(value, bool) and wanted == {"string"}:
        return str(value)
    if isinstance(value, dict) and isinstance(schema.get("properties"), dict):
        inner = schema["properties"]
        return {k: lossless(v, inner.get(k), root, depth + 1) for k, v in value.items()}
    if isinstance(value, list) and len(value) <= _MAX_ITEMS:
        return [lossless(item, schema.get("items"), root, depth + 1) for item in value]
    return value


def _types(schema: dict[str, Any], root: dict[str, Any]) -> set[str]:
    """The types that the schema or its alternatives name; empty when one of them names none."""
    own = schema.get("type")
    if isinstance(own, str):
        return {own}
    if isinstance(own, list):
        return {each for each in own if isinstance(each, str)}
    found: set[str] = set()
    for part in schema.get("anyOf") or schema.get("oneOf") or ():
        part = _resolved(part, root)
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(kind, str):
            return set()
        found.add(kind)
    return found


def _from_text(text: str, wanted: set[str]) -> Any:
    if wanted <= _NUMBERS | {"null"} and len(text) > _MAX_NUMBER:
        return text
    if wanted & {"boolean"} and text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text
    return text if isinstance(found, str) else found


def _resolved(schema: Any, root: dict[str, Any]) -> Any:
    """A schema behind local references; the schema itself when there is none or it is not there."""
    for _ in range(_MAX_DEPTH):
        reference = schema.get("$ref") if isinstance(schema, dict) else None
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return schema
        here: Any = root
        for part in reference[2:].split("/"):
            here = here.get(part) if isinstance(here, dict) else None
        schema = here
    return None
