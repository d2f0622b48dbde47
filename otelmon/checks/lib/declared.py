"""Which keys of a value its JSON Schema declares, where the schema leaves room for others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

_MAX_DEPTH, _MAX_FOUND, _MAX_ITEMS, _MAX_PARTS = 6, 50, 20, 64
_JOINED = ("allOf", "anyOf", "oneOf")
_ALSO = ("then", "else", "if")


class Extra(msgspec.Struct, frozen=True):
    """A key no schema declares. `path` is dotted; `unused` the declared names beside it that were left out."""

    path: str
    name: str
    unused: tuple[str, ...]


class _Declared(msgspec.Struct):
    """What all parts of a schema declare for one object. `open`: a key of any name is meant to be there."""

    properties: dict[str, Any]
    open: bool = False
    parts: int = 0


def undeclared(schema: dict[str, Any], value: Any) -> list[Extra]:
    """The keys of an object, and of the objects in it, that its schema neither declares nor forbids; at most
    50. Schemas that declare nothing, or can not be resolved, leave every key open."""
    found: list[Extra] = []
    for extra in _extras(schema, schema, value, "", 0):
        found.append(extra)
        if len(found) >= _MAX_FOUND:
            break
    return found


def _extras(schema: Any, root: dict[str, Any], value: Any, path: str, depth: int) -> Iterator[Extra]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, list):
        items = schema.get("items") if isinstance(schema, dict) else None
        for n, item in enumerate(value[:_MAX_ITEMS]):
            yield from _extras(items, root, item, f"{path}[{n}]", depth + 1)
    if not isinstance(value, dict) or not isinstance(schema, dict):
        return
    declared = _Declared({})
    _collect(schema, root, declared, 0)
    if declared.open:
        return
    unused = tuple(name for name in declared.properties if name not in value)
    for name, inner in value.items():
        place = f"{path}.{name}" if path else str(name)
        if name in declared.properties:
            yield from _extras(resolved(declared.properties[name], root), root, inner, place, depth + 1)
        else:
            yield Extra(place, str(name), unused)


def _collect(schema: Any, root: dict[str, Any], declared: _Declared, depth: int) -> None:
    declared.parts += 1
    schema = resolved(schema, root)
    if not isinstance(schema, dict) or depth > _MAX_DEPTH or declared.parts > _MAX_PARTS:
        declared.open = True
        return
    if isinstance(schema.get("properties"), dict):
        declared.properties.update(schema["properties"])
    elif depth == 0 and not any(isinstance(schema.get(k), list) for k in _JOINED):
        declared.open = True  # any object will do
    if _leaves_room(schema):
        declared.open = True
    for key in _JOINED:
        parts = schema.get(key)
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict) and part.get("type") != "null":
                _collect(part, root, declared, depth + 1)
    for key in _ALSO:
        if isinstance(schema.get(key), dict):
            _collect(schema[key], root, declared, depth + 1)


def _leaves_room(schema: dict[str, Any]) -> bool:
    """True when the schema speaks about further keys itself: it welcomes them, or forbids them (which is
    another rule's business)."""
    extras = schema.get("additionalProperties")
    if isinstance(extras, dict | bool) or schema.get("unevaluatedProperties") is False:
        return True
    return bool(schema.get("patternProperties") or schema.get("propertyNames") or schema.get("dependentSchemas"))


def resolved(schema: Any, root: dict[str, Any]) -> Any:
    """A schema behind a local reference; None when it is not there. No other reference is followed."""
    for _ in range(_MAX_DEPTH):
        if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
            return schema
        schema = _pointed_at(schema["$ref"], root)
    return None


def _pointed_at(reference: str, root: dict[str, Any]) -> Any:
    if not reference.startswith("#"):
        return None
    here: Any = root
    for part in [p for p in reference[1:].split("/") if p]:
        name = re.sub("~1", "/", part).replace("~0", "~")
        here = here.get(name) if isinstance(here, dict) else None
    return here
