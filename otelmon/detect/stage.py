"""The detect stage: readings from the bus, verdicts and rows to the store, effects to the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from otelmon.bus.protocol import Bus, Delivered, Outgoing
from otelmon.detect.clock import PartitionClock
from otelmon.detect.conversations import ConversationTable
from otelmon.detect.emission import Output
from otelmon.detect.engine import Laws
from otelmon.detect.heard import Heard
from otelmon.detect.ledger_stage import ledger_key
from otelmon.detect.snapshot import Snapshot, decode_snapshot, encode_snapshot
from otelmon.detect.tool_histories import topic_key
from otelmon.vocabulary.config import Config
from otelmon.vocabulary.messages import (
    DEAD,
    LEDGER,
    MEMORY,
    READINGS,
    RECORDS,
    LedgerEntry,
    ToolVersion,
    TraceRecord,
    Verdict,
    decode_detect_input,
    encode,
)

GROUP = "otelmon-detect"
JUDGE_EVERY = 250_000_000  # nanoseconds between two judgements of what arrives, so bursts are judged once
TICK_EVERY = 1_000_000_000


def memory_key(conversation_id: str, trace_id: str, part: int) -> str:
    """Key of a part of a trace on the memory topic."""
    return f"{conversation_id}\x1f{trace_id}\x1f{part}"


class DetectStage:
    """One member of the detect group. `step` is called in a loop by one thread."""

    name = "detect"

    def __init__(self, bus: Bus, laws: Laws, config: Config, wall: Callable[[], int]) -> None:
        self._bus = bus
        self._wall = wall
        self._clock = PartitionClock(wall)
        self._table = ConversationTable(laws, config.detect, config.assemble)
        self._next: dict[int, int] = {}
        self._committed: dict[int, int] = {}
        self._judged_at = self._ticked_at = 0
        self._consumer = bus.consumer([READINGS], GROUP, self._assigned, self._revoked)

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
        """Take what has arrived, judge when it is time, make results durable, then commit."""
        messages = self._consumer.poll(timeout_s)
        if messages:
            self._take(messages)
        else:
            self._clock.quiet()
        wall = self._wall()
        if self._table.dirty and (not messages or wall - self._judged_at >= JUDGE_EVERY):
            self._publish(self._table.judge_dirty(self._clock))
            self._judged_at = self._wall()
        if wall - self._ticked_at >= TICK_EVERY:
            self._publish(self._table.tick(self._clock))
            self._ticked_at = self._wall()
        if not self._table.dirty:
            self._commit()

    def _take(self, messages: Sequence[Delivered]) -> None:
        dead = []
        for message in messages:
            try:
                decoded = decode_detect_input(message.value)
            except msgspec.DecodeError:
                self.counters["dead_letters", READINGS] += 1
                dead.append(
                    Outgoing(message.key, message.value, message.time_unix_nano, (("topic", READINGS.encode()),))
                )
            else:
                self._table.feed(decoded, message.partition, message.offset)
            self._clock.saw(message.partition, message.time_unix_nano)
            self._next[message.partition] = message.offset + 1
        if dead:
            self._bus.publish(DEAD, dead)

    def _publish(self, output: Output) -> None:
        """Results first, memory last: a snapshot releases offsets, so what it covers must be out."""
        if output.records:
            self._bus.publish(RECORDS, [_record(record) for record in output.records])
        if output.effects:
            self._bus.publish(LEDGER, [self._effect(batch) for batch in output.effects])
        if output.memory:
            self._bus.publish(MEMORY, [self._memory(*item) for item in output.memory])

    def _memory(self, conversation_id: str, trace_id: str, part: int, snapshot: Snapshot | None) -> Outgoing:
        value = b"" if snapshot is None else encode_snapshot(snapshot)
        partition = self._bus.partition_of(READINGS, conversation_id)
        return Outgoing(memory_key(conversation_id, trace_id, part), value, self._wall(), partition=partition)

    def _effect(self, batch: LedgerEntry) -> Outgoing:
        """Partitioned by the history it belongs to, compacted by history and trace."""
        if isinstance(batch, ToolVersion):
            partition = self._bus.partition_of(LEDGER, batch.tool_key)
            key = ledger_key(batch.tool_key, topic_key(batch))
            return Outgoing(key, encode(batch), batch.start_time_unix_nano, partition=partition)
        newest = max((entry.end_time_unix_nano for entry in batch.entries), default=self._wall())
        partition = self._bus.partition_of(LEDGER, batch.effect_key)
        return Outgoing(ledger_key(batch.effect_key, batch.trace_id), encode(batch), newest, partition=partition)

    def _commit(self) -> None:
        offsets = {}
        for partition, following in self._next.items():
            needed = self._table.needed_offset(partition)
            offset = following if needed is None else needed
            if offset > self._committed.get(partition, -1):
                offsets[READINGS, partition] = self._committed[partition] = offset
        if offsets:
            self._consumer.commit(offsets)

    def _assigned(self, topic: str, partition: int) -> int | None:  # noqa: ARG002
        snapshots = []
        for value in self._bus.latest(MEMORY, partition).values():
            try:
                snapshots.append(decode_snapshot(value))
            except msgspec.DecodeError:
                self.counters["dead_letters", MEMORY] += 1
        for snapshot in sorted(snapshots, key=lambda s: (s.conversation_id, s.trace_id, s.part)):
            self._table.restore(snapshot, partition)
            newest = max((r.received_unix_nano for r in snapshot.readings), default=0)
            self._clock.remembers(partition, newest)
        return None

    def _revoked(self, topic: str, partition: int) -> None:  # noqa: ARG002
        """What was taken but not judged is read again by the next owner."""
        self._table.drop_partition(partition)
        self._clock.forget(partition)
        self._next.pop(partition, None)
        self._committed.pop(partition, None)

    def close(self) -> None:
        """Judge and publish what is there, commit, leave the group."""
        self._publish(self._table.judge_dirty(self._clock))
        self._commit()
        self._consumer.close()


def _record(record: Verdict | TraceRecord) -> Outgoing:
    if isinstance(record, Verdict):
        return Outgoing(record.owner, encode(record), record.observed_unix_nano)
    newest = max((run.last_received_unix_nano for run in record.runs), default=0)
    return Outgoing(f"trace:{record.trace_id}", encode(record), newest)
