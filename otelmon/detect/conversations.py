"""The conversations a detector holds: their readings, when they are judged, and when they leave.

Time here is recorded receive time, carried with the data: a partition's clock shows the newest one
seen (moved on by the wall clock only while the partition is quiet). Judging is a pure function of the readings held, so
when and how often it happens changes nothing in the final findings.
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Callable

import msgspec

from otelmon.assemble.traces import estimated_bytes, in_parts
from otelmon.detect.emission import Output, emit
from otelmon.detect.engine import Judgement, Laws, judge
from otelmon.detect.heard import Heard
from otelmon.detect.rates import Rates
from otelmon.detect.snapshot import Snapshot, age, gone
from otelmon.detect.state import ConversationState, TraceState
from otelmon.detect.tool_news import ToolNews
from otelmon.vocabulary.config import AssembleConfig, DetectConfig
from otelmon.vocabulary.event import EndReason, Run
from otelmon.vocabulary.messages import DetectInput, Handover, ReadingBatch

log = logging.getLogger("otelmon")
SECOND = 1_000_000_000
Where = tuple[int, str]  # partition, conversation id
REMEMBERED = 4  # conversations remembered as gone, per conversation allowed
Clock = Callable[[int], int]  # partition -> now, in nanoseconds of recorded receive time


class ConversationTable:
    """All conversations of the partitions one detector owns. Used by one thread."""

    def __init__(self, laws: Laws, detect: DetectConfig, timing: AssembleConfig) -> None:
        self.laws = laws
        self._config = detect
        self._settle = int(timing.settle_seconds * SECOND)
        self._idle = int(timing.idle_seconds * SECOND)
        self._held: OrderedDict[Where, ConversationState] = OrderedDict()
        self._dirty: dict[Where, None] = {}
        self._bytes = 0
        self._handed_over: list[tuple[str, str, int]] = []
        self._left: OrderedDict[Where, None] = OrderedDict()
        self.counters: Counter[tuple[str, ...]] = Counter()
        self.heard = Heard()
        self._rates = Rates(self.counters)
        self._tools = ToolNews(self.counters)

    # -- input -----------------------------------------------------------------------------------
    def feed(self, message: DetectInput, partition: int, offset: int) -> None:
        """Take one message of the readings topic."""
        if isinstance(message, Handover):
            self._hand_over(message, partition)
            return
        self._add(message, partition, offset)

    def restore(self, snapshot: Snapshot, partition: int) -> None:
        """Take back one trace from memory after a restart or a rebalance. Its results were durable
        before the snapshot was, so it is judged again only when there is news. Parts in their order."""
        where = (partition, snapshot.conversation_id)
        if snapshot.left:
            self._left[where] = None
            return
        batch = ReadingBatch(
            conversation_id=snapshot.conversation_id,
            epoch=snapshot.epoch,
            trace_id=snapshot.trace_id,
            readings=snapshot.readings,
        )
        conversation = self._add(batch, partition, None)
        conversation.closed.update(snapshot.closed)
        conversation.forgotten = conversation.forgotten or snapshot.forgotten
        trace = conversation.traces[snapshot.trace_id]
        trace.saved = True
        trace.parts = max(trace.parts, snapshot.part + 1)
        trace.floor = snapshot.floor or trace.floor
        trace.emission.restore(snapshot)
        self._dirty.pop(where, None)

    def _add(self, batch: ReadingBatch, partition: int, offset: int | None) -> ConversationState:
        where = (partition, batch.conversation_id)
        conversation = self._held.get(where)
        if conversation is None:
            conversation = self._held[where] = ConversationState(batch.conversation_id, partition)
            conversation.forgotten = where in self._left
        self._held.move_to_end(where)
        trace = conversation.traces.get(batch.trace_id)
        if trace is None:
            trace = conversation.traces[batch.trace_id] = TraceState(batch.epoch)
        trace.epoch = max(trace.epoch, batch.epoch)
        self._mark(where)  # also when nothing is new: a replay asks the rules in force now
        floor = trace.floor
        new = [r for r in batch.readings if r.key not in trace.readings and (floor is None or age(r) > floor)]
        if not new:
            return conversation
        for reading in new:
            trace.readings[reading.key] = reading
        added = sum(map(estimated_bytes, new))  # not of the message: however it was cut, the sum is the same
        trace.bytes += added
        conversation.bytes += added
        self._bytes += added
        if offset is not None:
            trace.saved = False
            trace.first_offset = offset if trace.first_offset is None else min(trace.first_offset, offset)
        conversation.last_received = max(conversation.last_received, *(r.received_unix_nano for r in new))
        return conversation

    def _mark(self, where: Where) -> None:
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
                self._judge_or_leave(where, conversation, clock(conversation.partition), output)
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
                self._judge_or_leave(where, conversation, now, output)
            if where in self._held and conversation.last_received + self._config.memory_seconds * SECOND < now:
                self._leave(where, conversation, output, "memory_seconds")
        return output

    def close_all(self, reason: EndReason) -> Output:
        """The input is over: every run is judged as a whole."""
        output = Output([], [], [])
        for conversation in self._held.values():
            timeline = conversation.build()
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

    def _judge_or_leave(self, where: Where, conversation: ConversationState, now: int, output: Output) -> None:
        """One conversation that can not be judged must not stop all others, again after every restart."""
        try:
            self._judge(conversation, now, output)
        except Exception:
            log.exception("conversation %s can not be judged and is left out; this is a bug", where[1])
            self._leave(where, conversation, output, "failed")

    def _judge(self, conversation: ConversationState, now: int, output: Output) -> None:
        timeline = conversation.build()
        ended = {run.run_id: end for run in timeline.runs if (end := self._end_of(run, now))}
        news = {run_id: end for run_id, end in ended.items() if run_id not in conversation.closed}
        if news:
            conversation.closed.update(news)
            timeline = conversation.build()
        conversation.runs = timeline.runs
        judgement = judge(timeline, self.laws)
        self._rates.count_closed(judgement, news, self._operators_tools())
        for rule_id, times in judgement.check_errors.items():
            self.counters["check_errors", rule_id] += times
        for rule_id, times in judgement.undecided.items():
            self.counters["conditions_undecided", rule_id] += times
        self.heard.hear(judgement.raised, judgement.suppressed)
        self._emit(conversation, judgement, output)
        output.effects.extend(self._tools.of(timeline))
        over = all(run.run_id in conversation.closed for run in timeline.runs)
        if conversation.bytes > self._config.conversation_bytes:
            self._shorten(conversation, output)
        if over:
            self._save(conversation, output)

    def _operators_tools(self) -> frozenset[str]:
        return frozenset(tool.name for tool in self.laws.catalogue.tools) if self.laws.catalogue else frozenset()

    def _emit(self, conversation: ConversationState, judgement: Judgement, output: Output) -> None:
        """Where something was forgotten, what was said of a trace with all of it in view stands."""
        said = {
            trace_id: (trace.epoch, trace.emission)
            for trace_id, trace in conversation.traces.items()
            if not (conversation.forgotten and trace.saved)
        }
        records, effects = emit(judgement, said)
        output.records.extend(records)
        output.effects.extend(effects)

    # -- memory ----------------------------------------------------------------------------------
    def _save(self, conversation: ConversationState, output: Output) -> None:
        """Snapshot the traces that changed since they were last saved; their offsets are released
        when the snapshot is durable (the caller publishes before it commits)."""
        for trace_id, trace in conversation.traces.items():
            if trace.saved:
                continue
            closed = {
                run.run_id: conversation.closed[run.run_id] for run in conversation.runs if run.trace_id == trace_id
            }
            first = Snapshot(
                conversation.conversation_id,
                trace_id,
                trace.epoch,
                (),
                tuple(sorted(trace.emission.effect_keys)),
                closed,
                forgotten=conversation.forgotten,
                floor=trace.floor,
                kept=trace.emission.kept(),
                kept_calls=trace.emission.kept_calls(),
            )
            # In the order they came: what was written before stays where it is when readings are added, so a
            # kill between two parts leaves none out.
            parts = in_parts(list(trace.readings.values()))
            for part, readings in enumerate(parts):
                snapshot = msgspec.structs.replace(first, readings=readings, part=part)
                output.memory.append((conversation.conversation_id, trace_id, part, snapshot))
            for part in range(len(parts), trace.parts):
                output.memory.append((conversation.conversation_id, trace_id, part, None))
            trace.parts = len(parts)
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
        for where in [where for where in self._left if where[0] == partition]:
            del self._left[where]

    # -- limits ----------------------------------------------------------------------------------
    def _enforce_limits(self, output: Output) -> None:
        """The longest quiet conversations leave, those that are over first. Ordered once, not for each that leaves:
        when none is over, looking for one that is would cost all of them every time."""
        if self._beyond() is None:
            return
        held = sorted(self._held.items(), key=lambda item: not item[1].saved)  # stable: the order of age stays
        for where, conversation in held:
            reason = self._beyond()
            if reason is None:
                return
            if not conversation.saved:
                self._evict(where, conversation, output)
            if where in self._held:
                self._leave(where, conversation, output, reason)

    def _beyond(self) -> str | None:
        """Which limit is passed."""
        if len(self._held) > self._config.max_conversations:
            return "max_conversations"
        return "max_bytes" if self._bytes > self._config.max_bytes else None

    def _evict(self, where: Where, conversation: ConversationState, output: Output) -> None:
        """Judge runs that are not over as if they were."""
        for run in conversation.runs:
            if run.run_id not in conversation.closed:
                conversation.closed[run.run_id] = "evicted"
                self.counters["runs_closed", "evicted"] += 1
        self._judge_or_leave(where, conversation, 0, output)

    def _shorten(self, conversation: ConversationState, output: Output) -> None:
        """Let the oldest traces of a conversation go, then the oldest readings of the last one; what
        they said stays in the store."""
        limit = self._config.conversation_bytes
        while conversation.bytes > limit and len(conversation.traces) > 1:
            oldest = min(conversation.traces, key=lambda t: min((r.received_unix_nano, r.key) for r in conversation.traces[t].readings.values()))  # fmt: skip
            output.forget(conversation.conversation_id, oldest, conversation.traces[oldest].parts)
            self._drop_trace(conversation, oldest)
            self.counters["traces_forgotten", "conversation_bytes"] += 1
        conversation.forgotten = True
        (*_, newest) = conversation.traces.values()
        if conversation.bytes > limit:
            self._shorten_trace(conversation, newest)
        if conversation.saved:
            newest.saved = False  # so that one snapshot says that something was forgotten

    def _shorten_trace(self, conversation: ConversationState, trace: TraceState) -> None:
        """Keep the youngest readings that fit, whatever the order they came in. The newest one stays."""
        by_age = sorted(trace.readings.values(), key=age)
        old, freed = [], 0
        for reading in by_age[:-1]:
            if conversation.bytes - freed <= self._config.conversation_bytes:
                break
            old.append(reading)
            freed += estimated_bytes(reading)
        if not old:
            return
        for reading in old:
            del trace.readings[reading.key]
        trace.bytes -= freed
        conversation.bytes -= freed
        self._bytes -= freed
        trace.floor = age(old[-1])
        trace.emission.only_adds = True
        trace.saved = False
        self.counters["traces_forgotten", "trace_bytes"] += 1

    def _leave(self, where: Where, conversation: ConversationState, output: Output, reason: str) -> None:
        """Forget a conversation, but not that there was one: what comes later lacks its past."""
        for trace_id, trace in conversation.traces.items():
            output.forget(conversation.conversation_id, trace_id, trace.parts)
        self.counters["conversations_left", reason] += 1
        self._forget(where)
        if any(trace.epoch for trace in conversation.traces.values()):  # a trace alone does not come back
            output.memory.append((where[1], "", 0, gone(where[1])))
        self._left[where] = None
        self._left.move_to_end(where)
        while len(self._left) > REMEMBERED * self._config.max_conversations:
            (_, forgotten), _ = self._left.popitem(last=False)
            output.forget(forgotten, "", 1)

    def _drop_trace(self, conversation: ConversationState, trace_id: str) -> None:
        trace = conversation.traces.pop(trace_id)
        for run in conversation.runs:
            if run.trace_id == trace_id:
                conversation.closed.pop(run.run_id, None)
        conversation.runs = tuple(run for run in conversation.runs if run.trace_id != trace_id)
        conversation.bytes -= trace.bytes
        self._bytes -= trace.bytes

    def _forget(self, where: Where) -> None:
        conversation = self._held.pop(where)
        self._dirty.pop(where, None)
        self._bytes -= conversation.bytes

    def stats(self) -> dict[str, int]:
        """How much is held now."""
        # Asked by another thread: the copies are made in one step, so that nothing changes under the loop.
        runs = sum(1 for c in list(self._held.values()) for r in tuple(c.runs) if r.run_id not in c.closed)
        return {"conversations": len(self._held), "runs_open": runs, "detect_bytes": self._bytes}
