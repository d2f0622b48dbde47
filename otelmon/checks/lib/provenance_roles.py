"""What an argument is for: its role, from its name, its schema and the shape of its value."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from typing import Any, Literal

from otelmon.checks.lib.values import EMAIL, URL, any_date, as_date, to_decimal

Role = Literal[
    "constant", "free", "setting", "generated", "id", "code", "amount", "date", "quantity",
    "email", "phone", "url", "path", "address", "name", "status", "other",
]  # fmt: skip

MAX_VALUE = 300  # longer text is content, whatever its name
MAX_LEAVES = 400  # arguments read of one call
_WORDS: dict[str, frozenset[str]] = {
    role: frozenset(words)
    for role, words in tomllib.loads((files("otelmon.checks") / "data" / "roles.toml").read_text("utf-8")).items()
}
_NAME_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_PLURAL = re.compile(r"^\w+[^suiow]s$")
_WORD = re.compile(r"[^\W\d_]{3,}")  # an id has few words; a slug is made of them
_PLACEHOLDER = re.compile(r"[.…?*_\-x]+|<[^<>]*>|\{[^{}]*\}|\[[^\[\]]*\]|(?:your|insert|placeholder)(?:[\W_].*)?")
_UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
_ID_SHAPE = re.compile(r"(?=\S*\d)[#]?[\w\-.:#/]{2,80}")
_CODE_SHAPE = re.compile(
    r"(?=(?:\S*\d){3})(?=\S*[^\W\d_]|(?:\S*\d){6})#?(?:[^\W\d_]{0,12}[-_#]?)?(?=\S*\d)[\w\-]{3,64}"
)
_ABROAD = re.compile(r"\+[\d\s().\-]{8,22}")
_PHONE_SHAPE = re.compile(r"\+?[\d\s().\-/]{7,22}")


def leaves(value: Any, path: str = "", key: str = "") -> Iterator[tuple[str, str, Any]]:
    """(path, name of the nearest key, value) of every scalar in a JSON value, at most MAX_LEAVES."""
    stack: list[tuple[str, str, Any]] = [(path, key, value)]
    count = 0
    while stack and count < MAX_LEAVES:
        place, name, here = stack.pop()
        if isinstance(here, dict):
            inner = [(f"{place}.{k}" if place else str(k), str(k), v) for k, v in here.items()]
            stack.extend(reversed(inner))
        elif isinstance(here, list):
            stack.extend(reversed([(f"{place}[{n}]", name, v) for n, v in enumerate(here)]))
        else:
            count += 1
            yield place, name, here


def name_words(name: str) -> list[str]:
    """The words of an argument's name, lower case, plurals reduced: `orderIds` -> order, id."""
    parts = [part.lower() for part in _NAME_PART.findall(name)]
    return [part[:-1] if _PLURAL.search(part) else part for part in parts]


def schema_at(schema: dict[str, Any] | None, path: str) -> dict[str, Any]:
    """The part of a JSON Schema that describes the value at a path, {} when it says nothing."""
    here: Any = schema or {}
    root = here
    for step in re.findall(r"[^.\[\]]+|\[\d+\]", path):
        here = _resolve(here, root)
        if step.startswith("["):
            here = here.get("items")
        else:
            properties = here.get("properties")
            here = properties.get(step) if isinstance(properties, dict) else None
        if not isinstance(here, dict):
            return {}
    return _resolve(here, root)


