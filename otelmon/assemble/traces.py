"""Open traces of one partition: which conversation each span belongs to, and when a trace is over.

A span's own conversation id wins, then its nearest ancestor's, then the only id of its trace (the
earliest one when there are several); without any the trace is its own conversation. When that
answer changes, everything held of the trace is sent again under the new one. What a log record says
goes where the span it names goes.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence

from otelmon.assemble.history import History
from otelmon.vocabulary.config import AssembleConfig
from otelmon.vocabulary.event import EndReason
from otelmon.vocabulary.messages import SPLIT, Handover, ReadingBatch
from otelmon.vocabulary.reading import Reading

SECOND = 1_000_000_000
REMEMBERED = 4  # closed traces remembered for late spans, per open trace allowed
SPAN_BYTES = 700
RECORDS_A_SPAN = 8  # log records that a trace may have for every span it may have
PART_BYTES = 4 * 1024 * 1024  # of readings in one message

Output = list[ReadingBatch | Handover]


class _Trace:
    """What is held of one open trace."""

    __slots__ = ("assigned", "bytes", "children", "fallback", "first_offset", "floating", "held", "ids", "last_received", "own", "readings", "root_seen", "spans", "trace_id")  # fmt: skip

    def __init__(self, trace_id: str, first_offset: int) -> None:
        self.trace_id = trace_id
        self.first_offset = first_offset
        self.readings: dict[tuple[str, str], Reading] = {}  # by span id and digest
        self.held: set[str] = set()  # spans of which there is a reading, be it a log record's
        self.spans: dict[str, Reading] = {}
        self.children: dict[str, list[str]] = {}
        self.assigned: dict[str, str] = {}  # span -> conversation, where an id is on it or above it
        self.floating: set[str] = set()  # spans that follow `fallback`
        self.ids: dict[str, tuple[int, str]] = {}
        self.own: dict[str, str] = {}  # the id on a span; of conflicting contents the least
        self.fallback = own_conversation(trace_id)
        self.last_received = 0
        self.root_seen = False
        self.bytes = 0

    def conversation_of(self, span_id: str) -> str:
        return self.assigned.get(span_id, self.fallback)

    @property
    def split(self) -> bool:
        """Whether its spans belong to several conversations. Once so, always so."""
        return len(self.ids) > 1

    def add(self, reading: Reading) -> dict[str, str]:
        """Take a new reading. Returns {span id: conversation it was in before} of held spans that
        moved because of it."""
        moved: dict[str, str] = {}
        span_id = reading.span_id
        held = span_id in self.held
        self.held.add(span_id)
        self.readings[(span_id, reading.digest)] = reading
        if not reading.supplement:
            self._add_span(reading)
        self._assign(reading, held, moved)
        return moved

    def _add_span(self, reading: Reading) -> None:
        span_id = reading.span_id
        known = self.spans.get(span_id)
        if known is None or (reading.end_time_unix_nano, reading.digest) > (known.end_time_unix_nano, known.digest):
            self.spans[span_id] = reading
        if known is None and reading.parent_span_id:
            self.children.setdefault(reading.parent_span_id, []).append(span_id)
        self.root_seen = self.root_seen or not reading.parent_span_id

    def _assign(self, reading: Reading, held: bool, moved: dict[str, str]) -> None:
        span_id = reading.span_id
        if reading.conversation_id:
            self.own[span_id] = min(self.own.get(span_id, reading.conversation_id), reading.conversation_id)
            mark = (reading.start_time_unix_nano, span_id)
            self.ids[reading.conversation_id] = min(self.ids.get(reading.conversation_id, mark), mark)
        own = self.own.get(span_id)
        target = own or self.assigned.get(reading.parent_span_id)
        if target is None and reading.supplement:
            target = self.assigned.get(span_id)
        before = self.conversation_of(span_id)
        if target is None:
            self.floating.add(span_id)
        elif self.assigned.get(span_id) != target:
            if held and before != target:
                moved.setdefault(span_id, before)
            self._spread(span_id, target, moved)
        fallback = min(self.ids, key=self.ids.__getitem__) if self.ids else self.fallback
        if fallback != self.fallback:
            for floating in self.floating:
                if floating != span_id or held:
                    moved.setdefault(floating, self.fallback)
            self.fallback = fallback

    def _spread(self, span_id: str, conversation: str, moved: dict[str, str]) -> None:
        """Give a span's conversation to what is below it, down to spans with an id of their own."""
        todo = [(span_id, False)]
        seen: set[str] = set()
        while todo:
            current, below = todo.pop()
            if current in seen:
                continue
            seen.add(current)
            if below:
                before = self.conversation_of(current)
                if before != conversation:
                    moved.setdefault(current, before)
            self.assigned[current] = conversation
            self.floating.discard(current)
            todo.extend((child, True) for child in self.children.get(current, ()) if child not in self.own)


