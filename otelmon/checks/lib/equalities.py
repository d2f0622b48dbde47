"""What a condition on another call asks of it for sure: `result.id == call.arguments.id`. Such calls are found by value, so
that a look-up costs the same however long the conversation is."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Literal

import msgspec

from otelmon.checks.lib.expressions import without_texts
from otelmon.checks.lib.selection import result_of
from otelmon.vocabulary.event import ToolCall

_EQUALITY = re.compile(r"(result|arguments)\.(\w+)\s*==\s*(?:'([^'\\]*)'|(\w+(?:\.\w+)+))")
NOTHING = object()


class Equality(msgspec.Struct, frozen=True):
    """`side.field` must equal `literal`, or what stands at `path` (a variable and its fields)."""

    side: Literal["result", "arguments"]
    field: str
    literal: str | None
    path: tuple[str, ...]

    def index(self, calls: Iterable[ToolCall]) -> dict[Any, list[ToolCall]]:
        """The calls by the value they have there; only texts, numbers and truth values can be looked for."""
        by_value: dict[Any, list[ToolCall]] = {}
        for call in calls:
            value = call.arguments if self.side == "arguments" else result_of(call)
            value = value.get(self.field, NOTHING) if isinstance(value, dict) else NOTHING
            if isinstance(value, str | int | float):
                by_value.setdefault(value, []).append(call)
        return by_value

    def wanted(self, bound: dict[str, Any]) -> Any:
        """The value that is looked for; NOTHING when there is none, and then the condition can not hold."""
        if self.literal is not None:
            return self.literal
        value: Any = bound
        for name in self.path:
            value = value.get(name, NOTHING) if isinstance(value, dict) else NOTHING
        return value


@lru_cache(maxsize=1_000)
def equality_in(condition: str) -> Equality | None:
    """The first equality that must hold for the condition to hold, or None: it has alternatives, loops or no such part."""
    bare = without_texts(condition)
    parts, bare_parts = condition.split("&&"), bare.split("&&")
    if "||" in bare or "?" in bare or len(parts) != len(bare_parts):
        return None
    depth = 0
    for part, without in zip(parts, bare_parts, strict=True):
        match = _EQUALITY.fullmatch(part.strip()) if depth == 0 else None
        if match:
            side: Literal["result", "arguments"] = "result" if match[1] == "result" else "arguments"
            return Equality(side, match[2], match[3], tuple(match[4].split(".")) if match[4] else ())
        depth += without.count("(") - without.count(")")
    return None