def _resolve(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    for _ in range(4):
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/"):
            target: Any = root
            for step in reference[2:].split("/"):
                target = target.get(step) if isinstance(target, dict) else None
            if not isinstance(target, dict):
                return schema
            schema = target
            continue
        branches = [b for key in ("anyOf", "oneOf", "allOf") for b in schema.get(key) or [] if isinstance(b, dict)]
        solid = [b for b in branches if b.get("type") != "null"]
        if len(solid) != 1 or "properties" in schema or "items" in schema:
            return schema
        schema = {**schema, **solid[0], "anyOf": None, "oneOf": None, "allOf": None}
    return schema


def constants(schema: dict[str, Any]) -> list[Any]:
    """Values that the schema itself supplies: enum, const, default."""
    found = list(schema.get("enum") or [])
    for branch in [b for key in ("anyOf", "oneOf") for b in schema.get(key) or [] if isinstance(b, dict)]:
        found.extend(branch.get("enum") or [])
    return found + [schema[key] for key in ("const", "default") if key in schema]


def role_of(name: str, value: Any, schema: dict[str, Any]) -> Role:
    """The role of one scalar argument."""
    if value is None or isinstance(value, bool) or value == "" or value in constants(schema):
        return "constant"
    words = name_words(name)
    if isinstance(value, str) and len(value) > MAX_VALUE:
        return "free"
    if isinstance(value, str):
        return _shape_role(words, value, schema) or _text_role(words, value)
    return _number_role(words, value)


def _has(words: list[str], role: str) -> bool:
    return bool(_WORDS[role] & set(words))


def _last(words: list[str], role: str) -> bool:
    """The word that says what the whole is: the last one, or the one before `of` or `number`."""
    head = [w for w in words if not w.isdigit()]
    return bool(head) and head[-1] in _WORDS[role]


def _shape_role(words: list[str], value: str, schema: dict[str, Any]) -> Role | None:
    """Roles that the value's own shape or the schema's format decides."""
    text = value.strip()
    if _has(words, "generated") and not _has(words, "strict"):
        return "generated"
    if EMAIL.fullmatch(text):
        return "free" if _last(words, "free") and not _has(words, "email") else "email"
    if _last(words, "free"):
        return "free"
    if URL.fullmatch(text):
        return "url"
    if schema.get("format") in ("date", "date-time") or (as_date(text) and len(text) <= 35):
        return "date" if any_date(text) else "free"
    return "id" if _UUID.fullmatch(text) else None


def _text_role(words: list[str], value: str) -> Role:
    text = value.strip()
    spaced = len(text.split()) > 1
    if _has(words, "phone") or _ABROAD.fullmatch(text):
        return "phone" if sum(c.isdigit() for c in text) >= 5 else "free"
    if _last(words, "strict"):
        return _strict_role(words, text, spaced)
    if _has(words, "address"):
        return "address"
    if _last(words, "date") or _last(words, "path") or _last(words, "status"):
        return _word_role(words, text)
    if _last(words, "amount") or _last(words, "quantity"):
        return _number_role(words, to_decimal(text)) if to_decimal(text) is not None else "free"
    if _last(words, "id") or (_last(words, "code") and _has(words, "id")):
        return "id" if _ID_SHAPE.fullmatch(text) and len(_WORD.findall(text)) <= 2 else "other"
    if _has(words, "name"):
        return "name" if not any(c.isdigit() for c in text) and not _is_alias(text) else "other"
    if _has(words, "setting"):
        return "setting"
    return "code" if _CODE_SHAPE.fullmatch(text) and not _PHONE_SHAPE.fullmatch(text) else "other"


def _strict_role(words: list[str], text: str, spaced: bool) -> Role:
    """An id by its name, unless it is words, the name of a class of things, or an alias (`me`)."""
    if any(c.isdigit() for c in text):
        return "id"
    if spaced or _has(words, "kind"):
        return "other"
    return "constant" if text.casefold() in _WORDS["alias"] else "id"


def _is_alias(text: str) -> bool:
    return text.casefold() in _WORDS["alias"] | _WORDS["absent"]


def is_placeholder(text: str) -> bool:
    """What stands in for a value that is not known: `...`, `<order id>`, `your_order_id`, `unknown`."""
    plain = text.strip().casefold()
    return plain in _WORDS["absent"] or _PLACEHOLDER.fullmatch(plain) is not None


def _word_role(words: list[str], text: str) -> Role:
    if _last(words, "date"):
        return "date" if any_date(text) else "free"
    return "path" if _last(words, "path") else "status"


def _number_role(words: list[str], value: Any) -> Role:
    if _last(words, "strict"):
        return "id"
    if _has(words, "setting"):
        return "setting"
    if _has(words, "quantity") or (words[:1] in (["num"], ["number"], ["total"]) and len(words) > 2):
        return "quantity"
    if _has(words, "amount"):
        return "amount"
    return "id" if _last(words, "id") and abs(value) >= 100 else "other"
