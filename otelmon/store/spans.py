"""Rows of received spans: ids, times and status in hot columns, the request itself once, compressed."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec
from duckdb import DuckDBPyConnection

from otelmon.assemble.stage import content_type
from otelmon.bus.protocol import Delivered
from otelmon.receive import otlp
from otelmon.receive.spans import attributes
from otelmon.store.accounts import Tally
from otelmon.store.content import compress
from otelmon.store.tables import Row, append, of_traces, short_key, traces_parameters
from otelmon.vocabulary.config import ReceiveConfig
from otelmon.vocabulary.errors import InputError

_NO_PARENT = bytes(8)
_encoder = msgspec.msgpack.Encoder(order="deterministic")
_ENVIRONMENT = ("deployment.environment.name", "deployment.environment")
# One span of a message: (trace id, span id, digest, the columns between digest and the payload's place).
Decoded = tuple[str, str, str, Row]


class SpanMessage:
    """One message of the spans topic, decoded: its good spans in order, and the refused by reason.

    What is refused, and why, is what the assemble stage refuses too.
    """

    def __init__(self, message: Delivered, limits: ReceiveConfig) -> None:
        self.message = message
        self.encoding = "otlp_json" if content_type(message) == otlp.JSON else "otlp_proto"
        self.spans: list[Decoded] = []
        self.rejected: dict[str, int] = {}
        self.unreadable = ""
        self.received = 1
        try:
            parsed = otlp.read(message.value, content_type(message), limits)
        except InputError as error:
            self.unreadable = error.reason
        else:
            self.spans = list(_decoded(parsed.request))
            self.rejected, self.received = parsed.rejected, parsed.received


def _decoded(request: Any) -> Iterator[Decoded]:
    for resource_spans in request.resource_spans:
        resource = attributes(resource_spans.resource.attributes)
        service = str(resource.get("service.name") or "")
        environment = next((str(resource[key]) for key in _ENVIRONMENT if resource.get(key)), "")
        shared = _encoder.encode((resource, resource_spans.schema_url))
        for scope_spans in resource_spans.scope_spans:
            seed = hashlib.blake2b(shared + scope_spans.scope.SerializeToString(), digest_size=8)
            for span in scope_spans.spans:
                yield _row_of(span, service, environment, seed.copy())


def _row_of(span: Any, service: str, environment: str, digest: Any) -> Decoded:
    # Not the digest of the Span in our words: that one needs every attribute decoded, and the store
    # needs only to tell contents apart.
    digest.update(span.SerializeToString())
    parent, start = span.parent_span_id, span.start_time_unix_nano
    columns = (
        "" if parent == _NO_PARENT else parent.hex(),
        span.name,
        span.kind if 0 <= span.kind <= 127 else 0,
        service,
        environment,
        start,
        max(start, span.end_time_unix_nano),
        span.status.code if 0 <= span.status.code <= 127 else 0,
    )
    return span.trace_id.hex(), span.span_id.hex(), digest.hexdigest(), columns


def write_spans(connection: DuckDBPyConnection, batch: list[SpanMessage], tally: Tally) -> None:
    """Append the spans that are not there yet and the requests they came in, and count every span."""
    known = _known(connection, batch)
    rows: list[Row] = []
    payloads: list[Row] = []
    for item in batch:
        fresh = _fresh_rows(item, known, tally)
        rows += fresh
        if fresh:
            payloads.append(payload_row(item.message, len(item.spans), item.encoding))
    append(connection, "payloads", payloads)
    append(connection, "spans", rows)


def _known(connection: DuckDBPyConnection, batch: list[SpanMessage]) -> dict[tuple[str, str], set[str]]:
    traces = {span[0] for item in batch for span in item.spans}
    known: dict[tuple[str, str], set[str]] = defaultdict(set)
    if not traces:
        return known
    rows = connection.execute(
        f"SELECT trace_id, span_id, digest FROM spans WHERE {of_traces('spans')}",  # noqa: S608 - no value in it
        traces_parameters(traces),
    ).fetchall()
    for trace_id, span_id, digest in rows:
        known[trace_id, span_id].add(digest)
    return known


def _fresh_rows(item: SpanMessage, known: dict[tuple[str, str], set[str]], tally: Tally) -> list[Row]:
    message = item.message
    rows: list[Row] = []
    conflicts = 0
    keys = {trace_id: short_key(trace_id) for trace_id in {span[0] for span in item.spans}}
    for index, (trace_id, span_id, digest, columns) in enumerate(item.spans):
        digests = known[trace_id, span_id]
        if digest in digests:
            continue
        conflict = bool(digests)
        conflicts += conflict
        digests.add(digest)
        rows.append(
            (trace_id, span_id, *columns, digest, conflict, message.time_unix_nano,
             message.topic, message.partition, message.offset, index, keys[trace_id])
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


def payload_row(message: Delivered, items: int, encoding: str) -> Row:
    """The row of a request as it came. `encoding`: otlp_proto or otlp_json, with _logs behind it for log records."""
    data = compress(message.value)
    return (
        message.topic, message.partition, message.offset, message.time_unix_nano,
        items, len(message.value), len(data), encoding, data,
    )  # fmt: skip