class TraceTable:
    """The open traces of one partition. Used by one thread. `counters` are {(metric, labels...): n};
    those of the stage, when given, so that they outlive the table."""

    def __init__(self, config: AssembleConfig, counters: Counter[tuple[str, ...]] | None = None) -> None:
        self._config = config
        self._settle = int(config.settle_seconds * SECOND)
        self._idle = int(config.idle_seconds * SECOND)
        self._open: OrderedDict[str, _Trace] = OrderedDict()
        self._histories: OrderedDict[str, History] = OrderedDict()
        self._closed: OrderedDict[str, tuple[str, bool]] = OrderedDict()  # conversation, and whether split
        self._bytes = 0
        self.counters: Counter[tuple[str, ...]] = Counter() if counters is None else counters

    @property
    def open_traces(self) -> int:
        """Traces held open."""
        return len(self._open)

    @property
    def bytes(self) -> int:
        """Estimated memory of open traces."""
        return self._bytes

    def history(self, trace_id: str) -> History:
        """The message memory of a trace. That of a closed trace is not kept."""
        known = self._histories.get(trace_id)
        if known is None:
            known = History()
            if trace_id not in self._closed:
                self._histories[trace_id] = known
                if len(self._histories) > 2 * self._config.max_open_traces:
                    self._histories.popitem(last=False)
        return known

    def needed_offset(self) -> int | None:
        """The oldest offset that an open trace was read from; None when no trace is open."""
        oldest = next(iter(self._open.values()), None)  # offsets only grow
        return oldest.first_offset if oldest else None

    def feed(self, readings: Sequence[Reading], offset: int, now: int) -> Output:
        """Take the readings of one message; `now` is its recorded receive time in nanoseconds.

        Returns what to publish: new readings under their conversations, and for a trace whose
        conversation became known, a Handover to the old one and all readings under the new one.
        """
        by_trace: dict[str, list[Reading]] = {}
        for reading in readings:
            by_trace.setdefault(reading.trace_id, []).append(reading)
        out: Output = []
        for trace_id, members in by_trace.items():
            if trace_id in self._closed:
                out.extend(self._late(trace_id, members))
            else:
                out.extend(self._take(trace_id, members, offset, now))
        self._enforce_limits()
        return out

    def tick(self, now: int) -> None:
        """Close traces whose quiet time is over."""
        over: list[tuple[str, EndReason]] = []
        for trace in self._open.values():
            quiet = now - trace.last_received
            if trace.root_seen and quiet >= self._settle:
                over.append((trace.trace_id, "root"))
            elif quiet >= self._idle:
                over.append((trace.trace_id, "idle"))
        for trace_id, reason in over:
            self._close(trace_id, reason)

    # -- taking ----------------------------------------------------------------------------------
    def _take(self, trace_id: str, members: Iterable[Reading], offset: int, now: int) -> Output:
        trace = self._open.get(trace_id)
        if trace is None:
            trace = self._open[trace_id] = _Trace(trace_id, offset)
        trace.last_received = max(trace.last_received, now)
        fresh: list[Reading] = []
        moved: dict[str, str] = {}
        first: set[str] = set()  # spans of which nothing was sent before
        was_split = trace.split
        for reading in members:
            if (reading.span_id, reading.digest) in trace.readings:
                self.counters["span_duplicates",] += not reading.supplement
                continue
            if reading.span_id in trace.spans and not reading.supplement:
                self.counters["span_conflicts",] += 1
            if reading.span_id not in trace.held:
                first.add(reading.span_id)
            for span_id, before in trace.add(reading).items():
                moved.setdefault(span_id, before)
            fresh.append(reading)
            size = estimated_bytes(reading)
            trace.bytes += size
            self._bytes += size
        out = _batches(trace, fresh) if first.issuperset(moved) else self._moved(trace, fresh, moved)
        if trace.split and not was_split:
            out = [message for message in out if isinstance(message, Handover)]
            out += _batches(trace, trace.readings.values())
        too_many = len(trace.readings) > RECORDS_A_SPAN * self._config.max_trace_spans
        if too_many or len(trace.spans) > self._config.max_trace_spans:
            self._close(trace_id, "span_limit")
        return out

    def _moved(self, trace: _Trace, fresh: Sequence[Reading], moved: dict[str, str]) -> Output:
        """Handovers to the conversations that lose spans, then everything they and the new ones hold."""
        lost = {before: trace.conversation_of(span) for span, before in moved.items() if before != trace.conversation_of(span)}  # fmt: skip
        if not lost:
            return _batches(trace, fresh)
        self.counters["traces_moved",] += 1
        out: Output = [
            Handover(conversation_id=before, trace_id=trace.trace_id, to=to) for before, to in sorted(lost.items())
        ]
        return out + _batches(trace, trace.readings.values())

    def _late(self, trace_id: str, members: Sequence[Reading]) -> Output:
        """Spans of a trace that was closed go where the trace went."""
        self.counters["spans_late",] += len(members)
        self._closed.move_to_end(trace_id)
        fallback, split = self._closed[trace_id]
        groups: dict[str, list[Reading]] = {}
        for reading in members:
            own = reading.conversation_id if fallback != own_conversation(trace_id) else None
            groups.setdefault(own or fallback, []).append(reading)
        return [_batch(trace_id, conversation, found, split) for conversation, found in groups.items()]

    # -- leaving ---------------------------------------------------------------------------------
    def _close(self, trace_id: str, reason: EndReason) -> None:
        trace = self._open.pop(trace_id)
        self._histories.pop(trace_id, None)
        self._bytes -= trace.bytes
        self.counters["traces_closed", reason] += 1
        self._closed[trace_id] = (trace.fallback, trace.split)
        while len(self._closed) > REMEMBERED * self._config.max_open_traces:
            self._closed.popitem(last=False)

    def _enforce_limits(self) -> None:
        while self._open and (len(self._open) > self._config.max_open_traces or self._bytes > self._config.max_bytes):
            self._close(next(iter(self._open)), "evicted")


