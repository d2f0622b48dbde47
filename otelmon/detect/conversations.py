"""The conversations a detector holds: their readings, when they are judged, and when they leave.

Time here is recorded receive time, carried with the data: a partition's clock shows the newest one
seen (moved on by the wall clock only while the partition is quiet). Judging is a pure function of the readings held, so
when and how often it happens changes nothing in the final findings.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator

import msgspec

from otelmon.assemble.timeline import build
from otelmon.assemble.traces import in_parts
from otelmon.detect.emission import TraceEmission, emit
from otelmon.detect.engine import Judgement, Laws, judge
from otelmon.detect.rates import Rates
from otelmon.vocabulary.config import AssembleConfig, DetectConfig
from otelmon.vocabulary.event import EndReason, Run, Timeline
from otelmon.vocabulary.messages import DetectInput, EffectBatch, Handover, ReadingBatch, TraceRecord, Verdict, encode
from otelmon.vocabulary.reading import Reading

SECOND = 1_000_000_000
Clock = Callable[[int], int]  # partition -> now, in nanoseconds of recorded receive time


class Snapshot(msgspec.Struct, frozen=True):
    """One trace of a conversation (or `part` of a large one), kept on the compacted memory topic so that
    the conversation survives a restart without reading its spans again. `effect_keys` are those last sent to the
    ledger, so that later withdrawals stay possible; `closed` are its runs that were closed and why."""

    conversation_id: str
    trace_id: str
    epoch: int
    readings: tuple[Reading, ...]
    effect_keys: tuple[str, ...]
    closed: dict[str, EndReason]
    part: int = 0


class Output(msgspec.Struct):
    """What judging produced: rows and verdicts for the store, effects for the ledger, snapshots for
    memory as (conversation id, trace id, part, snapshot or None: forget it)."""

    records: list[Verdict | TraceRecord]
    effects: list[EffectBatch]
    memory: list[tuple[str, str, int, Snapshot | None]]

    def forget(self, conversation_id: str, trace_id: str, parts: int) -> None:
        """A trace leaves memory."""
        self.memory.extend((conversation_id, trace_id, part, None) for part in range(parts))


class _Trace:
    """One trace of a conversation: its readings by identity, and what was last said about it."""

    __slots__ = ("bytes", "emission", "epoch", "first_offset", "parts", "readings", "saved")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.readings: dict[tuple[str, str, str], Reading] = {}
        self.bytes = 0
        self.first_offset: int | None = None  # oldest message not yet covered by a snapshot
        self.saved = False
        self.parts = 0  # snapshots on the memory topic
        self.emission = TraceEmission()


class _Conversation:
    """The state of one conversation. `partition` is where it lives."""

    __slots__ = ("bytes", "closed", "conversation_id", "forgotten", "last_received", "partition", "runs", "traces")  # fmt: skip

    def __init__(self, conversation_id: str, partition: int) -> None:
        self.conversation_id = conversation_id
        self.partition = partition
        self.traces: dict[str, _Trace] = {}
        self.runs: tuple[Run, ...] = ()
        self.closed: dict[str, EndReason] = {}
        self.last_received = 0
        self.bytes = 0
        self.forgotten = False


class ConversationTable:
    """All conversations of the partitions one detector owns. Used by one thread."""

    def __init__(self, laws: Laws, detect: DetectConfig, timing: AssembleConfig) -> None:
        self.laws = laws
        self._config = detect
        self._settle = int(timing.settle_seconds * SECOND)
        self._idle = int(timing.idle_seconds * SECOND)
        self._held: OrderedDict[tuple[int, str], _Conversation] = OrderedDict()
        self._dirty: dict[tuple[int, str], None] = {}
        self._bytes = 0
        self._handed_over: list[tuple[str, str, int]] = []
        self.counters: Counter[tuple[str, ...]] = Counter()
        self._rates = Rates(self.counters)

    # -- input -----------------------------------------------------------------------------------
    def feed(self, message: DetectInput, partition: int, offset: int, size: int) -> None:
        """Take one message of the readings topic. `size` is its length on the wire in bytes."""
        if isinstance(message, Handover):
            self._hand_over(message, partition)
            return
        self._add(message, partition, offset, size)

    def restore(self, snapshot: Snapshot, partition: int, size: int) -> None:
        """Take back one trace from memory after a restart or a rebalance. Its results were durable
        before the snapshot was, so it is judged again only when there is news."""
        batch = ReadingBatch(
            conversation_id=snapshot.conversation_id,
            epoch=snapshot.epoch,
            trace_id=snapshot.trace_id,
            readings=snapshot.readings,
        )
        conversation = self._add(batch, partition, None, size)
        conversation.closed.update(snapshot.closed)
        trace = conversation.traces[snapshot.trace_id]
        trace.saved = True
        trace.parts = max(trace.parts, snapshot.part + 1)
        trace.emission.effect_keys = set(snapshot.effect_keys)
        self._dirty.pop((partition, snapshot.conversation_id), None)

    def _add(self, batch: ReadingBatch, partition: int, offset: int | None, size: int) -> _Conversation:
        where = (partition, batch.conversation_id)
        conversation = self._held.get(where)
        if conversation is None:
            conversation = self._held[where] = _Conversation(batch.conversation_id, partition)
        self._held.move_to_end(where)
        trace = conversation.traces.get(batch.trace_id)
        if trace is None:
            trace = conversation.traces[batch.trace_id] = _Trace(batch.epoch)
        trace.epoch = max(trace.epoch, batch.epoch)
        self._mark(where)  # also when nothing is new: a replay asks the rules in force now
        new = [reading for reading in batch.readings if reading.key not in trace.readings]
        if not new:
            return conversation
        for reading in new:
            trace.readings[reading.key] = reading
        added = size * len(new) // max(1, len(batch.readings))
        trace.bytes += added
        conversation.bytes += added
        self._bytes += added
        if offset is not None:
            trace.saved = False
            trace.first_offset = offset if trace.first_offset is None else min(trace.first_offset, offset)
        conversation.last_received = max(conversation.last_received, *(r.received_unix_nano for r in new))
        return conversation

    def _mark(self, where: tuple[int, str]) -> None:
        self._dirty[where] = None

    def _hand_over(self, message: Handover, partition: int) -> None:
        """The trace lives elsewhere now. Nothing is retracted here: its new owner judges it."""
        where = (partition, message.conversation_id)
        conversation = self._held.get(where)
        if conversation is None or message.trace_id not in conversation.traces:
            return
        self._handed_over.append(
            (message.conversation_id, message.trace_id, conversation.traces[message.trace_id].parts)
        )
        self._drop_trace(conversation, message.trace_id)
        self.counters["handovers",] += 1
        if not conversation.traces:
            self._forget(where)
        else:
            self._mark(where)

    # -- judging ---------------------------------------------------------------------------------
    @property
    def dirty(self) -> int:
        """Conversations with news that have not been judged yet, and traces to forget."""
        return len(self._dirty) + len(self._handed_over)

    def judge_dirty(self, clock: Clock) -> Output:
        """Judge every conversation with news."""
        output = Output([], [], [])
        for handed_over in self._handed_over:
            output.forget(*handed_over)
        self._handed_over.clear()
        for where in list(self._dirty):
            conversation = self._held.get(where)
            if conversation is not None:
                self._judge(conversation, clock(conversation.partition), output)
        self._dirty.clear()
        self._enforce_limits(output)
        return output

    def tick(self, clock: Clock) -> Output:
        """Close runs whose quiet time is over, judge them as a whole, let old conversations leave."""
        output = Output([], [], [])
        for where, conversation in list(self._held.items()):
            if where in self._dirty:
                continue
            now = clock(conversation.partition)
            if any(self._end_of(run, now) for run in conversation.runs if run.run_id not in conversation.closed):
                self._judge(conversation, now, output)
            if conversation.last_received + self._config.memory_seconds * SECOND < now:
                self._leave(where, conversation, output, "memory_seconds")
        return output

    def close_all(self, reason: EndReason) -> Output:
        """The input is over: every run is judged as a whole."""
        output = Output([], [], [])
        for conversation in self._held.values():
            timeline = self._build(conversation)
            for run in timeline.runs:
                conversation.closed.setdefault(run.run_id, reason)
            self._judge(conversation, 0, output)
        self._dirty.clear()
        return output

    def _end_of(self, run: Run, now: int) -> EndReason | None:
        if run.root_seen and now >= run.last_received_unix_nano + self._settle:
            return "root"
        if now >= run.last_received_unix_nano + self._idle:
            return "idle"
        return None

    def _build(self, conversation: _Conversation) -> Timeline:
        readings = (reading for trace in conversation.traces.values() for reading in trace.readings.values())
        timeline = build(conversation.conversation_id, readings, conversation.closed)
        if conversation.forgotten:
            runs = tuple(_with_gap(run) for run in timeline.runs)
            timeline = msgspec.structs.replace(timeline, runs=runs)
        return timeline

    def _judge(self, conversation: _Conversation, now: int, output: Output) -> None:
        timeline = self._build(conversation)
        ended = {run.run_id: end for run in timeline.runs if (end := self._end_of(run, now))}
        news = {run_id: end for run_id, end in ended.items() if run_id not in conversation.closed}
        if news:
            conversation.closed.update(news)
            timeline = self._build(conversation)
        conversation.runs = timeline.runs
        judgement = judge(timeline, self.laws)
        self._rates.count_closed(judgement, news)
        for rule_id, times in judgement.check_errors.items():
            self.counters["check_errors", rule_id] += times
        self._emit(conversation, judgement, output)
        if all(run.run_id in conversation.closed for run in timeline.runs):
            self._save(conversation, output)

    def _emit(self, conversation: _Conversation, judgement: Judgement, output: Output) -> None:
        said = {trace_id: (trace.epoch, trace.emission) for trace_id, trace in conversation.traces.items()}
        records, effects = emit(judgement, said)
        output.records.extend(records)
        output.effects.extend(effects)

    # -- memory ----------------------------------------------------------------------------------
    def _save(self, conversation: _Conversation, output: Output) -> None:
        """Snapshot the traces that changed since they were last saved; their offsets are released
        when the snapshot is durable (the caller publishes before it commits)."""
        for trace_id, trace in conversation.traces.items():
            if trace.saved:
                continue
            closed = {
                run.run_id: conversation.closed[run.run_id] for run in conversation.runs if run.trace_id == trace_id
            }
            keys = tuple(sorted(trace.emission.effect_keys))
            parts = in_parts([trace.readings[key] for key in sorted(trace.readings)])
            for part, readings in enumerate(parts):
                snapshot = Snapshot(conversation.conversation_id, trace_id, trace.epoch, readings, keys, closed, part)
                output.memory.append((conversation.conversation_id, trace_id, part, snapshot))
            trace.parts = max(trace.parts, len(parts))
            trace.saved = True
            trace.first_offset = None

    def needed_offset(self, partition: int) -> int | None:
        """The oldest message of the partition that no snapshot covers, None when all are covered."""
        offsets = (
            trace.first_offset
            for (where, _), conversation in self._held.items()
            if where == partition
            for trace in conversation.traces.values()
            if trace.first_offset is not None
        )
        return min(offsets, default=None)

    def drop_partition(self, partition: int) -> None:
        """Another detector owns it now."""
        for where in [where for where in self._held if where[0] == partition]:
            self._forget(where)

    # -- limits ----------------------------------------------------------------------------------
    def _enforce_limits(self, output: Output) -> None:
        for conversation in list(self._over_size()):
            self._shorten(conversation, output)
        while len(self._held) > self._config.max_conversations or self._bytes > self._config.max_bytes:
            where, conversation = self._oldest()
            for run in conversation.runs:
                if run.run_id not in conversation.closed:
                    conversation.closed[run.run_id] = "evicted"
                    self.counters["runs_closed", "evicted"] += 1
            self._judge(conversation, 0, output)
            self._leave(where, conversation, output, "limit")

    def _oldest(self) -> tuple[tuple[int, str], _Conversation]:
        for where, conversation in self._held.items():
            if conversation.runs and all(run.run_id in conversation.closed for run in conversation.runs):
                return where, conversation
        return next(iter(self._held.items()))

    def _over_size(self) -> Iterator[_Conversation]:
        limit = self._config.conversation_bytes
        return (c for c in self._held.values() if c.bytes > limit and len(c.traces) > 1)

    def _shorten(self, conversation: _Conversation, output: Output) -> None:
        """Let the oldest traces of a conversation go; what they said stays in the store."""
        while conversation.bytes > self._config.conversation_bytes and len(conversation.traces) > 1:
            oldest = min(conversation.traces, key=lambda t: min(r.received_unix_nano for r in conversation.traces[t].readings.values()))  # fmt: skip
            output.forget(conversation.conversation_id, oldest, conversation.traces[oldest].parts)
            self._drop_trace(conversation, oldest)
            conversation.forgotten = True
            self.counters["traces_forgotten", "conversation_bytes"] += 1

    def _leave(self, where: tuple[int, str], conversation: _Conversation, output: Output, reason: str) -> None:
        for trace_id, trace in conversation.traces.items():
            output.forget(conversation.conversation_id, trace_id, trace.parts)
        self.counters["conversations_left", reason] += 1
        self._forget(where)

    def _drop_trace(self, conversation: _Conversation, trace_id: str) -> None:
        trace = conversation.traces.pop(trace_id)
        conversation.bytes -= trace.bytes
        self._bytes -= trace.bytes

    def _forget(self, where: tuple[int, str]) -> None:
        conversation = self._held.pop(where)
        self._dirty.pop(where, None)
        self._bytes -= conversation.bytes

    def stats(self) -> dict[str, int]:
        """How much is held now."""
        runs = sum(1 for c in self._held.values() for r in c.runs if r.run_id not in c.closed)
        return {"conversations": len(self._held), "runs_open": runs, "detect_bytes": self._bytes}


def _with_gap(run: Run) -> Run:
    if "prior_turns_unseen" in run.gaps:
        return run
    return msgspec.structs.replace(run, gaps=(*run.gaps, "prior_turns_unseen"))


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """msgpack bytes of a snapshot."""
    return encode(snapshot)


_decoder = msgspec.msgpack.Decoder(Snapshot)


def decode_snapshot(data: bytes) -> Snapshot:
    """Raises msgspec.DecodeError when the bytes are not a snapshot."""
    return _decoder.decode(data)
