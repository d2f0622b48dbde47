"""Whether rules written as data fit the catalogue in force: every argument they name is one of the tools they are about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from otelmon.checks.lib.argument_types import argument_mistakes
from otelmon.checks.lib.selection import Selector
from otelmon.rules.catalogue import tools_meant
from otelmon.rules.model import Rule
from otelmon.rules.shapes import Keys
from otelmon.rules.yaml_source import read_yaml
from otelmon.vocabulary.catalogue import Catalogue
from otelmon.vocabulary.errors import Problem

_SELECTORS = ("calls", "first", "then", "without")


def fit_problems(rules: Iterable[Rule], catalogue: Catalogue | None) -> Iterator[Problem]:
    """Conditions of rules that name an argument which no tool they are about has, or use it as what it is not, each with
    its place. Only where the catalogue is complete and every tool meant has a schema; built-in rules name none."""
    if catalogue is None or not catalogue.complete:
        return
    for rule in rules:
        if rule.origin == "built-in":
            continue
        for path, text, selector in _conditions(rule.params):
            for wrong, do in argument_mistakes(text, tools_meant(selector.tools, catalogue)):
                yield read_yaml(Path(rule.path)).problem(("params", *path), wrong, do=do)


def _conditions(params: Any) -> Iterator[tuple[Keys, str, Selector]]:
    """(place, condition, the calls it is about) of everything that asks about a call."""
    for name in _SELECTORS:
        selector = getattr(params, name, None)
        if isinstance(selector, Selector) and selector.tools and selector.when is not None:
            yield (name, "when"), selector.when, selector
    calls = getattr(params, "calls", None)
    if not isinstance(calls, Selector) or not calls.tools:
        return
    if isinstance(getattr(params, "when", None), str):
        yield ("when",), params.when, calls
    for name, binding in getattr(params, "let", {}).items():
        for field in ("where", "value"):
            if getattr(binding, field, None) is not None:
                yield ("let", name, field), getattr(binding, field), calls
