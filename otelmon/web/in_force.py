"""What a process judges by now, and how it stands: rules, plug-ins, suppressions, the last reload."""

from __future__ import annotations

import msgspec

from otelmon.rules.model import Rule


class RuleInForce(msgspec.Struct, frozen=True):
    """One rule. `origin`: "built-in", "folder" or "plug-in NAME"; `overridden` names the settings that the
    configuration changed."""

    id: str
    title: str
    status: str
    severity: str
    family: str
    version: str
    origin: str
    overridden: tuple[str, ...]
    path: str


class PluginInForce(msgspec.Struct, frozen=True):
    """One distribution that brings checks or rules, or is allowed to."""

    name: str
    version: str
    installed: bool
    allowed: bool
    loaded: bool
    checks: tuple[str, ...]
    rules: tuple[str, ...]
    errors: tuple[str, ...]


class SuppressionInForce(msgspec.Struct, frozen=True):
    """One suppression. `expired`: its last day is over. `matched`: it kept a finding back since the
    process started."""

    rule: str
    where: dict[str, str]
    reason: str
    expires: str
    expired: bool
    matched: bool


class ReloadState(msgspec.Struct, frozen=True):
    """The last time the files were read. `mistakes`: why an older set is in force; `restart`: settings
    that changed and hold only after a restart."""

    at_unix_nano: int
    mistakes: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()


class InForce(msgspec.Struct, frozen=True, kw_only=True):
    """Everything together. `judges`: the process has the stage that detects, without which it counts nothing. `suppressed`, `check_errors` and `undecided` count by rule since the process
    started; `raised` is what a rule's check raised last, and where. `reload` is None where nothing is watched."""

    version: str
    judges: bool
    rules: tuple[RuleInForce, ...]
    plugins: tuple[PluginInForce, ...] = ()
    suppressions: tuple[SuppressionInForce, ...] = ()
    suppressed: dict[str, int] = {}
    check_errors: dict[str, int] = {}
    raised: dict[str, str] = {}
    undecided: dict[str, int] = {}
    reload: ReloadState | None = None


def rule_in_force(rule: Rule) -> RuleInForce:
    """A rule as it is listed."""
    return RuleInForce(
        rule.id, rule.title, rule.status, rule.severity, rule.family, rule.version, rule.origin, rule.overridden,
        rule.path,
    )  # fmt: skip
