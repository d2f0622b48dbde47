"""What changed between two schemas in normal form, and what a caller of the old one will notice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from typing import Any, Literal

import msgspec

from otelmon.checks.lib.drift_normal import LOWER, UPPER, plain_name
from otelmon.vocabulary.canonical import canonical

Class = Literal["breaking", "text", "annotations", "compatible"]
CLASSES: tuple[Class, ...] = ("breaking", "text", "annotations", "compatible")
Kind = Literal[
    "tool_added", "tool_removed", "tool_renamed", "description_changed", "title_changed",
    "param_added_required", "param_added_optional", "param_removed", "param_renamed", "required_tightened",
    "required_relaxed", "param_type_changed", "param_type_widened", "enum_narrowed", "enum_widened",
    "param_description_changed", "param_text_changed", "text_directs", "constraint_tightened", "constraint_relaxed",
    "constraint_changed", "default_added", "default_changed", "extras_forbidden", "extras_allowed",
    "hint_less_safe", "hint_safer", "hint_against_name", "hint_written", "hint_title_changed", "output_narrowed", "output_changed",
    "schema_changed",
]  # fmt: skip
_HARD = ("pattern", "multipleOf", "uniqueItems", "not", "if", "then", "else", "contains", "propertyNames",
         "dependentSchemas", "dependentRequired", "patternProperties", "prefixItems", "allOf", "$ref", "$up",
         "unevaluatedProperties", "unevaluatedItems")  # fmt: skip
HANDLED = frozenset((
    "type", "enum", "properties", "required", "additionalProperties", "items", "anyOf", "oneOf", "default",
    "description", *LOWER, *UPPER, *_HARD,
))  # fmt: skip
_ALIKE = 0.8
_MAX_PAIRS = 400  # of names that are held against each other


class Change(msgspec.Struct, frozen=True):
    """One difference. `where` is the parameter, dotted, "" for the tool itself; `before` and `after` are what it
    was and is, None when there was nothing."""

    kind: Kind
    of: Class
    where: str = ""
    before: Any = None
    after: Any = None


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are one: `false` is not 0."""
    return bool(one == other) and canonical(one) == canonical(other)


def schema_changes(before: dict[str, Any], after: dict[str, Any], path: str = "") -> Iterator[Change]:
    """Differences of two schemas in normal form."""
    if same(before, after):
        return
    yield from _texts(before, after, path)
    if _alternatives_of(before) is None and _among(before, after):
        yield Change("constraint_relaxed", "compatible", path, None, _alternatives_of(after))
        return
    if _alternatives_of(after) is None and _among(after, before):
        yield Change("constraint_tightened", "breaking", path, _alternatives_of(before), None)
        return
    yield from _types(before, after, path)
    yield from _enums(before, after, path)
    yield from _bounds(before, after, path)
    yield from _hard(before, after, path)
    yield from _default(before, after, path)
    yield from _properties(before, after, path)
    yield from _extras(before, after, path)
    yield from _inner(before.get("items", True), after.get("items", True), f"{path}[]")
    for key in ("anyOf", "oneOf"):
        yield from _alternatives(before.get(key), after.get(key), path)


def _texts(before: dict[str, Any], after: dict[str, Any], path: str) -> Iterator[Change]:
    """What only the model reads: descriptions, examples, and words no validator knows."""
    one, other = before.get("description"), after.get("description")
    if not same(one, other):
        yield Change("param_description_changed", "text", path, one, other)
    for key in sorted((before.keys() | after.keys()) - HANDLED):
        if not same(before.get(key), after.get(key)):
            yield Change("param_text_changed", "text", _at(path, key), before.get(key), after.get(key))


def _types(before: dict[str, Any], after: dict[str, Any], path: str) -> Iterator[Change]:
    one, other = before.get("type"), after.get("type")
    if same(one, other):
        return
    if one is not None and _accepts(other, one):
        yield Change("param_type_widened", "compatible", path, one, other)
    else:
        yield Change("param_type_changed", "breaking", path, one, other)


def _accepts(types: list[str] | None, wanted: list[str]) -> bool:
    if types is None:
        return True
    known = {*types, *(["integer"] if "number" in types else [])}
    return set(wanted) <= known


def _enums(before: dict[str, Any], after: dict[str, Any], path: str) -> Iterator[Change]:
    one, other = before.get("enum"), after.get("enum")
    if same(one, other):
        return
    kept = {canonical(value) for value in other} if isinstance(other, list) else None
    narrowed = kept is not None and not (isinstance(one, list) and all(canonical(value) in kept for value in one))
    if narrowed:
        yield Change("enum_narrowed", "breaking", path, one, other)
    else:
        yield Change("enum_widened", "compatible", path, one, other)


def _bounds(before: dict[str, Any], after: dict[str, Any], path: str) -> Iterator[Change]:
    for keys, sign in ((LOWER, 1), (UPPER, -1)):
        for key in keys:
            one, other = before.get(key), after.get(key)
            if not same(one, other):
                yield _constraint(_at(path, key), one, other, _tighter(one, other, sign))


def _tighter(one: Any, other: Any, sign: int) -> bool:
    """Whether a bound refuses more than before; True when it can not be told."""
    if other is None:
        return False
    if one is None or not all(isinstance(value, int | float) for value in (one, other)):
        return True
    return bool(sign * other > sign * one)


def _hard(before: dict[str, Any], after: dict[str, Any], path: str) -> Iterator[Change]:
    for key in _HARD:
        one, other = before.get(key), after.get(key)
        if same(one, other):
            continue
        if same(_bare(one), _bare(other)):
            yield Change("param_text_changed", "text", _at(path, key), one, other)
        elif one is None or other is None:
            yield _constraint(_at(path, key), one, other, one is None)
        else:
            yield Change("constraint_changed", "breaking", _at(path, key), one, other)


