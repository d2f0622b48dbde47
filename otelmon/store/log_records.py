"""Rows of received log records: only those that carry agent content, and where their request lies."""

from __future__ import annotations

from duckdb import DuckDBPyConnection

from otelmon.assemble.readings import carries_agent_content
from otelmon.assemble.stage import CONTENT_TYPE, JSON, content_type
from otelmon.bus.protocol import Delivered, Headers
from otelmon.receive import otlp
from otelmon.store.accounts import Tally
from otelmon.store.spans import payload_row
from otelmon.store.tables import Row, append, of_traces, short_key, traces_parameters
from otelmon.vocabulary.config import ReceiveConfig
from otelmon.vocabulary.errors import InputError
from otelmon.vocabulary.messages import SIGNAL

Key = tuple[str, str, str]
NO_CONTENT = "no_agent_content"


class LogMessage:
    """One message of log records, decoded: (trace id, span id, digest) of those with agent content, and
    the others by reason."""

    def __init__(self, message: Delivered, limits: ReceiveConfig) -> None:
        self.message = message
        self.records: list[Key] = []
        self.rejected: dict[str, int] = {}
        self.filtered: dict[str, int] = {}
        self.unreadable = ""
        self.received = 1
        try:
            parsed = otlp.read(message.value, content_type(message), limits, otlp.LOGS)
        except InputError as error:
            self.unreadable = error.reason
            return
        self.rejected, self.received = parsed.rejected, parsed.received
        self.filtered = dict(parsed.filtered)
        for record in otlp.log_records(parsed.request, message.time_unix_nano):
            if carries_agent_content(record):
                self.records.append((record.trace_id, record.span_id, record.digest))
            else:
                self.filtered[NO_CONTENT] = self.filtered.get(NO_CONTENT, 0) + 1


def write_log_records(connection: DuckDBPyConnection, batch: list[LogMessage], tally: Tally) -> None:
    """Append the log records that are not there yet and the requests they came in, and count every one."""
    known = _known(connection, batch)
    rows: list[Row] = []
    payloads: list[Row] = []
    for item in batch:
        fresh = [key for key in dict.fromkeys(item.records) if key not in known]
        known.update(fresh)
        _count(item, len(fresh), tally)
        message = item.message
        place = (message.time_unix_nano, message.topic, message.partition, message.offset)
        rows += [(*key, *place, short_key(key[0])) for key in fresh]
        if fresh:
            encoding = "otlp_json_logs" if content_type(message) == otlp.JSON else "otlp_proto_logs"
            payloads.append(payload_row(message, len(item.records), encoding))
    append(connection, "payloads", payloads)
    append(connection, "log_records", rows)


def headers_of(encoding: str) -> Headers:
    """The headers that a stored payload of this encoding came with, for sending it again."""
    kind = ((CONTENT_TYPE, JSON.encode()),) if encoding.startswith("otlp_json") else ()
    return (*kind, (SIGNAL, otlp.LOGS.signal.encode())) if encoding.endswith("_logs") else kind


def _known(connection: DuckDBPyConnection, batch: list[LogMessage]) -> set[Key]:
    traces = {key[0] for item in batch for key in item.records}
    if not traces:
        return set()
    rows = connection.execute(
        f"SELECT trace_id, span_id, digest FROM log_records WHERE {of_traces('log_records')}",  # noqa: S608
        traces_parameters(traces),
    ).fetchall()
    return set(rows)


def _count(item: LogMessage, stored: int, tally: Tally) -> None:
    message = item.message
    tally.add(message, "received", "", item.received)
    tally.add(message, "stored", "", stored)
    tally.add(message, "duplicate", "", len(item.records) - stored)
    for reason, amount in item.filtered.items():
        tally.add(message, "filtered", reason, amount)
    for reason, amount in item.rejected.items():
        tally.add(message, "rejected", reason, amount)
    if item.unreadable:
        tally.add(message, "dead_lettered", item.unreadable)