def own_conversation(trace_id: str) -> str:
    """The conversation of a trace that carries no id."""
    return f"trace:{trace_id}"


def _batches(trace: _Trace, readings: Iterable[Reading]) -> Output:
    groups: dict[str, list[Reading]] = {}
    for reading in readings:
        groups.setdefault(trace.conversation_of(reading.span_id), []).append(reading)
    return [_batch(trace.trace_id, conversation, found, trace.split) for conversation, found in groups.items()]


def _batch(trace_id: str, conversation: str, readings: Sequence[Reading], split: bool) -> ReadingBatch:
    epoch = SPLIT if split else int(conversation != own_conversation(trace_id))
    return ReadingBatch(
        conversation_id=conversation,
        epoch=epoch,
        trace_id=trace_id,
        readings=tuple(readings),
    )


def estimated_bytes(reading: Reading) -> int:
    """Rough memory of a reading, from the lengths of its texts."""
    size = SPAN_BYTES + 40 * (len(reading.input) + len(reading.output))
    for message in reading.messages:
        size += 200 + len(message.text) + sum(300 + len(r.arguments_text or "") for r in message.requests)
        size += sum(200 + len(r.text) for r in message.responses)
    if reading.tool is not None:
        size += 2 * (len(reading.tool.result_text or "") + len(reading.tool.arguments_text or "")) + 600
    return size


def in_parts(readings: Sequence[Reading], limit: int = PART_BYTES) -> list[tuple[Reading, ...]]:
    """Readings in order, cut so that no part is much larger than `limit` bytes (one reading may be);
    at least one part. A bus has a largest message; a trace has none."""
    parts: list[list[Reading]] = [[]]
    size = 0
    for reading in readings:
        more = estimated_bytes(reading)
        if size and size + more > limit:
            parts.append([])
            size = 0
        parts[-1].append(reading)
        size += more
    return [tuple(part) for part in parts]
