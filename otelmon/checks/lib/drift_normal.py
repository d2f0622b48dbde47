"""A JSON Schema without what means nothing: order, references, defaults written out, names of machines.

Two definitions with one normal form are one version of a tool.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from otelmon.vocabulary.canonical import canonical

MAX_NODES, MAX_DEPTH = 5_000, 24
SCHEMA_MAPS = frozenset(("properties", "patternProperties", "dependentSchemas"))
SCHEMA_LISTS = frozenset(("anyOf", "oneOf", "allOf", "prefixItems"))
SCHEMAS = frozenset(
    ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedProperties", "unevaluatedItems")
)  # fmt: skip
LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains")
UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains")
BOUNDS = (*LOWER, *UPPER, "multipleOf")
VALUES = frozenset(("default", "enum", "const", "examples"))
_NOTHING = frozenset(("$schema", "$id", "id", "$comment", "$anchor", "$defs", "definitions", "$vocabulary"))
_DEFAULTS: dict[str, Any] = {
    "minLength": 0, "minItems": 0, "minProperties": 0, "uniqueItems": False, "required": [], "properties": {},
    "patternProperties": {}, "dependentSchemas": {}, "additionalProperties": True, "items": True, "deprecated": False,
    "readOnly": False, "writeOnly": False, "unevaluatedProperties": True, "unevaluatedItems": True,
    "propertyNames": True, "description": "", "title": "", "examples": [], "dependentRequired": {},
}  # fmt: skip
_SPACES = re.compile(r"\s+")
_INSTANT = re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?")
_PLAIN_NAME = re.compile(r"[\W_]+")
_INFERRED = (
    (("properties", "required", "additionalProperties"), "object"),
    (("items", "minItems", "maxItems"), "array"),
)


_KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(SCHEMA_MAPS, (dict,)),
    **dict.fromkeys(SCHEMA_LISTS, (list,)),
    **dict.fromkeys(SCHEMAS, (dict, bool)),
    **dict.fromkeys(BOUNDS, (int, float)),
    **dict.fromkeys(("description", "title", "pattern", "$ref"), (str,)),
    **dict.fromkeys(("enum", "required", "examples"), (list,)),
    "type": (str, list),
    "uniqueItems": (bool,),
}


class TooLargeError(Exception):
    """The schema has more parts than are looked at."""


def plain_text(text: str) -> str:
    """A text with white space, composed characters and dates (those of today) made equal."""
    return _INSTANT.sub("<date>", _SPACES.sub(" ", unicodedata.normalize("NFC", text)).strip())


def plain_name(name: str) -> str:
    """A name without case and separators: `perPage` and `per_page` are one."""
    return _PLAIN_NAME.sub("", name).casefold()


def normal(schema: Any) -> dict[str, Any]:
    """The normal form of a tool's input schema, always of an object. Raises TooLargeError."""
    root = schema if isinstance(schema, dict) else {}
    found = _Normal(root).schema(root, "", ())
    found = found if isinstance(found, dict) else {}
    return {"type": ["object"], **found}


class _Normal:
    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._nodes = 0

    def schema(self, schema: Any, name: str, stack: tuple[str, ...]) -> Any:
        """The normal form of a part; `name` is the property it belongs to, `stack` the references it stands in."""
        self._nodes += 1
        if self._nodes > MAX_NODES or len(stack) > MAX_DEPTH:
            raise TooLargeError
        if not isinstance(schema, dict):
            return schema if isinstance(schema, bool) else {}
        words = {_word(key, value): value for key, value in schema.items() if key not in _NOTHING and value is not None}
        found = {key: self._part(key, value, stack) for key, value in words.items()}
        if "const" in schema:
            found["const"] = schema["const"]
        pointer = found.pop("$ref", None)
        if isinstance(pointer, str):
            found = {**self._referred(pointer, stack), **found}
        found = _folded(found)
        found = {key: value for key, value in found.items() if _DEFAULTS.get(key, _NOTHING) != value}
        title = found.get("title", "")
        if not isinstance(title, str) or " " not in title or plain_name(title) == plain_name(name):
            found.pop("title", None)  # the name of a class, or that of the parameter
        _type(found)
        return found

    def _referred(self, pointer: str, stack: tuple[str, ...]) -> dict[str, Any]:
        if pointer in stack:
            return {"$up": len(stack) - stack.index(pointer)}
        target = _pointed_at(pointer, self._root)
        if target is None:
            return {"$ref": pointer}
        found = self.schema(target, pointer.rpartition("/")[2], (*stack, pointer))
        return found if isinstance(found, dict) else {}

    def _part(self, key: str, value: Any, stack: tuple[str, ...]) -> Any:
        deeper = (*stack, "")
        if key in SCHEMA_MAPS and isinstance(value, dict):
            return {str(name): self.schema(part, str(name), deeper) for name, part in value.items()}
        if key in SCHEMA_LISTS and isinstance(value, list):
            return [self.schema(part, "", deeper) for part in value]
        if key in SCHEMAS:
            found = self.schema(value, "", deeper)
            return True if found == {} else found
        if key in ("enum", "required") and isinstance(value, list):
            return sorted({canonical(item): item for item in value}.values(), key=canonical)
        if isinstance(value, str) and key not in VALUES and key not in ("pattern", "$ref"):
            return plain_text(value)
        return value


