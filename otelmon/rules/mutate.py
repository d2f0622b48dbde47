"""Is every parameter of a rule load-bearing? Changes each one in turn; some inline test must break."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_type_hints

import msgspec

from otelmon.rules.examples import run_rule_test
from otelmon.rules.loader import with_params
from otelmon.rules.model import Rule
from otelmon.rules.shapes import literals, shown
from otelmon.vocabulary.errors import UserError


class Mutant(msgspec.Struct, frozen=True):
    """A rule with one parameter changed. `change` says how: `max_repeats: 3 -> 6`."""

    rule: Rule
    parameter: str
    change: str

    def __str__(self) -> str:
        return self.change


def mutants(rule: Rule) -> Iterator[Mutant]:
    """Every single change of a parameter that its type allows: numbers doubled, halved and one more or
    less, booleans flipped, words exchanged, texts altered, lists and maps emptied. Parameters that the type
    calls PROSE decide nothing and stay."""
    prose = getattr(rule.check.params_type, "PROSE", ())
    hints = get_type_hints(rule.check.params_type)
    for name, value in msgspec.to_builtins(rule.params).items():
        for other in () if name in prose else _others(value, literals(hints.get(name))):
            try:
                changed = with_params(rule, {name: other})
            except UserError:
                continue  # the type refuses this value: nobody can set it
            yield Mutant(changed, name, f"{name}: {shown(value)} -> {shown(other)}")


def survivors(rule: Rule) -> list[Mutant]:
    """The changes that no inline test notices. Each names a parameter that is not tested, or does nothing."""
    return [mutant for mutant in mutants(rule) if not _noticed(mutant.rule)]


def _noticed(rule: Rule) -> bool:
    return any(run_rule_test(rule, case).verdict != "pass" for case in rule.tests)


def _others(value: Any, choices: tuple[Any, ...]) -> list[Any]:
    """Other values than this one, each once."""
    if choices:
        return [choice for choice in choices if choice not in (value, None)]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [n for n in dict.fromkeys((value * 2, value // 2, value + 1, value - 1)) if n != value]
    if isinstance(value, float):
        return [n for n in dict.fromkeys((value * 2, value / 2, value + 1, value - 1)) if n != value]
    if isinstance(value, str):
        return [value + "-", ""] if value else ["x"]
    if isinstance(value, list | tuple):
        return [[]] if value else []
    if isinstance(value, dict):
        return [{}] if value else []
    return []
