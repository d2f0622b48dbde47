"""The assemble stage: OTLP requests from the bus, readings to the detectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from otelmon.assemble.readings import names_agent_event, read_log_record, read_span
from otelmon.assemble.traces import TraceTable, in_parts
from otelmon.bus.protocol import Bus, Delivered, Outgoing
from otelmon.receive import otlp
from otelmon.vocabulary.config import Config
from otelmon.vocabulary.errors import InputError
from otelmon.vocabulary.messages import DEAD, READINGS, SIGNAL, SPANS, Handover, ReadingBatch, encode
from otelmon.vocabulary.reading import Reading
from otelmon.vocabulary.span import LogRecord, Span

GROUP = "otelmon-assemble"
TICK_EVERY = 1_000_000_000
CONTENT_TYPE = "content-type"
PROTOBUF, JSON = "application/x-protobuf", "application/json"


class AssembleStage:
    """One member of the assemble group. `step` is called in a loop by one thread."""

    name = "assemble"

    def __init__(self, bus: Bus, config: Config, wall: Callable[[], int]) -> None:
        self._bus = bus
        self._wall = wall
        self._config = config.assemble
        self._limits = config.receive
        self._tables: dict[int, TraceTable] = {}
        self._next: dict[int, int] = {}
        self._newest: dict[int, int] = {}
        self._committed: dict[int, int] = {}
        self._quiet_since: int | None = None
        self._ticked_at = 0
        self.counters: Counter[tuple[str, ...]] = Counter()
        self._consumer = bus.consumer([SPANS], GROUP, self._assigned, self._revoked)

    def stats(self) -> dict[str, int]:
        return {
            "traces_open": sum(table.open_traces for table in self._tables.values()),
            "lag": sum(self._consumer.lag().values()),
        }

    def step(self, timeout_s: float) -> None:
        """Take what has arrived, make the readings durable, then commit what no open trace needs."""
        messages = self._consumer.poll(timeout_s)
        out: list[ReadingBatch | Handover] = []
        dead: list[Outgoing] = []
        strays: list[Outgoing] = []
        for message in messages:
            self._take(message, out, dead, strays)
        if messages:
            self._quiet_since = None
        elif self._quiet_since is None:
            self._quiet_since = self._wall()
        for topic, outgoing in ((READINGS, self._outgoing(out)), (DEAD, dead), (SPANS, strays)):
            if outgoing:
                self._bus.publish(topic, outgoing)
        if self._wall() - self._ticked_at >= TICK_EVERY:
            self._tick()
        if messages:
            self._commit()

    def _take(
        self, message: Delivered, out: list[ReadingBatch | Handover], dead: list[Outgoing], strays: list[Outgoing]
    ) -> None:
        table = self._tables[message.partition]
        self._next[message.partition] = message.offset + 1
        self._newest[message.partition] = max(self._newest.get(message.partition, 0), message.time_unix_nano)
        shape = shape_of(message)
        try:
            parsed = otlp.read(message.value, content_type(message), self._limits, shape)
        except InputError as error:
            self.counters["dead_letters", SPANS] += 1
            headers = (("topic", SPANS.encode()), ("reason", error.reason.encode()), (SIGNAL, shape.signal.encode()))
            dead.append(Outgoing(message.key, message.value, message.time_unix_nano, headers))
            return
        for reason, number in parsed.rejected.items():
            self.counters["spans_rejected", reason] += number
        items = otlp.log_records if shape is otlp.LOGS else otlp.spans
        mine, others = self._split(items(parsed.request, message.time_unix_nano), message.partition)
        if others:
            strays.extend(self._send_on(parsed.request, message.time_unix_nano, others, shape))
        readings = self._log_readings(mine, table) if shape is otlp.LOGS else self._span_readings(mine, table)
        out.extend(table.feed(readings, message.offset, message.time_unix_nano))

    def _span_readings(self, spans: Iterable[Any], table: TraceTable) -> list[Reading]:
        readings = [read_span(span, table.history(span.trace_id)) for span in spans]
        for reading in readings:
            self.counters["spans_read", reading.dialect] += 1
        return readings

    def _log_readings(self, records: Iterable[Any], table: TraceTable) -> list[Reading]:
        """What log records add to spans; the rest is counted: the store counts it durably."""
        readings = []
        for record in records:
            if names_agent_event(record):
                reading = read_log_record(record, table.history(record.trace_id))
                readings += [reading] if reading is not None else []
        self.counters["log_records_read",] += len(readings)
        return readings

    def _split(self, spans: Iterable[Span | LogRecord], partition: int) -> tuple[list[Span | LogRecord], set[str]]:
        """Spans (or log records) that belong in this partition, and the trace ids that do not."""
        mine: list[Span | LogRecord] = []
        others: set[str] = set()
        home: dict[str, bool] = {}
        for span in spans:
            here = home.get(span.trace_id)
            if here is None:
                here = home[span.trace_id] = self._bus.partition_of(SPANS, span.trace_id) == partition
            if here:
                mine.append(span)
            else:
                others.add(span.trace_id)
        return mine, others

    def _send_on(self, request: Any, received_unix_nano: int, trace_ids: set[str], shape: otlp.Shape) -> list[Outgoing]:
        """The spans (or log records) of these traces, under the key they should have had."""
        for _, _, items in shape.groups(request):
            kept = [item for item in items if item.trace_id.hex() in trace_ids]
            self.counters["strays",] += len(kept)
            del items[:]
            items.extend(kept)
        limit = self._limits.message_bytes
        packed = otlp.messages(request, lambda key: self._bus.partition_of(SPANS, key), limit, None, shape)
        return [outgoing(p, received_unix_nano) for p in packed]

    def _outgoing(self, batches: Sequence[ReadingBatch | Handover]) -> list[Outgoing]:
        return [Outgoing(b.conversation_id, encode(b), _received(b) or self._wall()) for b in _in_parts(batches)]

    def _tick(self) -> None:
        self._ticked_at = self._wall()
        elapsed = self._ticked_at - self._quiet_since if self._quiet_since is not None else 0
        for partition, table in self._tables.items():
            table.tick(self._newest.get(partition, 0) + elapsed)
        self._commit()

    def _commit(self) -> None:
        offsets = {}
        for partition, following in self._next.items():
            needed = self._tables[partition].needed_offset()
            offset = following if needed is None else needed
            if offset > self._committed.get(partition, -1):
                offsets[SPANS, partition] = self._committed[partition] = offset
        if offsets:
            self._consumer.commit(offsets)

    def _assigned(self, topic: str, partition: int) -> int | None:  # noqa: ARG002
        self._tables[partition] = TraceTable(self._config, self.counters)
        return None

    def _revoked(self, topic: str, partition: int) -> None:  # noqa: ARG002
        for state in (self._tables, self._next, self._newest, self._committed):
            state.pop(partition, None)

    def close(self) -> None:
        """Leave the group. Open traces are read again by the next owner."""
        self._consumer.close()


def outgoing(packed: otlp.Packed, received_unix_nano: int) -> Outgoing:
    """A packed request as a message of the spans topic."""
    headers = ((SIGNAL, packed.signal.encode()),) if packed.signal != otlp.TRACES.signal else ()
    return Outgoing(packed.key, packed.value, received_unix_nano, headers, packed.partition)


def shape_of(message: Delivered) -> otlp.Shape:
    """Whether a message on the spans topic holds log records or, as most, spans."""
    logs = any(name.lower() == SIGNAL and value == otlp.LOGS.signal.encode() for name, value in message.headers)
    return otlp.LOGS if logs else otlp.TRACES


def content_type(message: Delivered) -> str:
    """The media type of a message on the spans topic; protobuf unless its header says otherwise."""
    for name, value in message.headers:
        if name.lower() == CONTENT_TYPE:
            return value.decode("ascii", "replace")
    return JSON if message.value[:1] == b"{" else PROTOBUF


def _received(batch: ReadingBatch | Handover) -> int:
    if isinstance(batch, Handover):
        return 0
    return max((reading.received_unix_nano for reading in batch.readings), default=0)


def _in_parts(batches: Sequence[ReadingBatch | Handover]) -> Iterator[ReadingBatch | Handover]:
    """Batches small enough for the bus; their order stays."""
    for batch in batches:
        parts = [()] if isinstance(batch, Handover) else in_parts(batch.readings)
        if len(parts) == 1:
            yield batch
        else:
            yield from (msgspec.structs.replace(batch, readings=part) for part in parts)
