"""The ledger stage: a second consumer group in the detect process that sees effects across runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec

from otelmon.bus.protocol import Bus, Outgoing
from otelmon.detect.engine import Laws
from otelmon.detect.heard import Heard
from otelmon.detect.ledger import LedgerTable
from otelmon.vocabulary.config import Config
from otelmon.vocabulary.messages import DEAD, LEDGER, RECORDS, LedgerEntry, decode_ledger, encode

GROUP = "otelmon-ledger"
SWEEP_EVERY = 60_000_000_000


class LedgerStage:
    """One member of the ledger group. Its topic is compacted by effect or tool key and trace: the state is
    the topic, so nothing else has to be kept."""

    name = "ledger"

    def __init__(self, bus: Bus, laws: Laws, config: Config, wall: Callable[[], int]) -> None:
        self._bus = bus
        self._wall = wall
        self._table = LedgerTable(laws, config.detect)
        self._swept_at = 0
        self._consumer = bus.consumer([LEDGER], GROUP, self._assigned, self._revoked)

    @property
    def counters(self) -> Counter[tuple[str, ...]]:
        return self._table.counters

    def stats(self) -> dict[str, int]:
        return {**self._table.stats(), "lag": sum(self._consumer.lag().values())}

    def heard(self) -> Heard:
        """What rules said beside their findings."""
        return self._table.heard

    def change_laws(self, laws: Laws) -> None:
        """Judge by other laws from the next judgement on."""
        self._table.laws = laws

    def step(self, timeout_s: float) -> None:
        """Take what has arrived, judge it, make verdicts durable, then commit."""
        offsets = {}
        for message in self._consumer.poll(timeout_s):
            offsets[LEDGER, message.partition] = message.offset + 1
            if message.value:
                self._take(self._table.feed, message.partition, message.key, message.value)
        verdicts = self._table.judge_dirty()
        if verdicts:
            self._bus.publish(RECORDS, [Outgoing(v.owner, encode(v), v.observed_unix_nano) for v in verdicts])
        self._sweep()
        if offsets:
            self._consumer.commit(offsets)

    def _take(self, take: Callable[[LedgerEntry, int], None], partition: int, key: str, value: bytes) -> None:
        try:
            take(decode_ledger(value), partition)
        except msgspec.DecodeError:
            self.counters["dead_letters", LEDGER] += 1
            self._bus.publish(DEAD, [Outgoing(key, value, self._wall(), (("topic", LEDGER.encode()),))])

    def _sweep(self) -> None:
        if self._wall() - self._swept_at < SWEEP_EVERY:
            return
        self._swept_at = self._wall()
        gone = [
            Outgoing(ledger_key(key, trace_id), b"", self._wall(), partition=partition)
            for partition, key, trace_id in self._table.forget_old(self._wall())
        ]
        if gone:
            self._bus.publish(LEDGER, gone)

    def _assigned(self, topic: str, partition: int) -> int | None:
        for key, value in self._bus.latest(topic, partition).items():
            self._take(self._table.restore, partition, key, value)
        return None

    def _revoked(self, topic: str, partition: int) -> None:  # noqa: ARG002
        self._table.drop_partition(partition)

    def close(self) -> None:
        """Leave the group; everything read is already committed or will be read again."""
        self._consumer.close()


def ledger_key(effect_key: str, trace_id: str) -> str:
    """Key of one trace's effects on the compacted ledger topic."""
    return f"{effect_key}\x1f{trace_id}"
