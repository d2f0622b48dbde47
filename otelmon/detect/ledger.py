"""The effect ledger: every write under its effect key, so that repeats across runs are seen.

State is the set of entries per effect key; a verdict is a pure function of that set, so the order in
which effects arrive changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from otelmon.detect.emission import digest
from otelmon.detect.engine import Laws, judge_effects
from otelmon.detect.heard import Heard
from otelmon.rules.evaluate import Trouble
from otelmon.vocabulary.config import DetectConfig
from otelmon.vocabulary.finding import Finding
from otelmon.vocabulary.messages import EffectBatch, EffectEntry, Verdict

SECOND = 1_000_000_000


class LedgerTable:
    """The histories of the partitions one ledger owns. Used by one thread."""

    def __init__(self, laws: Laws, config: DetectConfig) -> None:
        self.laws = laws
        self._keep = int(config.effect_seconds * SECOND)
        self._held: dict[tuple[int, str], dict[str, EffectBatch]] = {}
        self._said: dict[tuple[int, str], bytes] = {}
        self._dirty: dict[tuple[int, str], None] = {}
        self._to_say: set[tuple[int, str]] = set()  # whether or not it looks changed
        self._restored: set[tuple[int, str]] = set()
        self._gone: dict[tuple[int, str, str], int] = {}  # withdrawn, and when: the topic still holds it
        self._accepted: dict[tuple[int, str], frozenset[str]] = {}  # suppressed findings that were counted
        self._newest = 0
        self.heard = Heard()
        self.counters: Counter[tuple[str, ...]] = Counter()

    def restore(self, batch: EffectBatch, partition: int) -> None:
        """Take back what the topic remembers after a restart or a rebalance. It may hold news whose
        verdict was never sent: those come again as messages, and are then said in any case."""
        self._put(batch, partition)
        self._restored.add((partition, batch.effect_key))

    def feed(self, batch: EffectBatch, partition: int) -> None:
        """Take what one trace says of one effect key; replaces what it said before."""
        where = (partition, batch.effect_key)
        if where in self._restored or not batch.entries:
            self._restored.discard(where)
            self._to_say.add(where)
        self._put(batch, partition)

    def _put(self, batch: EffectBatch, partition: int) -> None:
        where = (partition, batch.effect_key)
        history = self._held.setdefault(where, {})
        known = history.get(batch.trace_id)
        if known and known.epoch > batch.epoch:
            return
        if batch.entries:
            history[batch.trace_id] = batch
            self._gone.pop((*where, batch.trace_id), None)
            self._newest = max(self._newest, *(entry.end_time_unix_nano for entry in batch.entries))
        else:
            history.pop(batch.trace_id, None)
            self._gone[*where, batch.trace_id] = self._newest
        self._dirty[where] = None

    def judge_dirty(self) -> list[Verdict]:
        """Verdicts of the keys with news, when they changed."""
        verdicts = []
        for where in self._dirty:
            entries = self._entries(where)
            findings = self._judge(where, entries)
            said = digest(findings)
            if where in self._to_say or self._said.get(where, digest(())) != said:
                self._said[where] = said
                observed = max((entry.end_time_unix_nano for entry in entries), default=0)
                verdicts.append(Verdict(owner=f"effect:{where[1]}", epoch=1, findings=findings, observed_unix_nano=observed))  # fmt: skip
        self._dirty.clear()
        self._to_say.clear()
        return verdicts

    def _judge(self, where: tuple[int, str], entries: Sequence[EffectEntry]) -> tuple[Finding, ...]:
        trouble = Trouble()
        findings = judge_effects(entries, self.laws, trouble) if len(entries) > 1 else ()
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
        return findings

    def _entries(self, where: tuple[int, str]) -> list[EffectEntry]:
        return [entry for batch in self._held[where].values() for entry in batch.entries]

    def forget_old(self, wall: int) -> list[tuple[int, str, str]]:
        """Drop entries older than the ledger remembers; (partition, effect key, trace id) of each,
        for the compacted topic. Time is that of the newest effect, which may lie in the past (a replay)
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
                self._said.pop((partition, key), None)
                self._accepted.pop((partition, key), None)
                self._restored.discard((partition, key))
        self.counters["effects_forgotten",] += len(dropped)
        for gone in [gone for gone, at in self._gone.items() if at < limit]:
            del self._gone[gone]
            dropped.append(gone)
        return dropped

    def drop_partition(self, partition: int) -> None:
        """Another ledger owns it now."""
        for where in [where for where in self._held if where[0] == partition]:
            del self._held[where]
            self._said.pop(where, None)
            self._accepted.pop(where, None)
            self._dirty.pop(where, None)
            self._restored.discard(where)
            self._to_say.discard(where)
        for gone in [gone for gone in self._gone if gone[0] == partition]:
            del self._gone[gone]

    def stats(self) -> dict[str, int]:
        """How much is held now."""
        return {"effect_keys": len(self._held)}
