"""The documents of OTLP/JSON as types, lenient where senders differ: null is absent, unknown fields are ignored.

Spans, log records, scopes and resources are kept raw, so that a broken one is found alone.
"""

from __future__ import annotations

import msgspec

Number = int | float | str | None
"""Integers come as numbers or decimal strings, enums as numbers or names."""


class Camel(msgspec.Struct, rename="camel"):
    pass


class Array(Camel):
    values: list[AnyValue | None] | None = None


class KeyValue(Camel):
    key: str = ""
    value: AnyValue | None = None


class KeyValues(Camel):
    values: list[KeyValue] | None = None


class AnyValue(Camel):
    string_value: str | None = None
    bool_value: bool | None = None
    int_value: Number = None
    double_value: Number = None
    array_value: Array | None = None
    kvlist_value: KeyValues | None = None
    bytes_value: str | None = None


class Event(Camel):
    time_unix_nano: Number = None
    name: str | None = None
    attributes: list[KeyValue] | None = None
    dropped_attributes_count: Number = None


class Link(Camel):
    trace_id: str | None = None
    span_id: str | None = None
    trace_state: str | None = None
    attributes: list[KeyValue] | None = None
    dropped_attributes_count: Number = None
    flags: Number = None


class Status(Camel):
    message: str | None = None
    code: Number = None


class Span(Camel):
    trace_id: str | None = None
    span_id: str | None = None
    trace_state: str | None = None
    parent_span_id: str | None = None
    flags: Number = None
    name: str | None = None
    kind: Number = None
    start_time_unix_nano: Number = None
    end_time_unix_nano: Number = None
    attributes: list[KeyValue] | None = None
    dropped_attributes_count: Number = None
    events: list[Event] | None = None
    dropped_events_count: Number = None
    links: list[Link] | None = None
    dropped_links_count: Number = None
    status: Status | None = None


class Scope(Camel):
    name: str | None = None
    version: str | None = None
    attributes: list[KeyValue] | None = None
    dropped_attributes_count: Number = None


class Resource(Camel):
    attributes: list[KeyValue] | None = None
    dropped_attributes_count: Number = None


class ScopeSpans(Camel):
    scope: msgspec.Raw = msgspec.Raw(b"null")
    spans: list[msgspec.Raw] | None = None
    schema_url: str | None = None


class ResourceSpans(Camel):
    resource: msgspec.Raw = msgspec.Raw(b"null")
    scope_spans: list[ScopeSpans] | None = None
    schema_url: str | None = None


class LogRecord(Camel):
    time_unix_nano: Number = None
    observed_time_unix_nano: Number = None
    severity_number: Number = None
    severity_text: str | None = None
    body: AnyValue | None = None
    attributes: list[KeyValue] | None = None
    dropped_attributes_count: Number = None
    flags: Number = None
    trace_id: str | None = None
    span_id: str | None = None
    event_name: str | None = None


class ScopeLogs(Camel):
    scope: msgspec.Raw = msgspec.Raw(b"null")
    spans: list[msgspec.Raw] | None = msgspec.field(default=None, name="logRecords")
    schema_url: str | None = None


class ResourceLogs(Camel):
    resource: msgspec.Raw = msgspec.Raw(b"null")
    scope_spans: list[ScopeLogs] | None = msgspec.field(default=None, name="scopeLogs")
    schema_url: str | None = None


class LogsRequest(Camel):
    """As Request; its fields have the names that the reader of both knows."""

    resource_spans: list[ResourceLogs] | None = msgspec.field(default=None, name="resourceLogs")


class Request(Camel):
    resource_spans: list[ResourceSpans] | None = None
