"""The effect ledger: every write under its effect key, so that repeats across runs are seen.

State is the set of entries per effect key; a verdict is a pure function of that set, so the order in
which effects arrive changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from otelmon.detect.emission import digest
from otelmon.detect.engine import Laws, judge_effects
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
        self._withdrawn: set[tuple[int, str]] = set()
        self._newest = 0
        self.counters: Counter[tuple[str, ...]] = Counter()

    def feed(self, batch: EffectBatch, partition: int) -> None:
        """Take what one trace says of one effect key; replaces what it said before."""
        where = (partition, batch.effect_key)
        history = self._held.setdefault(where, {})
        known = history.get(batch.trace_id)
        if known and known.epoch > batch.epoch:
            return
        if batch.entries:
            history[batch.trace_id] = batch
            self._newest = max(self._newest, *(entry.end_time_unix_nano for entry in batch.entries))
        else:
            history.pop(batch.trace_id, None)
            self._withdrawn.add(where)
        self._dirty[where] = None

    def judge_dirty(self) -> list[Verdict]:
        """Verdicts of the keys with news, when they changed."""
        verdicts = []
        for where in self._dirty:
            entries = self._entries(where)
            findings = self._judge(entries)
            said = digest(findings)
            if where in self._withdrawn or self._said.get(where, digest(())) != said:
                self._said[where] = said
                observed = max((entry.end_time_unix_nano for entry in entries), default=0)
                verdicts.append(Verdict(owner=f"effect:{where[1]}", epoch=1, findings=findings, observed_unix_nano=observed))  # fmt: skip
        self._dirty.clear()
        self._withdrawn.clear()
        return verdicts

    def _judge(self, entries: Sequence[EffectEntry]) -> tuple[Finding, ...]:
        errors: dict[str, int] = {}
        findings = judge_effects(entries, self.laws, errors) if len(entries) > 1 else ()
        for rule_id, times in errors.items():
            self.counters["check_errors", rule_id] += times
        return findings

    def _entries(self, where: tuple[int, str]) -> list[EffectEntry]:
        return [entry for batch in self._held[where].values() for entry in batch.entries]

    def forget_old(self) -> list[tuple[int, str, str]]:
        """Drop entries older than the ledger remembers; (partition, effect key, trace id) of each,
        for the compacted topic."""
        dropped = []
        limit = self._newest - self._keep
        for (partition, key), history in list(self._held.items()):
            old = [t for t, b in history.items() if all(e.end_time_unix_nano < limit for e in b.entries)]
            for trace_id in old:
                del history[trace_id]
                dropped.append((partition, key, trace_id))
            if not history:
                del self._held[partition, key]
                self._said.pop((partition, key), None)
        self.counters["effects_forgotten",] += len(dropped)
        return dropped

    def drop_partition(self, partition: int) -> None:
        """Another ledger owns it now."""
        for where in [where for where in self._held if where[0] == partition]:
            del self._held[where]
            self._said.pop(where, None)
            self._dirty.pop(where, None)

    def stats(self) -> dict[str, int]:
        """How much is held now."""
        return {"effect_keys": len(self._held)}
