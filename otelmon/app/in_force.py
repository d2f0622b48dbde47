"""What a process judges by now, gathered for doctor, the API and the pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from datetime import UTC, date, datetime

from otelmon.app.plugins import Plugin
from otelmon.app.reload import Reload
from otelmon.detect.engine import Laws
from otelmon.detect.heard import Heard
from otelmon.rules.suppress import name_of
from otelmon.vocabulary.config import Suppression
from otelmon.web.in_force import InForce, PluginInForce, ReloadState, SuppressionInForce, rule_in_force


def in_force(
    laws: Laws,
    plugins: Sequence[Plugin],
    reload: Reload | None,
    now: int,
    counters: Counter[tuple[str, ...]],
    heard: Sequence[Heard],
    judges: bool,
) -> InForce:
    """Everything about the laws of a process; `now` in nanoseconds, `counters` and `heard` of its stages, `judges`:
    one of them detects."""
    matched = {name for one in heard for name in tuple(one.matched)}
    return InForce(
        version=laws.rules.version,
        judges=judges,
        rules=tuple(rule_in_force(rule) for rule in laws.rules.rules.values()),
        plugins=tuple(plugin_in_force(plugin) for plugin in plugins),
        suppressions=tuple(suppressions_in_force(laws.suppress, now, matched)),
        suppressed=_by_rule(counters, "findings_suppressed"),
        check_errors=_by_rule(counters, "check_errors"),
        undecided=_by_rule(counters, "conditions_undecided"),
        raised={rule: text for one in heard for rule, text in tuple(one.raised.items())},
        reload=ReloadState(reload.at_unix_nano, reload.mistakes, reload.restart) if reload else None,
    )


def plugin_in_force(plugin: Plugin) -> PluginInForce:
    """A plug-in as it is listed."""
    return PluginInForce(
        plugin.name, plugin.version, plugin.installed, plugin.allowed, plugin.loaded,
        tuple(plugin.checks), tuple(rule.id for rule in plugin.rules), plugin.errors,
    )  # fmt: skip


def _by_rule(counters: Counter[tuple[str, ...]], metric: str) -> dict[str, int]:
    return {key[1]: number for key, number in sorted(counters.items()) if key[0] == metric and number}


def suppressions_in_force(
    suppress: Iterable[Suppression], now: int, matched: Set[str] = frozenset()
) -> Iterator[SuppressionInForce]:
    """Suppressions as they are listed; `matched` names those that kept something back."""
    today = datetime.fromtimestamp(now // 1_000_000_000, UTC).date()
    for one in suppress:
        expired = date.fromisoformat(one.expires) < today
        yield SuppressionInForce(one.rule, one.where, one.reason, one.expires, expired, name_of(one) in matched)
