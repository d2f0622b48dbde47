"""What a process judges by now, gathered for doctor, the API and the pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime

from otelmon.app.plugins import Plugin
from otelmon.app.reload import Reload
from otelmon.detect.engine import Laws
from otelmon.vocabulary.config import Suppression
from otelmon.web.in_force import InForce, PluginInForce, ReloadState, SuppressionInForce, rule_in_force


def in_force(laws: Laws, plugins: Sequence[Plugin], reload: Reload | None, now: int) -> InForce:
    """Everything about the laws of a process; `now` in nanoseconds."""
    return InForce(
        version=laws.rules.version,
        rules=tuple(rule_in_force(rule) for rule in laws.rules.rules.values()),
        plugins=tuple(plugin_in_force(plugin) for plugin in plugins),
        suppressions=tuple(_suppressions(laws.suppress, now)),
        reload=ReloadState(reload.at_unix_nano, reload.mistakes, reload.restart) if reload else None,
    )


def plugin_in_force(plugin: Plugin) -> PluginInForce:
    """A plug-in as it is listed."""
    return PluginInForce(
        plugin.name, plugin.version, plugin.installed, plugin.allowed, plugin.loaded,
        tuple(plugin.checks), tuple(rule.id for rule in plugin.rules), plugin.errors,
    )  # fmt: skip


def _suppressions(suppress: Iterable[Suppression], now: int) -> Iterator[SuppressionInForce]:
    today = datetime.fromtimestamp(now // 1_000_000_000, UTC).date()
    for one in suppress:
        expired = date.fromisoformat(one.expires) < today
        yield SuppressionInForce(one.rule, one.where, one.reason, one.expires, expired, False)
