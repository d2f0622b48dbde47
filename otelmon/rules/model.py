"""A rule, loaded: data that binds a check to an id, a severity and a meaning."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from otelmon.checks.registry import Check
from otelmon.rules.notation import TestCase
from otelmon.vocabulary.finding import Family, Severity

RuleStatus = Literal["draft", "test", "stable", "deprecated"]
Need = Literal[
    "arguments", "result", "catalogue", "user_text", "final_message", "past_complete", "context_complete", "run_end"
]  # fmt: skip
WAITING: frozenset[Need] = frozenset(("final_message", "past_complete", "context_complete", "run_end"))


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """`version` is a hash of the rule as in force (file + overrides), recorded in each finding.
    A rule with a need of WAITING is judged when the run is over; any other as soon as its needs are
    met. `wins_over` names rules whose finding at the same anchor this one replaces.
    `severity_fixed`: the operator set the severity, so nothing weighs it. `path` is the file it came
    from, `tests` its inline tests as written. `origin`: "built-in", "folder" or "plug-in NAME";
    `overridden` are the settings the configuration changed ("severity", "params.max_repeats")."""

    id: str
    title: str
    status: RuleStatus
    severity: Severity
    family: Family
    description: str
    check: Check
    params: msgspec.Struct
    scope: Literal["run", "conversation"]
    needs: tuple[Need, ...]
    tags: tuple[str, ...]
    references: tuple[str, ...]
    false_positives: tuple[str, ...]
    runbook: str
    version: str
    wins_over: tuple[str, ...] = ()
    raw: dict[str, Any] = {}
    severity_fixed: bool = False
    path: str = ""
    tests: tuple[TestCase, ...] = ()
    origin: str = "folder"
    overridden: tuple[str, ...] = ()

    @property
    def waits(self) -> bool:
        return bool(WAITING & set(self.needs))


class RuleSet(msgspec.Struct, frozen=True):
    """The rules in force, by id, in id order. `version` is a hash over all of them."""

    rules: dict[str, Rule]
    version: str
