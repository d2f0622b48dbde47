"""Conditions of rules: CEL over a call and over what the rule looked up for it in the conversation.

Like the conditions of policies they are checked when they are loaded; what can only be seen when one runs
makes it false and is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import cel

from otelmon.checks.lib.expressions import ExpressionError, expression_mistakes, loops_in, widest

MAX_LOOPS = 4
_WIDEST = (10_000, 10_000, 500, 100, 40)  # by the number of loops: they may stand in each other


class Condition:
    """A compiled condition. `failures` counts why it could not be decided, by kind of error."""

    def __init__(self, text: str) -> None:
        self._program = cel.compile(text)
        self._most = _WIDEST[loops_in(text)]
        self.failures: Counter[str] = Counter()

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Whether the condition is true of these values."""
        if self._most < _WIDEST[0] and widest(dict(values)) > self._most:
            self.failures["too_large"] += 1
            return False
        try:
            return self._program.execute(dict(values)) is True
        except Exception as error:  # noqa: BLE001 - the library raises many kinds; each one means "can not be decided"
            self.failures[type(error).__name__] += 1
            return False


def condition_mistakes(text: str, names: frozenset[str]) -> list[tuple[str, str]]:
    """What is wrong with a condition over these variables, as pairs of the mistake and what to do."""
    return expression_mistakes(text, names, MAX_LOOPS)


@lru_cache(maxsize=1_000)
def compile_condition(text: str, names: frozenset[str]) -> Condition:
    """The condition, ready to be asked. Raises ExpressionError."""
    mistakes = condition_mistakes(text, names)
    if mistakes:
        raise ExpressionError(text, mistakes)
    return Condition(text)
