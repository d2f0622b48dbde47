"""JSON Schema behind guards: no remote references, bounded size and depth, linear patterns, masked values."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jsonschema_rs
import msgspec

from otelmon.checks.lib.schema_cost import looks_at_a_place

MAX_SCHEMA_BYTES, MAX_VALUE_BYTES, MAX_DEPTH, MAX_VIOLATIONS = 256 * 1024, 1024 * 1024, 64, 50
MAX_LOOKS, MAX_WORK = 10_000, 5_000_000
"""Subschemas asked about one place of a value, and about all of it together."""
_MASK = "(value)"


class Violation(msgspec.Struct, frozen=True):
    """One place where a value breaks its schema. `path` is a JSON pointer into the value ("" is the
    whole), `keyword` the keyword that failed, `expected` what it asks for; never the value itself."""

    path: str
    keyword: str
    expected: str


class NotEvaluableError(Exception):
    """The schema or the value can not be judged: too large, too deep, or not a schema."""


def violations(schema: dict[str, Any], value: Any) -> list[Violation]:
    """Every place where the value breaks the schema, at most 50. Raises NotEvaluableError."""
    text = _bounded(schema, MAX_SCHEMA_BYTES)
    size = _bounded(value, MAX_VALUE_BYTES)
    if text.count(b'Ref"') + text.count(b'$ref"') > 1:
        looks = _looks(text, depth(value))
        if looks > MAX_LOOKS or looks * _places(size) > MAX_WORK:
            raise NotEvaluableError
    validator = _compiled(text)
    if validator is None:
        raise NotEvaluableError
    found: list[Violation] = []
    try:
        if validator.is_valid(value):
            return found
        for error in validator.iter_errors(value):
            if len(found) >= MAX_VIOLATIONS:
                break
            found.append(_violation(error))
    except Exception as error:  # a validator of hostile input may fail in any way
        raise NotEvaluableError from error
    return found


def _bounded(data: Any, limit: int) -> bytes:
    try:
        text = msgspec.json.encode(data)
    except (TypeError, ValueError, RecursionError) as error:
        raise NotEvaluableError from error
    if len(text) > limit or (text.count(b"{") + text.count(b"[") > MAX_DEPTH and depth(data) > MAX_DEPTH):
        raise NotEvaluableError
    return text


def depth(data: Any) -> int:
    """How deeply data is nested, counted no further than one beyond MAX_DEPTH."""
    level, current = 0, [data]
    while current and level <= MAX_DEPTH:
        following: list[Any] = []
        for item in current:
            if isinstance(item, dict):
                following += item.values()
            elif isinstance(item, list):
                following += item
        current = [i for i in following if isinstance(i, dict | list)]
        level += 1
    return level + bool(current)


def _places(text: bytes) -> int:
    """At least the number of members and items in JSON text."""
    return 1 + sum(text.count(mark) for mark in (b",", b"{", b"["))


@lru_cache(maxsize=1024)
def _looks(text: bytes, levels: int) -> int:
    return looks_at_a_place(msgspec.json.decode(text), levels)


@lru_cache(maxsize=256)
def _compiled(text: bytes) -> Any:
    """A validator, or None when the text is no usable schema. Formats are hints here, not rules."""
    try:
        schema = msgspec.json.decode(text)
        return jsonschema_rs.validator_for(
            schema,
            validate_formats=False,
            offline=True,
            mask=_MASK,
            pattern_options=jsonschema_rs.RegexOptions(size_limit=1_000_000),
        )
    except Exception:  # noqa: BLE001 - whatever a hostile schema causes, it is not a verdict
        return None


def _violation(error: Any) -> Violation:
    path = "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in error.instance_path)
    return Violation(path, error.kind.name, str(error.message)[:300])
