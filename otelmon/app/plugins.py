"""Plug-ins: installed distributions that bring checks or rules, loaded only when the configuration names them.

A plug-in is code of somebody else in the process that sees everything. So none is imported unless it
is allowed, and whatever one does wrong is told, and stops nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from otelmon.checks.registry import Check, declared_in, load_checks
from otelmon.rules.loader import Extra, builtin_rules_dir, load_rule, rule_files
from otelmon.rules.model import Rule
from otelmon.vocabulary.errors import OtelmonError

CHECKS = "otelmon.checks"
RULES = "otelmon.rules"


class Plugin(msgspec.Struct, frozen=True, kw_only=True):
    """One distribution. `errors` say what of it could not be used; `missing` are ids of its rules that
    did not load."""

    name: str
    version: str = ""
    installed: bool = True
    allowed: bool = False
    checks: dict[str, Check] = {}
    rules: tuple[Rule, ...] = ()
    errors: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def loaded(self) -> bool:
        """Whether anything of it is in force."""
        return bool(self.checks or self.rules)


def load_plugins(allowed: Sequence[str]) -> tuple[Plugin, ...]:
    """Every distribution with entry points of ours, and every allowed name that is not installed, by
    name. Only allowed ones are imported. Raises nothing, whatever a plug-in does."""
    wanted = {_canonical(name): name for name in allowed}
    found: dict[str, Plugin] = {}
    taken = {name: "otelmon" for name in load_checks()}
    for name, points in _installed().items():
        plugin = Plugin(name=name, version=_version(points), allowed=name in wanted)
        found[name] = _load(plugin, points, taken) if plugin.allowed else plugin
    for name in wanted.keys() - found.keys():
        says = f"{wanted[name]} is allowed and not installed, or has no entry point in {CHECKS} or {RULES}"
        found[name] = Plugin(name=wanted[name], installed=False, allowed=True, errors=(says,))
    return tuple(found[name] for name in sorted(found))


def extra_of(plugins: Iterable[Plugin]) -> Extra:
    """What the plug-ins add to the rules."""
    plugins = list(plugins)
    checks = {name: check for plugin in plugins for name, check in plugin.checks.items()}
    rules = [rule for plugin in plugins for rule in plugin.rules]
    return Extra(checks=checks, rules=rules, missing={rule for plugin in plugins for rule in plugin.missing})


def _installed() -> dict[str, list[EntryPoint]]:
    """Entry points of ours by distribution."""
    found: dict[str, list[EntryPoint]] = {}
    for group in (CHECKS, RULES):
        for point in sorted(entry_points(group=group), key=lambda point: (point.name, point.value)):
            name = _canonical(point.dist.name) if point.dist else ""
            if name and name != "otelmon":
                found.setdefault(name, []).append(point)
    return found


def _canonical(name: str) -> str:
    """A distribution's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _version(points: Sequence[EntryPoint]) -> str:
    return next((point.dist.version for point in points if point.dist), "")


def _load(plugin: Plugin, points: Sequence[EntryPoint], taken: dict[str, str]) -> Plugin:
    errors: list[str] = []
    checks: dict[str, Check] = {}
    for point in points:
        if point.group == CHECKS:
            checks.update(_checks(plugin, point, taken, errors))
    folders = [folder for point in points if point.group == RULES for folder in _folder(point, errors)]
    rules, missing = _rules(plugin.name, folders, checks, errors)
    return msgspec.structs.replace(
        plugin, checks=checks, rules=tuple(rules), errors=tuple(errors), missing=tuple(missing)
    )


def _checks(plugin: Plugin, point: EntryPoint, taken: dict[str, str], errors: list[str]) -> Iterator[tuple[str, Check]]:
    """What the entry point's package declares, without names that something else has."""
    _, failed = _attempt(point.load)
    if failed:
        errors.append(f"{point.value} can not be imported: {failed}")
        return
    declared = declared_in(point.module.partition(".")[0])
    if not declared:
        errors.append(f"{point.value} declares no check; expected functions under @otelmon.checks.registry.check")
    for name, check in declared.items():
        if taken.setdefault(name, plugin.name) != plugin.name:
            errors.append(f"its check {name} is left out: {taken[name]} has one of that name; rename it")
            continue
        yield name, check


def _folder(point: EntryPoint, errors: list[str]) -> Iterator[Path]:
    """The folder an entry point stands for: a package's own, a path, or what a function returns."""
    value, failed = _attempt(point.load)
    if not failed and callable(value):
        value, failed = _attempt(value)
    if failed:
        errors.append(f"{point.value} gives no folder of rules: {failed}")
        return
    if isinstance(value, ModuleType):
        value = next(iter(getattr(value, "__path__", ())), None)
    folder = Path(value) if isinstance(value, str | Path) else None
    if folder is None or not folder.is_dir():
        errors.append(f"{point.value} gives no folder of rules; expected a package, a path, or a function that returns a path")  # fmt: skip
        return
    yield folder


def _rules(
    name: str, folders: Sequence[Path], checks: dict[str, Check], errors: list[str]
) -> tuple[list[Rule], list[str]]:
    rules: list[Rule] = []
    missing: list[str] = []
    ours = {path.stem for path in rule_files([builtin_rules_dir()])}
    for path in rule_files(folders):
        try:
            rule = load_rule(path, checks=checks)
        except OtelmonError as error:
            errors.extend(str(problem) for problem in error.problems)
            missing.append(path.stem)
            continue
        if rule.id in ours:
            errors.append(f"{path}: rule {rule.id} is left out: otelmon has one of that name; rename it")
            continue
        rules.append(msgspec.structs.replace(rule, origin=f"plug-in {name}"))
    return rules, missing


def _attempt(do: Callable[[], Any]) -> tuple[Any, str]:
    """What it returns, or what it raised. A module that ends the process when imported only fails."""
    try:
        return do(), ""
    except (Exception, SystemExit) as error:  # noqa: BLE001 - code of others: whatever it raises, the rest goes on
        return None, f"{type(error).__name__}: {error}"
