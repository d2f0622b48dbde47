"""Compares data with a type and names every mistake by its path, in words for people, with a guess."""

from __future__ import annotations

import difflib
import json
import types
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

Key = str | int
Keys = tuple[Key, ...]

_WORDS: dict[Any, str] = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    type(None): "nothing",
}


class Mistake(msgspec.Struct, frozen=True):
    """One mistake in data: the path to it and the parts of its message."""

    path: Keys
    wrong: str
    expected: str = ""
    do: str = ""


def mistakes(value: Any, kind: Any, path: Keys = ()) -> Iterator[Mistake]:
    """Every way in which `value` is not a `kind`: unknown, missing and mistyped parts, all at once."""
    kind = _branch(value, without_none(kind)) if value is not None else kind
    origin = get_origin(kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield from _struct_mistakes(value, kind, path)
    elif origin in (tuple, list) and isinstance(value, list):
        for index, item in enumerate(value):
            yield from mistakes(item, get_args(kind)[0], (*path, index))
    elif origin is dict and isinstance(value, dict):
        for key, item in value.items():
            yield from mistakes(item, get_args(kind)[1], (*path, key))
    else:
        yield from _leaf_mistakes(value, kind, path)


def guess(name: str, known: Iterable[str]) -> str:
    """`did you mean x?`, or "" when nothing is near."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else ""


def dotted(path: Keys) -> str:
    """A path as people write it: `suppress[1].where`."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")


def shown(value: Any) -> str:
    """A value as a message quotes it, cut to one short line."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def without_none(kind: Any) -> Any:
    """`X` of `X | None`; any other type unchanged."""
    if get_origin(kind) not in (Union, types.UnionType):
        return kind
    rest = [k for k in get_args(kind) if k is not type(None)]
    return rest[0] if len(rest) == 1 else kind


def _branch(value: Any, kind: Any) -> Any:
    """Of several types, the one that a map or a list can only mean."""
    if get_origin(kind) in (Union, types.UnionType) and isinstance(value, dict | list):
        wanted = "a map" if isinstance(value, dict) else "a list"
        fitting = [branch for branch in get_args(kind) if words(branch) == wanted]
        return fitting[0] if len(fitting) == 1 else kind
    return kind


def _struct_mistakes(value: Any, kind: type[msgspec.Struct], path: Keys) -> Iterator[Mistake]:
    if not isinstance(value, dict):
        yield Mistake(path, f"{_name(path)} is {shown(value)}", "expected a map")
        return
    fields = _fields(kind)
    found = [*_unknown_fields(value, fields, path), *_field_mistakes(value, fields, path)]
    yield from found
    if not found:
        yield from _whole_mistake(value, kind, path)


def _unknown_fields(value: dict[str, Any], known: Iterable[str], path: Keys) -> Iterator[Mistake]:
    for key in value:
        if key not in known:
            do = guess(key, known) or f"known: {', '.join(known) or 'none'}"
            yield Mistake((*path, key), f"unknown field {key}", do=do)


def _field_mistakes(value: dict[str, Any], fields: dict[str, tuple[Any, bool]], path: Keys) -> Iterator[Mistake]:
    for name, (kind, required) in fields.items():
        if name in value:
            yield from mistakes(value[name], kind, (*path, name))
        elif required:
            yield Mistake(path, f"{name} is missing", f"expected {words(kind)}")


@cache
def _fields(kind: type[msgspec.Struct]) -> dict[str, tuple[Any, bool]]:
    """The fields of a type by the name they have in data: their type, and whether they must be there."""
    hints = get_type_hints(kind, include_extras=True)
    return {f.encode_name: (hints[f.name], f.required) for f in msgspec.structs.fields(kind)}


def _whole_mistake(value: dict[str, Any], kind: type[msgspec.Struct], path: Keys) -> Iterator[Mistake]:
    """What the type itself refuses when all its fields are sound."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        yield Mistake(path, f"{_name(path)}: {_said(error)}")


def _leaf_mistakes(value: Any, kind: Any, path: Keys) -> Iterator[Mistake]:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        choices = [c for c in literals(kind) if isinstance(c, str)]
        do = guess(value, choices) if isinstance(value, str) else ""
        yield Mistake(path, f"{_name(path)} is {shown(value)}", _expected(value, kind, error), do)


def _expected(value: Any, kind: Any, error: msgspec.ValidationError) -> str:
    """The type in words, or the bound that a value of the right type is beyond."""
    if get_origin(kind) is Annotated and not any(mistakes(value, get_args(kind)[0])):
        return _said(error).replace("`", "")
    return f"expected {words(kind)}"


def _said(error: msgspec.ValidationError) -> str:
    text = str(error).partition(" - at ")[0]
    return text[:1].lower() + text[1:]


def literals(kind: Any) -> tuple[Any, ...]:
    """The values that a type made of literals allows; none for any other type."""
    if get_origin(kind) is Literal:
        return get_args(kind)
    if get_origin(kind) in (Union, types.UnionType):
        return tuple(c for k in get_args(kind) for c in literals(k))
    return ()


def words(kind: Any) -> str:
    """A type in words: "a whole number", "one of info, low"."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return words(arguments[0])
    if origin is Literal:
        return "one of " + ", ".join(str(a) for a in arguments) if len(arguments) > 1 else str(arguments[0])
    if origin in (Union, types.UnionType):
        return " or ".join(words(a) for a in arguments if a is not type(None))
    if origin in (tuple, list):
        return "a list"
    if origin is dict or (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return "a map"
    return _WORDS.get(kind, "a value")


def _name(path: Keys) -> str:
    """The last name of a path, with the index of a list item: `tags[1]`."""
    index = ""
    for key in reversed(path):
        if isinstance(key, str):
            return f"{key}{index}"
        index = f"[{key}]{index}"
    return "the content" if not index else f"item {index}"
