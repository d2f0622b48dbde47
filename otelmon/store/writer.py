"""The writer: batches of spans and records, each one transaction that holds the rows and the offsets."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from duckdb import DuckDBPyConnection

from otelmon.assemble.stage import shape_of
from otelmon.bus.protocol import Delivered
from otelmon.receive import otlp
from otelmon.store.accounts import Ledger, Place, Tally, write_reports
from otelmon.store.database import Database
from otelmon.store.epochs import Epochs
from otelmon.store.log_records import LogMessage, write_log_records
from otelmon.store.spans import SpanMessage, write_spans
from otelmon.store.tables import append, delete
from otelmon.store.traces import write_traces
from otelmon.store.verdicts import Change, write_verdicts
from otelmon.vocabulary.config import ReceiveConfig
from otelmon.vocabulary.messages import SPANS, Account, StoreRecord, TraceRecord, Verdict, decode_store_record

Hook = Callable[[DuckDBPyConnection, Sequence[Change]], None]


def no_hook(connection: DuckDBPyConnection, changes: Sequence[Change]) -> None:
    """The hook of a store without incidents."""


class StoreWriter:
    """Writes what the bus delivers. `hook` is called inside the transaction with what changed in the
    findings, in order (otelmon.incidents.grouping groups them). `limits` are the receiver's, so that
    both refuse the same spans. Used by one thread.

    A message below the stored offset of its partition is ignored, so any replay is harmless.
    """

    def __init__(self, database: Database, hook: Hook = no_hook, limits: ReceiveConfig | None = None) -> None:
        self._database = database
        self._hook = hook
        self._limits = limits or ReceiveConfig()
        self._offsets: dict[Place, tuple[int, int]] = {}
        with database.read() as cursor:
            self._ledger = Ledger(cursor)
            for topic, partition, first, following in cursor.execute("SELECT * FROM offsets").fetchall():
                self._offsets[topic, partition] = (first, following)

    def offset(self, topic: str, partition: int) -> int | None:
        """The next offset to read, None when nothing of the partition was stored yet."""
        known = self._offsets.get((topic, partition))
        return known[1] if known else None

    @property
    def offsets(self) -> dict[Place, int]:
        """The next offset to read of every partition: what may be committed to the bus."""
        return {place: following for place, (_, following) in self._offsets.items()}

    def write(self, messages: Sequence[Delivered]) -> dict[Place, int]:
        """Store a batch of messages of the spans and the records topic, in the order given; returns
        `offsets`. All or nothing: on any exception nothing of the batch is stored.

        Raises DiskFullError (try again later) and UnreachableError.
        """
        offsets = dict(self._offsets)
        batch = _Batch([message for message in messages if _advance(offsets, message)], self._limits)
        if batch.messages:
            tally = Tally()
            with self._database.write() as connection:
                self._store(connection, batch, tally)
                _write_offsets(connection, {place: offsets[place] for place in tally.counts})
                self._ledger.write(connection, tally)
            self._ledger.keep(tally)
            self._offsets = offsets
        return self.offsets

    def _store(self, connection: DuckDBPyConnection, batch: _Batch, tally: Tally) -> None:
        for message in batch.messages:
            tally.saw(message)
        write_spans(connection, batch.spans, tally)
        write_log_records(connection, batch.logs, tally)
        self._store_records(connection, batch, tally)

    def _store_records(self, connection: DuckDBPyConnection, batch: _Batch, tally: Tally) -> None:
        epochs = Epochs(connection, (_said(record)[0] for _, record in batch.records if record is not None))
        accepted: list[StoreRecord] = []
        for message, record in batch.records:
            tally.add(message, "received")
            if record is None:
                tally.add(message, "dead_lettered", "invalid_record")
            elif epochs.accept(*_said(record)):
                tally.add(message, "stored")
                accepted.append(record)
            else:
                tally.add(message, "filtered", "lower_epoch")
        epochs.write(connection)
        write_traces(connection, [record for record in accepted if isinstance(record, TraceRecord)])
        write_reports(connection, {record.id: record for record in accepted if isinstance(record, Account)})
        changes = write_verdicts(connection, [record for record in accepted if isinstance(record, Verdict)])
        if changes:
            self._hook(connection, changes)


class _Batch:
    """Messages, decoded before the transaction begins."""

    def __init__(self, messages: Sequence[Delivered], limits: ReceiveConfig) -> None:
        self.messages = messages
        received = [(message, shape_of(message)) for message in messages if message.topic == SPANS]
        self.spans = [SpanMessage(message, limits) for message, shape in received if shape is otlp.TRACES]
        self.logs = [LogMessage(message, limits) for message, shape in received if shape is otlp.LOGS]
        self.records = [(message, _decode(message.value)) for message in messages if message.topic != SPANS]


def _decode(value: bytes) -> StoreRecord | None:
    try:
        return decode_store_record(value)
    except (msgspec.DecodeError, RecursionError):
        return None


def _said(record: StoreRecord) -> tuple[str, int, int]:
    """(owner, epoch, time) for the epoch rule. The rows of a trace and its findings have owners of their own."""
    if isinstance(record, Verdict):
        return record.owner, record.epoch, record.observed_unix_nano
    if isinstance(record, TraceRecord):
        observed = max((run.last_received_unix_nano for run in record.runs), default=0)
        return f"record:{record.trace_id}", record.epoch, observed
    return "", 0, 0


def _advance(offsets: dict[Place, tuple[int, int]], message: Delivered) -> bool:
    place = (message.topic, message.partition)
    first, following = offsets.get(place, (message.offset, message.offset))
    if message.offset < following:
        return False
    offsets[place] = (first, message.offset + 1)
    return True


def _write_offsets(connection: DuckDBPyConnection, offsets: dict[Place, tuple[int, int]]) -> None:
    delete(connection, "offsets", "topic || '/' || partition", [f"{topic}/{p}" for topic, p in offsets])
    append(connection, "offsets", [(*place, *range_) for place, range_ in sorted(offsets.items())])
