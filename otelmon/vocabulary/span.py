"""One OTLP span, as received (opentelemetry/proto/trace/v1/trace.proto)."""

from __future__ import annotations

from typing import Any

import msgspec

# An attribute value decoded from AnyValue: str, int, float, bool, bytes, None, list or dict of these.
Value = Any
Attributes = dict[str, Value]


class SpanEvent(msgspec.Struct, frozen=True):
    """A timed event on a span. `time_unix_nano` in nanoseconds since the epoch."""

    name: str
    time_unix_nano: int
    attributes: Attributes
    dropped_attributes_count: int = 0


class Scope(msgspec.Struct, frozen=True):
    """The instrumentation scope that made the span."""

    name: str = ""
    version: str = ""
    schema_url: str = ""


class Span(msgspec.Struct, frozen=True):
    """One span. Ids are lower-case hex (32 and 16 characters); `parent_span_id` is "" for a root.

    Times are nanoseconds since the epoch. `resource` is shared by all spans of one request.
    `status_code` is 0 unset, 1 ok, 2 error. `received_unix_nano` is the recorded receive time that
    travels with the data: the only clock the pipeline decides by. `digest` is a hash of the span's
    content: two spans with one id and different digests are a conflict and both are kept.
    """

    trace_id: str
    span_id: str
    parent_span_id: str
    name: str
    kind: int
    start_time_unix_nano: int
    end_time_unix_nano: int
    status_code: int
    status_message: str
    attributes: Attributes
    events: tuple[SpanEvent, ...]
    resource: Attributes
    scope: Scope
    received_unix_nano: int
    digest: str
    dropped_attributes_count: int = 0
    dropped_events_count: int = 0


class LogRecord(msgspec.Struct, frozen=True):
    """One OTLP log record that names a span (opentelemetry/proto/logs/v1/logs.proto).

    `time_unix_nano` is when it happened, or was observed when that is not known. `digest` is a hash of
    its content, without the receive time: the same record sent twice has one digest.
    """

    trace_id: str
    span_id: str
    event_name: str
    time_unix_nano: int
    body: Value
    attributes: Attributes
    resource: Attributes
    scope: Scope
    received_unix_nano: int
    digest: str
    dropped_attributes_count: int = 0
