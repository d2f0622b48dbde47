"""The ledger: every write under its effect key, so that repeats across runs are seen; and what tools were.

State is the set of entries per effect key; a verdict is a pure function of that set, so the order in
which effects arrive changes nothing. The versions of tools are kept beside (`tool_histories.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from otelmon.checks.lib.histories import history_kind
from otelmon.detect.engine import Laws, judge_effects, judge_tools
from otelmon.detect.heard import Heard
from otelmon.detect.told import Judged, Told, Where
from otelmon.detect.tool_histories import ToolHistories
from otelmon.rules.evaluate import Trouble
from otelmon.vocabulary.config import DetectConfig
from otelmon.vocabulary.finding import Finding
from otelmon.vocabulary.messages import EffectBatch, EffectEntry, LedgerEntry, ToolVersion, Verdict

SECOND = 1_000_000_000


class LedgerTable:
    """The histories of the partitions one ledger owns. Used by one thread."""

    def __init__(self, laws: Laws, config: DetectConfig) -> None:
        self.laws = laws
        self._keep = int(config.effect_seconds * SECOND)
        self._held: dict[Where, dict[str, EffectBatch]] = {}
        self._told = Told("effect")
        self._gone: dict[tuple[int, str, str], int] = {}  # withdrawn, and when: the topic still holds it
        self._accepted: dict[Where, frozenset[str]] = {}  # suppressed findings that were counted
        self._newest = 0
        self.heard = Heard()
        self.counters: Counter[tuple[str, ...]] = Counter()
        self._tools = ToolHistories(int(config.tool_seconds * SECOND), self.counters)

    def restore(self, batch: LedgerEntry, partition: int) -> None:
        """Take back what the topic remembers after a restart or a rebalance. It may hold news whose
        verdict was never sent: those come again as messages, and are then said in any case."""
        if isinstance(batch, ToolVersion):
            self._tools.restore(batch, partition)
        elif self._put(batch, partition):
            self._told.restored((partition, batch.effect_key))

    def feed(self, batch: LedgerEntry, partition: int) -> None:
        """Take what one trace says of one effect key, which replaces what it said before; or the first sight
        of a version of a tool."""
        if isinstance(batch, ToolVersion):
            self._tools.feed(batch, partition)
        elif self._put(batch, partition):
            self._told.news((partition, batch.effect_key), withdrawn=not batch.entries)

    def _put(self, batch: EffectBatch, partition: int) -> bool:
        """False when an owner of a later epoch has spoken."""
        where = (partition, batch.effect_key)
        history = self._held.setdefault(where, {})
        known = history.get(batch.trace_id)
        if known and known.epoch > batch.epoch:
            return False
        if batch.entries:
            history[batch.trace_id] = batch
            self._gone.pop((*where, batch.trace_id), None)
            self._newest = max(self._newest, *(entry.end_time_unix_nano for entry in batch.entries))
        else:
            history.pop(batch.trace_id, None)
            self._gone[*where, batch.trace_id] = self._newest
        return True

    def judge_dirty(self) -> list[Verdict]:
        """Verdicts of the keys with news, when they changed."""
        return [*self._told.verdicts(self._judge), *self._tools.judge_dirty(self._judge_tools)]

    def _judge(self, where: Where) -> Judged:
        entries, trouble = self._entries(where), Trouble()
        findings = judge_effects(entries, self.laws, trouble, history_kind(where[1])) if len(entries) > 1 else ()
        self._met(where, trouble)
        return findings, max((entry.end_time_unix_nano for entry in entries), default=0)

    def _judge_tools(self, where: Where, versions: Sequence[ToolVersion]) -> tuple[Finding, ...]:
        trouble = Trouble()
        findings = judge_tools(versions, self.laws, trouble)
        self._met(where, trouble)
        return findings

    def _met(self, where: Where, trouble: Trouble) -> None:
        """Count what rules met beside findings."""
        for rule_id, times in trouble.errors.items():
            self.counters["check_errors", rule_id] += times
        for rule_id, times in trouble.undecided.items():
            self.counters["conditions_undecided", rule_id] += times
        self.heard.hear(trouble.raised, trouble.suppressed)
        counted = self._accepted.get(where, frozenset())
        for one in trouble.suppressed:
            if one.finding.finding_id not in counted:
                self.counters["findings_suppressed", one.finding.rule_id] += 1
        if trouble.suppressed:
            self._accepted[where] = counted | {one.finding.finding_id for one in trouble.suppressed}

    def _entries(self, where: Where) -> list[EffectEntry]:
        return [entry for batch in self._held[where].values() for entry in batch.entries]

    def forget_old(self, wall: int) -> list[tuple[int, str, str]]:
        """Drop entries older than the ledger remembers; (partition, effect or tool key, rest of the key) of
        each, for the compacted topic. Time is that of the newest effect, which may lie in the past (a replay)
        but counts no further than `wall`: a span with a wrong clock must not empty the ledger."""
        dropped = []
        limit = min(self._newest, wall) - self._keep
        for (partition, key), history in list(self._held.items()):
            old = [t for t, b in history.items() if all(e.end_time_unix_nano < limit for e in b.entries)]
            for trace_id in old:
                del history[trace_id]
                dropped.append((partition, key, trace_id))
            if not history:
                del self._held[partition, key]
                self._told.forget((partition, key))
                self._accepted.pop((partition, key), None)
        self.counters["effects_forgotten",] += len(dropped)
        for gone in [gone for gone, at in self._gone.items() if at < limit]:
            del self._gone[gone]
            dropped.append(gone)
        return [*dropped, *self._tools.forget_old(wall)]

    def drop_partition(self, partition: int) -> None:
        """Another ledger owns it now."""
        for where in [where for where in self._held if where[0] == partition]:
            del self._held[where]
            self._told.drop(where)
        for gone in [gone for gone in self._gone if gone[0] == partition]:
            del self._gone[gone]
        for where in [where for where in self._accepted if where[0] == partition]:
            del self._accepted[where]
        self._tools.drop_partition(partition)

    def stats(self) -> dict[str, int]:
        """How much is held now."""
        return {"effect_keys": len(self._held), "tools": self._tools.size}
