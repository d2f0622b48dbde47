"""The records that results show: what a call gave back as data, also where it came as labelled lines of text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from otelmon.checks.lib.provenance_roles import name_words
from otelmon.checks.lib.sameness import plain_name
from otelmon.vocabulary.event import ToolCall

MAX_RECORDS = 500  # records read of one result
MAX_FIELDS = 200  # scalars read of one record
_MAX_TEXT, _MAX_DEPTH = 200_000, 5
_LINE = re.compile(r"^(?P<indent>\s*)(?P<dash>- )?(?P<name>[A-Za-z_][\w \-]{0,40}?)\s*:(?:\s+(?P<value>.*?))?\s*$")
_ITEM = re.compile(r"^\s*- (?P<value>\S.*?)\s*$")
_ID_WORDS = frozenset(
    (
        "id",
        "uuid",
        "guid",
        "number",
        "no",
        "nr",
        "code",
        "sku",
        "reference",
        "ref",
        "key",
        "email",
        "username",
        "handle",
        "iban",
    )
)


class Record(msgspec.Struct, frozen=True):
    """One thing of a result. `ids` are its own naming values as (field, value); `fields` its scalars as (path, name of the
    nearest key, value), those of inner objects and lists included."""

    ids: tuple[tuple[str, str], ...]
    fields: tuple[tuple[str, str, Any], ...]


def data_of(call: ToolCall) -> Any:
    """What came back as data: the decoded result, or what labelled lines of its text say; None when neither."""
    if isinstance(call.result, dict | list):
        return call.result
    text = call.result if isinstance(call.result, str) else call.result_text
    return _labelled(text[:_MAX_TEXT]) if isinstance(text, str) and ":" in text else None


def _labelled(text: str) -> Any:
    """`name: value` lines as an object; with dashes before the first of each a list of objects."""
    objects: list[dict[str, Any]] = []
    base: int | None = None
    last = ""
    for line in text.split("\n"):
        found = _LINE.match(line)
        if found is None:
            item = _ITEM.match(line)
            if item and objects and last and (objects[-1][last] is None or isinstance(objects[-1][last], list)):
                objects[-1][last] = [*(objects[-1][last] or []), _scalar(item["value"])]
            continue
        depth = len(found["indent"]) + (2 if found["dash"] else 0)
        if base is None:
            base = depth
            objects.append({})
        elif found["dash"] and depth == base and len(objects) < MAX_RECORDS:
            objects.append({})
        if depth == base:
            last = found["name"].strip()
            objects[-1].setdefault(last, _scalar(found["value"] or "null"))
    if not objects or sum(map(len, objects)) < 2:
        return None
    return objects if len(objects) > 1 or text.lstrip().startswith("- ") else objects[0]


def _scalar(text: str) -> Any:
    plain = text.strip()
    if len(plain) > 1 and plain[0] == plain[-1] and plain[0] in "'\"":
        return plain[1:-1]
    if plain in ("true", "false"):
        return plain == "true"
    return None if plain in ("null", "~", "[]", "{}", "") else plain


def lists_of(data: Any) -> Iterator[list[Record]]:
    """The lists of things in a result, each as its records; a map from ids to objects is a list too."""
    stack: list[tuple[Any, int]] = [(data, 0)]
    left = MAX_RECORDS
    while stack and left > 0:
        value, depth = stack.pop()
        left -= 1
        if isinstance(value, dict):
            items = _mapped(value)
            if items:
                yield items
            if depth < _MAX_DEPTH:
                stack.extend((inner, depth + 1) for inner in value.values() if isinstance(inner, dict | list))
        elif isinstance(value, list):
            items = [record_of(item) for item in value[:MAX_RECORDS] if isinstance(item, dict)]
            if items:
                yield items
            if depth < _MAX_DEPTH:
                stack.extend((inner, depth + 1) for inner in value[:MAX_RECORDS] if isinstance(inner, dict | list))


def _mapped(value: dict[str, Any]) -> list[Record]:
    """`{"77": {...}, "78": {...}}`: objects of one shape under their ids."""
    inner = [v for v in value.values() if isinstance(v, dict)]
    if len(inner) < 2 or len(inner) != len(value) or any(not any(map(str.isdigit, str(k))) for k in value):
        return []
    records = [record_of(v) for v in inner[:MAX_RECORDS]]
    return [Record((("id", str(key)), *record.ids), record.fields) for key, record in zip(value, records, strict=False)]


def record_of(item: dict[str, Any]) -> Record:
    """An object as a record."""
    ids = [
        (str(k), str(v))
        for k, v in item.items()
        if is_id_name(str(k)) and isinstance(v, str | int) and not isinstance(v, bool) and v != ""
    ]
    return Record(tuple(ids[:8]), tuple(scalars(item)))


@lru_cache(maxsize=4096)
def is_id_name(name: str) -> bool:
    """True for a field that names the record it stands in, or another one: `id`, `order_id`, `email`."""
    words = name_words(name)
    return bool(words) and words[-1] in _ID_WORDS


def scalars(value: Any, most: int = MAX_FIELDS) -> Iterator[tuple[str, str, Any]]:
    """(path, name of the nearest key, value) of the scalars in JSON data, in order, at most `most`."""
    stack: list[tuple[str, str, Any, int]] = [("", "", value, 0)]
    left = most
    while stack and left > 0:
        path, name, here, depth = stack.pop()
        if isinstance(here, dict) and depth <= _MAX_DEPTH:
            stack.extend(reversed([(f"{path}.{k}" if path else str(k), str(k), v, depth + 1) for k, v in here.items()]))
        elif isinstance(here, list) and depth <= _MAX_DEPTH:
            stack.extend(reversed([(f"{path}[{n}]", name, v, depth + 1) for n, v in enumerate(here[:most])]))
        elif not isinstance(here, dict | list) and here is not None:
            left -= 1
            yield path, name, here


def same_name(one: str, other: str) -> bool:
    """True when two names are one apart from case and separators."""
    return plain_name(one) == plain_name(other)
