"""How often a schema makes a validator look at one place of a value: references that meet again and again
multiply, so that a kilobyte of schema can cost years."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

IN_PLACE = ("$ref", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies")
NAMED = ("properties",)
OVERLAPPING = ("patternProperties",)
INNER = (
    "additionalProperties", "unevaluatedProperties", "propertyNames", "items", "prefixItems", "additionalItems", "contains",
    "unevaluatedItems",
)  # fmt: skip
UNBOUNDED = 100_000
MAX_STEPS = 50_000


class _TooMuchError(Exception):
    """The schema is not worth reading further."""


def looks_at_a_place(schema: dict[str, Any], levels: int) -> int:
    """An upper bound of how many subschemas are asked about one place of a value that is nested so many levels;
    UNBOUNDED when it is beyond reason, or when a reference leads outside or around in a circle."""
    try:
        return _Cost(schema).of(schema, levels)
    except (_TooMuchError, RecursionError):
        return UNBOUNDED


class _Cost:
    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._known: dict[tuple[int, int], int] = {}
        self._steps = 0

    def of(self, schema: Any, levels: int) -> int:
        """At most this many for any place at most `levels` below where the schema is asked."""
        here = self._remembered(schema, -1)
        return max(here, self._remembered(schema, levels - 1)) if levels else here

    def _remembered(self, schema: Any, levels: int) -> int:
        """Levels -1: what is asked of this place. Others: of one member or item, and so many levels below that."""
        if not isinstance(schema, dict):
            return 1
        key = (id(schema), levels)
        known = self._known.get(key)
        if known is None:
            self._known[key] = 0
            self._steps += 1
            known = self._here(schema) if levels < 0 else self._below(schema, levels)
            if known > UNBOUNDED or self._steps > MAX_STEPS:
                raise _TooMuchError
            self._known[key] = known
        elif known == 0:
            raise _TooMuchError  # it refers to itself without going deeper into the value
        return known

    def _here(self, schema: dict[str, Any]) -> int:
        return 1 + sum(self._remembered(part, -1) for part in self._in_place(schema))

    def _below(self, schema: dict[str, Any], levels: int) -> int:
        """All that is asked there or by what is asked in place may meet at one member; of the named members one."""
        named = max((self.of(each, levels) for each in _parts(schema, NAMED)), default=0)
        overlapping = sum(self.of(each, levels) for each in _parts(schema, (*OVERLAPPING, *INNER)))
        return 1 + named + overlapping + sum(self._remembered(part, levels) for part in self._in_place(schema))

    def _in_place(self, schema: dict[str, Any]) -> Iterator[Any]:
        if "$dynamicRef" in schema or "$recursiveRef" in schema:
            raise _TooMuchError
        for part in _parts(schema, IN_PLACE):
            yield self._resolved(part) if isinstance(part, str) else part

    def _resolved(self, reference: str) -> Any:
        if not (reference == "#" or reference.startswith("#/")):
            raise _TooMuchError
        found: Any = self._root
        for step in reference.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and name in found:
                found = found[name]
            elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
                found = found[int(name)]
            else:
                raise _TooMuchError
        return found


def _parts(schema: dict[str, Any], keywords: tuple[str, ...]) -> Iterator[Any]:
    """The subschemas (or the reference) under these keywords."""
    for keyword in keywords:
        value = schema.get(keyword)
        if isinstance(value, list):
            yield from (each for each in value if isinstance(each, dict | bool))
        elif isinstance(value, dict) and keyword in (
            "properties",
            "patternProperties",
            "dependentSchemas",
            "dependencies",
        ):
            yield from (each for each in value.values() if isinstance(each, dict | bool))
        elif isinstance(value, dict | bool) or (keyword == "$ref" and isinstance(value, str)):
            yield value
