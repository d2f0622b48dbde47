"""Whether a write is sent again: the same effect, or one that differs only in wording."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rapidfuzz.fuzz import ratio

from otelmon.checks.lib.identity import identifying_values
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall

MAX_COMPARED = 200
"""Calls back in which another wording is looked for: comparing every call with every other is for nobody's good."""


def earlier_attempts(call: ToolCall, view: View, similarity: float) -> Iterator[ToolCall]:
    """Earlier calls of the tool that meant the same effect, newest first. `similarity` (0 to 1) is how
    alike two free texts must be to count as one."""
    key = view.effect_key(call)
    for back, earlier in enumerate(reversed(view.same_tool_before(call))):
        if view.effect_key(earlier) == key or (back < MAX_COMPARED and same_effect(earlier, call, view, similarity)):
            yield earlier


def same_effect(first: ToolCall, second: ToolCall, view: View, similarity: float) -> bool:
    """True when the effect keys are equal, or the arguments differ only in the wording of free text."""
    if view.effect_key(first) == view.effect_key(second):
        return True
    if (first.server, first.environment) != (second.server, second.environment):
        return False
    return alike(view.business_arguments(first), view.business_arguments(second), similarity)


def alike(one: dict[str, Any], other: dict[str, Any], similarity: float) -> bool:
    """True when the arguments differ only in the wording of free text."""
    if one.keys() != other.keys() or not one:
        return False
    return all(_alike_value(name, value, other[name], similarity) for name, value in one.items())


def _alike_value(name: str, one: Any, other: Any, similarity: float) -> bool:
    if one == other:
        return True
    if not isinstance(one, str) or not isinstance(other, str) or len(one) < 8:
        return False
    if identifying_values({name: one}) or identifying_values({name: other}):
        return False
    if [c for c in one if c.isdigit()] != [c for c in other if c.isdigit()]:
        return False  # another date, amount or number is another effect
    return ratio(one, other) >= similarity * 100
