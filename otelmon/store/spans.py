"""Rows of received spans: ids, times and status in hot columns, the request itself once, compressed."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from duckdb import DuckDBPyConnection
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from otelmon.bus.protocol import Delivered
from otelmon.receive.otlp_json import parse_json
from otelmon.receive.tally import Tally as Refused
from otelmon.store.accounts import Tally
from otelmon.store.content import compress
from otelmon.store.tables import Row, append, select
from otelmon.vocabulary.errors import InputError

MAX_DEPTH = 64
LATEST_TIME = 2**63 - 1
_ENVIRONMENT = ("deployment.environment.name", "deployment.environment")
# One span of a message: (trace id, span id, digest, the columns between digest and the payload's place).
Decoded = tuple[str, str, str, Row]


class SpanMessage:
    """One message of the spans topic, decoded: its good spans by index, and the refused by reason."""

    def __init__(self, message: Delivered) -> None:
        self.message = message
        self.encoding = "otlp_json" if message.value[:64].lstrip()[:1] == b"{" else "otlp_proto"
        self.spans: list[tuple[int, Decoded]] = []
        self.rejected: dict[str, int] = {}
        self.unreadable = ""
        self.received = 0
        try:
            self._decode()
        except InputError as error:
            self._give_up(error.reason)
        except (DecodeError, ValueError, RecursionError):
            self._give_up("invalid_protobuf")

    def _give_up(self, reason: str) -> None:
        self.unreadable, self.received = reason, 1
        self.spans, self.rejected = [], {}

    def _decode(self) -> None:
        refused = Refused()
        if self.encoding == "otlp_json":
            request = parse_json(self.message.value, MAX_DEPTH, refused)
        else:
            request = ExportTraceServiceRequest.FromString(self.message.value)
        self.rejected = dict(refused.rejected)
        for index, (resource, span) in enumerate(_each(request)):
            reason = _refusal(span)
            if reason:
                self.rejected[reason] = self.rejected.get(reason, 0) + 1
            else:
                self.spans.append((index, _decoded(resource, span)))
        self.received = len(self.spans) + sum(self.rejected.values())


class _Resource:
    def __init__(self, resource: Any) -> None:
        self.raw: bytes = resource.SerializeToString()
        values = {pair.key: pair.value.string_value for pair in resource.attributes}
        self.service = values.get("service.name", "")
        self.environment = next((values[key] for key in _ENVIRONMENT if values.get(key)), "")


def _each(request: Any) -> Iterator[tuple[_Resource, Any]]:
    for resource_spans in request.resource_spans:
        resource = _Resource(resource_spans.resource)
        for scope_spans in resource_spans.scope_spans:
            for span in scope_spans.spans:
                yield resource, span


def _refusal(span: Any) -> str:
    if len(span.trace_id) != 16 or not any(span.trace_id):
        return "invalid_trace_id"
    if len(span.span_id) != 8 or not any(span.span_id):
        return "invalid_span_id"
    if span.start_time_unix_nano > LATEST_TIME or span.end_time_unix_nano > LATEST_TIME:
        return "invalid_time"
    return ""


def _decoded(resource: _Resource, span: Any) -> Decoded:
    digest = hashlib.blake2b(resource.raw + span.SerializeToString(), digest_size=8).hexdigest()
    columns = (
        span.parent_span_id.hex(),
        span.name,
        span.kind if 0 <= span.kind <= 127 else 0,
        resource.service,
        resource.environment,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        span.status.code if 0 <= span.status.code <= 127 else 0,
    )
    return span.trace_id.hex(), span.span_id.hex(), digest, columns


def write_spans(connection: DuckDBPyConnection, batch: list[SpanMessage], tally: Tally) -> None:
    """Append the spans that are not there yet and the requests they came in, and count every span."""
    known = _known(connection, batch)
    rows: list[Row] = []
    payloads: list[Row] = []
    for item in batch:
        fresh = _fresh_rows(item, known, tally)
        rows += fresh
        if fresh:
            payloads.append(_payload(item))
    append(connection, "payloads", payloads)
    append(connection, "spans", rows)


def _known(connection: DuckDBPyConnection, batch: list[SpanMessage]) -> dict[tuple[str, str], set[str]]:
    traces = {decoded[0] for item in batch for _, decoded in item.spans}
    known: dict[tuple[str, str], set[str]] = defaultdict(set)
    rows = select(
        connection,
        "SELECT trace_id, span_id, digest FROM spans WHERE trace_id IN (SELECT unnest(?::VARCHAR[]))",
        traces,
    )
    for trace_id, span_id, digest in rows:
        known[trace_id, span_id].add(digest)
    return known


def _fresh_rows(item: SpanMessage, known: dict[tuple[str, str], set[str]], tally: Tally) -> list[Row]:
    message = item.message
    rows: list[Row] = []
    conflicts = 0
    for index, (trace_id, span_id, digest, columns) in item.spans:
        digests = known[trace_id, span_id]
        if digest in digests:
            continue
        conflict = bool(digests)
        conflicts += conflict
        digests.add(digest)
        rows.append(
            (trace_id, span_id, *columns, digest, conflict, message.time_unix_nano,
             message.topic, message.partition, message.offset, index)
        )  # fmt: skip
    tally.add(message, "received", "", item.received)
    tally.add(message, "stored", "", len(rows))
    tally.add(message, "conflict", "", conflicts)
    tally.add(message, "duplicate", "", len(item.spans) - len(rows))
    for reason, amount in item.rejected.items():
        tally.add(message, "rejected", reason, amount)
    if item.unreadable:
        tally.add(message, "dead_lettered", item.unreadable)
    return rows


def _payload(item: SpanMessage) -> Row:
    message = item.message
    return (
        message.topic, message.partition, message.offset, message.time_unix_nano,
        len(item.spans), len(message.value), item.encoding, compress(message.value),
    )  # fmt: skip
