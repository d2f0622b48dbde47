"""Conditions of rules: CEL over a call and over what the rule looked up for it in the conversation.

Like the conditions of policies they are checked when they are loaded; what can only be seen when one runs
makes it false and is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

import cel

from otelmon.checks.lib.expressions import (
    CALL_FIELDS,
    ExpressionError,
    context_of,
    expression_mistakes,
    loops_in,
    not_decided,
    widest,
)

MAX_LOOPS = 4
_WIDEST = (10_000, 10_000, 500, 100, 40)  # by the number of loops: they may stand in each other


class Condition:
    """A compiled expression. `failures` counts why it could not be decided, by kind of error."""

    def __init__(self, text: str) -> None:
        self._program = cel.compile(text)
        self._most = _WIDEST[loops_in(text)]
        self.names = frozenset(self._program.variables())
        self.failures: Counter[str] = Counter()

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Whether the condition is true of these values."""
        return self.value(values) is True

    def value(self, values: Mapping[str, Any]) -> Any:
        """What the expression gives for these values; None when it can not be decided."""
        used = {name: values[name] for name in self.names if name in values}
        if self._most < _WIDEST[0] and widest(used) > self._most:
            not_decided(self.failures, "too_large")
            return None
        try:
            return self._program.execute(context_of(used))
        except Exception as error:  # noqa: BLE001 - the library raises many kinds; each one means "can not be decided"
            not_decided(self.failures, type(error).__name__)
            return None


def condition_mistakes(
    text: str, names: frozenset[str], answer: bool = True, fields: Mapping[str, Collection[str]] = CALL_FIELDS
) -> list[tuple[str, str]]:
    """What is wrong with an expression over these variables, as pairs of the mistake and what to do. `answer`: it
    must give true or false. `fields`: the fields of the variables that have no others."""
    return expression_mistakes(text, names, MAX_LOOPS, answer, fields)


@lru_cache(maxsize=1_000)
def compile_condition(text: str, names: frozenset[str]) -> Condition:
    """The condition, ready to be asked. Raises ExpressionError."""
    mistakes = condition_mistakes(text, names)
    if mistakes:
        raise ExpressionError(text, mistakes)
    return _compiled(text)


def compile_value(text: str) -> Condition:
    """An expression that was checked when its rule was loaded, ready to give its value."""
    return _compiled(text)


def names_in(text: str) -> frozenset[str]:
    """The variables an expression uses."""
    return _compiled(text).names


@lru_cache(maxsize=1_000)
def _compiled(text: str) -> Condition:
    return Condition(text)


def undecided(text: str) -> int:
    """How often this expression could not be decided since the process started: a value was missing, or of
    another type."""
    return _compiled(text).failures.total()
