"""Rules and catalogue from a configuration: what every command that judges starts from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from otelmon.detect.engine import Laws
from otelmon.rules.catalogue import load_catalogue
from otelmon.rules.loader import builtin_rules_dir, load_rules
from otelmon.vocabulary.config import Config
from otelmon.vocabulary.errors import OtelmonError, Problem, UserError


def load_laws(config: Config, origins: Mapping[str, str] | None = None, drafts: bool = False) -> Laws:
    """Rules, catalogue, trust and suppressions. `origins` says where each setting was written, for
    messages; `drafts` loads rules that are not in force yet. Raises UserError with every mistake found."""
    problems: list[Problem] = []
    rules = catalogue = None
    try:
        rules = load_rules([builtin_rules_dir(), *map(Path, config.rules_dirs)], config.rules, origins, drafts)
    except OtelmonError as error:
        problems.extend(error.problems)
    try:
        catalogue = load_catalogue(Path(config.catalogue)) if config.catalogue else None
    except OtelmonError as error:
        problems.extend(error.problems)
    if problems or rules is None:
        raise UserError(*problems)
    return Laws(rules, catalogue, frozenset(config.detect.trusted_services), config.suppress)
