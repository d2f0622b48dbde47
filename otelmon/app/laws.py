"""Rules and catalogue from a configuration: what every command that judges starts from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from otelmon.app.plugins import Plugin, extra_of, load_plugins
from otelmon.detect.engine import Laws
from otelmon.rules.catalogue import load_catalogue
from otelmon.rules.fit import fit_problems
from otelmon.rules.loader import Extra, builtin_rules_dir, load_rules
from otelmon.vocabulary.config import Config
from otelmon.vocabulary.errors import OtelmonError, Problem, UserError


def load_laws(config: Config, origins: Mapping[str, str] | None = None, drafts: bool = False) -> Laws:
    """Rules, catalogue, trust and suppressions. `origins` says where each setting was written, for
    messages; `drafts` loads rules that are not in force yet. Raises UserError with every mistake found."""
    return laws_and_plugins(config, origins, drafts)[0]


def laws_and_plugins(
    config: Config, origins: Mapping[str, str] | None = None, drafts: bool = False
) -> tuple[Laws, tuple[Plugin, ...]]:
    """The laws, and what became of each plug-in: what is wrong with one of these raises nothing, except
    that a rule of the operator can not name a check that did not load."""
    problems: list[Problem] = []
    rules = catalogue = None
    plugins = load_plugins(config.plugins)
    extra = extra_of(plugins)
    folders = [builtin_rules_dir(), *map(Path, config.rules_dirs)]
    try:
        rules = load_rules(folders, config.rules, origins, drafts, extra)
    except OtelmonError as error:
        problems.extend(error.problems)
    try:
        catalogue = load_catalogue(Path(config.catalogue)) if config.catalogue else None
    except OtelmonError as error:
        problems.extend(error.problems)
    if rules is not None:
        problems.extend(fit_problems(rules.rules.values(), catalogue))
    if problems or rules is None:
        raise UserError(*problems, *_hints(plugins))
    laws = Laws(rules, catalogue, frozenset(config.detect.trusted_services), config.suppress)
    return laws, _with_refused(plugins, extra)


def _hints(plugins: Sequence[Plugin]) -> list[Problem]:
    """What failed in plug-ins may be why a rule finds no check."""
    return [Problem(f"plug-in {plugin.name}", error) for plugin in plugins for error in plugin.errors]


def _with_refused(plugins: Sequence[Plugin], extra: Extra) -> tuple[Plugin, ...]:
    """The plug-ins without the rules that were refused beside others, which each of them is told."""
    refused = {rule.path: problem for rule, problem in extra.refused}
    return tuple(
        msgspec.structs.replace(
            plugin,
            rules=tuple(rule for rule in plugin.rules if rule.path not in refused),
            errors=(*plugin.errors, *(str(refused[rule.path]) for rule in plugin.rules if rule.path in refused)),
        )
        for plugin in plugins
    )
