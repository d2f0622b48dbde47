"""Tool definitions in the shapes seen on spans, with their hashes.

Shapes: `{name, description, parameters}`, the same under `function`, `{name, inputSchema}` (MCP,
Vercel) with `annotations`, `{name, parameters_json_schema}`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import msgspec

from otelmon.assemble.dialects._fields import canonical_name, structured, text_of
from otelmon.vocabulary.canonical import sha256
from otelmon.vocabulary.catalogue import Annotations
from otelmon.vocabulary.reading import Definition

MAX_CACHED_CHARS = 256 * 1024
_SCHEMA_KEYS = ("parameters", "inputSchema", "input_schema", "parameters_json_schema")


def annotations_of(value: Any) -> Annotations | None:
    """MCP hints from an object or JSON text; None when there are none that we know."""
    value = structured(value)
    if not isinstance(value, dict) or not value:
        return None
    try:
        found = msgspec.convert(value, Annotations)
    except msgspec.ValidationError:
        return None
    return None if found == Annotations() else found


def definition(item: Any, name: str | None = None) -> Definition | None:
    """One definition; None when it has no name."""
    item = structured(item)
    if not isinstance(item, dict):
        return None
    function = item.get("function")
    body = function if isinstance(function, dict) else item
    raw = text_of(body.get("name")) or name
    if raw is None:
        return None
    tool, server = canonical_name(raw)
    schema = next((s for s in (structured(body.get(k)) for k in _SCHEMA_KEYS) if isinstance(s, dict)), None)
    description = body.get("description")
    return make(
        tool,
        description if isinstance(description, str) else "",
        schema,
        annotations_of(item.get("annotations", body.get("annotations"))),
        text_of(item.get("server", body.get("server"))) or server,
    )


def make(
    name: str,
    description: str,
    schema: dict[str, Any] | None,
    annotations: Annotations | None = None,
    server: str | None = None,
) -> Definition:
    """A definition with its hashes."""
    hints = None if annotations is None else msgspec.to_builtins(annotations)
    return Definition(
        name=name,
        description=description,
        input_schema=schema,
        annotations=annotations,
        server=server,
        schema_hash=sha256(schema),
        definition_hash=sha256([name, description, schema, hints]),
    )


def definitions(value: Any) -> tuple[Definition, ...]:
    """Definitions from an attribute: JSON text, or a list of objects or of JSON texts."""
    if isinstance(value, str):
        return _from_text(value) if len(value) <= MAX_CACHED_CHARS else _parse(value)
    if isinstance(value, list | tuple):
        return _distinct(one for item in value for one in (definitions(item) if isinstance(item, str) else _one(item)))
    return _one(value)


@lru_cache(maxsize=256)
def _from_text(text: str) -> tuple[Definition, ...]:
    """Cached: every model span of a run repeats the same text, and hashing it is not cheap."""
    return _parse(text)


def _parse(text: str) -> tuple[Definition, ...]:
    value = structured(text)
    if isinstance(value, dict) and isinstance(value.get("tools"), list):
        value = value["tools"]
    if isinstance(value, list):
        return _distinct(one for item in value for one in _one(item))
    return _one(value)


def _one(item: Any) -> tuple[Definition, ...]:
    found = definition(item)
    return () if found is None else (found,)


def _distinct(found: Iterable[Definition]) -> tuple[Definition, ...]:
    return tuple({(d.name, d.server, d.definition_hash): d for d in found}.values())