def _constraint(where: str, one: Any, other: Any, tighter: bool) -> Change:
    if tighter:
        return Change("constraint_tightened", "breaking", where, one, other)
    return Change("constraint_relaxed", "compatible", where, one, other)


def _default(before: dict[str, Any], after: dict[str, Any], path: str) -> Iterator[Change]:
    one, other = before.get("default"), after.get("default")
    if same(one, other):
        return
    if one is None:
        yield Change("default_added", "compatible", path, one, other)
    else:  # a call that leaves it out does something else now
        yield Change("default_changed", "breaking", path, one, other)


def _properties(before: dict[str, Any], after: dict[str, Any], path: str) -> Iterator[Change]:
    one, other = _declared(before), _declared(after)
    needed, needs = set(before.get("required", ())), set(after.get("required", ()))
    renamed = _renamed(one, other)
    for name in sorted(one.keys() & other.keys()):
        where = _at(path, name)
        if name in needs - needed:
            yield Change("required_tightened", "breaking", where, False, True)
        elif name in needed - needs:
            yield Change("required_relaxed", "compatible", where, True, False)
        yield from _inner(one[name], other[name], where)
    for name in sorted(one.keys() - other.keys()):
        if name in renamed:
            yield Change("param_renamed", "breaking", _at(path, name), name, renamed[name])
        else:
            yield Change("param_removed", "breaking", _at(path, name), one[name], None)
    for name in sorted(other.keys() - one.keys() - set(renamed.values())):
        if name in needs:
            yield Change("param_added_required", "breaking", _at(path, name), None, other[name])
        else:
            yield Change("param_added_optional", "compatible", _at(path, name), None, other[name])


def _declared(schema: dict[str, Any]) -> dict[str, Any]:
    """The properties, also those that are only required."""
    known = schema.get("properties", {})
    named = known if isinstance(known, dict) else {}
    return {**{str(name): {} for name in schema.get("required", ()) if name not in named}, **named}


def _renamed(one: dict[str, Any], other: dict[str, Any]) -> dict[str, str]:
    """New names by old ones, where one parameter went and one came that says the same."""
    found: dict[str, str] = {}
    gone, fresh = sorted(one.keys() - other.keys()), sorted(other.keys() - one.keys())
    spelled = {plain_name(name): name for name in fresh}
    few = len(gone) * len(fresh) <= _MAX_PAIRS
    for name in gone:
        new = spelled.get(plain_name(name))
        if new is None and few:
            new = next((n for n in fresh if n not in found.values() and _same(name, one[name], n, other[n])), None)
        if new is not None:
            found.setdefault(name, new)
    return found


def _same(name: str, schema: Any, new: str, other: Any) -> bool:
    if not same(_bare(schema), _bare(other)):
        return False
    said, says = (part.get("description") if isinstance(part, dict) else None for part in (schema, other))
    return (bool(said) and said == says) or SequenceMatcher(None, name, new).ratio() >= _ALIKE


def _extras(before: dict[str, Any], after: dict[str, Any], path: str) -> Iterator[Change]:
    one, other = before.get("additionalProperties", True), after.get("additionalProperties", True)
    if same(one, other):
        return
    if isinstance(one, dict) and isinstance(other, dict):
        yield from schema_changes(one, other, _at(path, "*"))
    elif other is True or one is False:
        yield Change("extras_allowed", "compatible", path, one, other)
    else:  # a call that names declared parameters only does not notice
        free = not before.get("properties")
        yield Change("extras_forbidden", "breaking" if free else "compatible", path, one, other)


def _inner(one: Any, other: Any, path: str) -> Iterator[Change]:
    """Two parts that may be `true` (anything goes) or `false` (nothing does)."""
    if same(one, other):
        return
    if one is False or other is False:
        yield _constraint(path, one, other, other is False)
    else:
        yield from schema_changes(one if isinstance(one, dict) else {}, other if isinstance(other, dict) else {}, path)


def _alternatives(one: Any, other: Any, path: str) -> Iterator[Change]:
    """`anyOf` and `oneOf`: another alternative is more room, one less is less."""
    if same(one, other):
        return
    if not isinstance(one, list) or not isinstance(other, list):
        yield _constraint(path, one, other, one is None)
        return
    left, new = _without(one, other), _without(other, one)
    if len(left) == len(new):
        for before, after in zip(left, new, strict=True):
            yield from _inner(before, after, path)
    elif not left:
        yield Change("constraint_relaxed", "compatible", path, None, new)
    elif not new:
        yield Change("constraint_tightened", "breaking", path, left, None)
    else:
        yield Change("constraint_changed", "breaking", path, left, new)


def _alternatives_of(schema: dict[str, Any]) -> list[Any] | None:
    found = schema.get("anyOf", schema.get("oneOf"))
    return found if isinstance(found, list) else None


def _among(one: dict[str, Any], many: dict[str, Any]) -> bool:
    """Whether a schema is one of the alternatives of another."""
    alone = _bare(one)
    return any(_bare(part) == alone for part in _alternatives_of(many) or ())


def _without(parts: Iterable[Any], others: Iterable[Any]) -> list[Any]:
    known = {canonical(part) for part in others}
    return [part for part in parts if canonical(part) not in known]


def _bare(value: Any) -> Any:
    """A schema in normal form without its texts."""
    if isinstance(value, list):
        return [_bare(part) for part in value]
    if isinstance(value, dict):
        return {key: _bare(part) for key, part in value.items() if not (key == "description" and isinstance(part, str))}
    return value


def _at(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
