"""From the protobuf message to spans and log records in our words, with a digest of each one's content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from otelmon.vocabulary.span import Attributes, LogRecord, Scope, Span, SpanEvent, Value

_NO_PARENT = bytes(8)
_encoder = msgspec.msgpack.Encoder(order="deterministic")


def spans(request: ExportTraceServiceRequest, received_unix_nano: int) -> Iterator[Span]:
    """Every span of a checked request, in its order.

    A resource is decoded once and shared by its spans. The end of a span is never before its
    start. The digest is a hash of every field of the Span but its receive time, resource and scope
    included: equal digest, equal Span, however and with whom it travelled.
    """
    for resource_spans in request.resource_spans:
        resource = attributes(resource_spans.resource.attributes)
        resource_hash = _hash(resource)
        for scope_spans in resource_spans.scope_spans:
            scope = Scope(scope_spans.scope.name, scope_spans.scope.version, scope_spans.schema_url)
            for message in scope_spans.spans:
                yield _span(message, resource, resource_hash, scope, received_unix_nano)


def log_records(request: Any, received_unix_nano: int) -> Iterator[LogRecord]:
    """Every log record of a checked ExportLogsServiceRequest, in its order; digests as for spans."""
    for group in request.resource_logs:
        resource = attributes(group.resource.attributes)
        resource_hash = _hash(resource)
        for scope_logs in group.scope_logs:
            scope = Scope(scope_logs.scope.name, scope_logs.scope.version, scope_logs.schema_url)
            for message in scope_logs.log_records:
                content = (
                    message.trace_id.hex(),
                    message.span_id.hex(),
                    message.event_name,
                    message.time_unix_nano or message.observed_time_unix_nano,
                    value_of(message.body),
                    attributes(message.attributes),
                )
                dropped = message.dropped_attributes_count
                digest = _hash((content, dropped, resource_hash, scope)).hex()
                yield LogRecord(*content, resource, scope, received_unix_nano, digest, dropped)


def _span(message: Any, resource: Attributes, resource_hash: bytes, scope: Scope, received_unix_nano: int) -> Span:
    parent = message.parent_span_id
    start = message.start_time_unix_nano
    content = (
        message.trace_id.hex(),
        message.span_id.hex(),
        "" if parent == _NO_PARENT else parent.hex(),
        message.name,
        message.kind,
        start,
        max(start, message.end_time_unix_nano),
        message.status.code,
        message.status.message,
        attributes(message.attributes),
        tuple(_event(event) for event in message.events) if message.events else (),
    )
    dropped = (message.dropped_attributes_count, message.dropped_events_count)
    digest = _hash((content, dropped, resource_hash, scope)).hex()
    return Span(*content, resource, scope, received_unix_nano, digest, *dropped)


def _hash(content: Any) -> bytes:
    return hashlib.blake2b(_encoder.encode(content), digest_size=16).digest()


def _event(message: Any) -> SpanEvent:
    return SpanEvent(
        message.name, message.time_unix_nano, attributes(message.attributes), message.dropped_attributes_count
    )


def attributes(pairs: Any) -> Attributes:
    """A repeated KeyValue as a dict; of a key given twice the last one counts."""
    # Most values are texts that are not empty: reading the field at once spares asking which one is set.
    return {pair.key: pair.value.string_value or value_of(pair.value) for pair in pairs}


def value_of(message: Any) -> Value:
    """An AnyValue as str, bool, int, float, bytes, list or dict; None when it holds nothing."""
    which = message.WhichOneof("value")
    if which == "array_value":
        return [value_of(item) for item in message.array_value.values]
    if which == "kvlist_value":
        return attributes(message.kvlist_value.values)
    # An index into the dictionary of another signal means nothing here.
    return None if which is None or which == "string_value_strindex" else getattr(message, which)