def _word(key: str, value: Any) -> str:
    """The keyword; marked when its value is none that the keyword can have, so that it binds nobody."""
    if key == "items" and isinstance(value, list):
        return "prefixItems"  # as it was written before
    kind = _KINDS.get(key)
    if kind is None:
        return str(key)
    fits = isinstance(value, kind) and (bool in kind or not isinstance(value, bool))
    if fits and key in ("required", "type") and isinstance(value, list):
        fits = all(isinstance(item, str) for item in value)
    return key if fits else f"? {key}"


def _folded(found: dict[str, Any]) -> dict[str, Any]:
    """`allOf` of one, `const`, and alternatives that only differ in type, said the short way."""
    one = found.get("allOf")
    if isinstance(one, list) and len(one) == 1 and isinstance(one[0], dict):
        found = {**one[0], **{key: value for key, value in found.items() if key != "allOf"}}
    if "const" in found:
        found["enum"] = [found.pop("const")]
    for key in ("anyOf", "oneOf"):
        if isinstance(found.get(key), list):  # the same alternative twice is no further one
            found[key] = sorted({canonical(part): part for part in found[key]}.values(), key=canonical)
    for key in ("anyOf", "oneOf"):
        found = _one_of_types(found, key)
    return found


def _one_of_types(found: dict[str, Any], key: str) -> dict[str, Any]:
    """A single alternative beside null, or nothing but types."""
    parts = found.get(key)
    if not isinstance(parts, list) or "type" in found or not all(isinstance(part, dict) for part in parts):
        return found
    real = [part for part in parts if part.get("type") != ["null"]]
    if len(real) > 1 and not all(part.keys() == {"type"} for part in real):
        return found
    types = sorted({one for part in parts for one in part.get("type", ())})
    if not real or not all("type" in part for part in real):
        return found
    rest = {name: value for name, value in found.items() if name != key}
    merged = {**real[0], **rest, "type": types}
    if "null" in types and isinstance(merged.get("enum"), list) and None not in merged["enum"]:
        merged["enum"] = sorted([*merged["enum"], None], key=canonical)
    return merged


def _type(found: dict[str, Any]) -> None:
    """The types as a sorted list; told by the values or the parts where the schema does not say."""
    said = found.get("type")
    if isinstance(said, str):
        found["type"] = [said]
    elif isinstance(said, list) and said:
        found["type"] = sorted({str(one) for one in said})
    elif said is None and isinstance(found.get("enum"), list):
        found["type"] = sorted({_type_of(value) for value in found["enum"]})
    elif said is None:
        found.pop("type", None)
        kind = next((kind for keys, kind in _INFERRED if any(key in found for key in keys)), None)
        if kind:
            found["type"] = [kind]
    if found.get("type") == ["boolean"] and len(found.get("enum") or ()) == 2:
        del found["enum"]


def _type_of(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    kinds: tuple[tuple[type, str], ...] = ((str, "string"), (int, "integer"), (float, "number"), (list, "array"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "object")


def _pointed_at(pointer: str, root: dict[str, Any]) -> Any:
    """What a local reference points at, None when it is elsewhere or not there."""
    if not pointer.startswith("#"):
        return None
    here: Any = root
    for part in [p for p in pointer[1:].split("/") if p]:
        here = here.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(here, dict) else None
    return here
