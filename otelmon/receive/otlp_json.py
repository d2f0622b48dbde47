"""OTLP/JSON to and from the protobuf message: ids are hex, 64-bit integers strings or numbers, enums names or numbers."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, TypeVar

import msgspec
from google.protobuf import json_format
from opentelemetry.proto.logs.v1.logs_pb2 import SeverityNumber
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
from opentelemetry.proto.trace.v1.trace_pb2 import Status as StatusMessage

from otelmon.receive.otlp_shapes import (
    AnyValue,
    Event,
    KeyValue,
    Link,
    LogRecord,
    LogsRequest,
    Number,
    Request,
    Resource,
    ResourceSpans,
    Scope,
    ScopeSpans,
    Span,
)
from otelmon.receive.shapes import LOGS, TRACES, Shape
from otelmon.receive.tally import Tally
from otelmon.vocabulary.errors import InputError, Problem

PARSER_LEVELS = 100  # nested messages that protobuf parsers accept, below the request
_IN_RESOURCE, _IN_RECORD, _IN_SPAN, _IN_EVENT = (
    4,
    4,
    5,
    6,
)  # level of an attribute's value: request > resource > attribute > value
T = TypeVar("T")


_requests: dict[str, msgspec.json.Decoder[Any]] = {
    "traces": msgspec.json.Decoder(Request),
    "logs": msgspec.json.Decoder(LogsRequest),
}
_span = msgspec.json.Decoder(Span)
_record = msgspec.json.Decoder(LogRecord)
_scope = msgspec.json.Decoder(Scope | None)
_resource = msgspec.json.Decoder(Resource | None)


class _BadSpanError(Exception):
    """One span, scope or resource can not be carried; `reason` is one of SPAN_REASONS."""

    def __init__(self, reason: str, what: str) -> None:
        super().__init__(what)
        self.reason = reason


def parse_json(body: bytes, max_depth: int, tally: Tally, shape: Shape = TRACES) -> Any:
    """The request message of an OTLP/JSON body.

    Items that can not be carried are left out and counted in `tally`; so are values nested deeper than
    `max_depth`, or than protobuf can carry. Raises InputError
    (`invalid_json`, `too_deep`, `too_large`) when the body as a whole is not such a request.
    """
    try:
        document = _tolerant(_requests[shape.signal], body, tally)
    except msgspec.ValidationError as error:
        raise InputError(
            "invalid_json", Problem("body", str(error), f"an OTLP/JSON request of {shape.signal}")
        ) from None
    except msgspec.DecodeError as error:
        raise InputError("invalid_json", Problem(f"body{position(body, error)}", text_of(error), "JSON")) from None
    except RecursionError:
        raise InputError("too_deep", Problem("body", "JSON nested too deep to read")) from None
    groups = (scope for resource in document.resource_spans or () for scope in resource.scope_spans or ())
    tally.expect(sum(len(scope.spans or ()) for scope in groups))
    request = shape.request()
    builder = _Builder(max_depth, tally, shape)
    for r, group in enumerate(document.resource_spans or ()):
        builder.resource_group(getattr(request, shape.resources).add(), group, r)
    return request


def text_of(error: msgspec.DecodeError) -> str:
    """The words of a decode error without its byte offset."""
    return re.sub(r" \(byte \d+\)$", "", str(error))


def position(body: bytes, error: msgspec.DecodeError) -> str:
    """Where in a body a decode error is, as ":line:column"; the end when the error names no byte."""
    found = re.search(r"\(byte (\d+)\)$", str(error))
    before = body[: int(found[1])] if found else body.rstrip()
    return f":{before.count(10) + 1}:{len(before) - before.rfind(10)}"


def _tolerant(decoder: msgspec.json.Decoder[T], raw: bytes | msgspec.Raw, tally: Tally) -> T:
    """Decode, and once more with text that is not Unicode replaced, so that half a surrogate pair loses nothing else."""
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        repaired, places = repair_text(bytes(raw))
        if not places:
            raise
        value = decoder.decode(repaired)
        tally.repaired += places
        return value


_ESCAPES = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


def repair_text(body: bytes) -> tuple[bytes, int]:
    """JSON text with lone surrogates and bytes that are not UTF-8 replaced by U+FFFD, and in how many places."""
    places = 0

    def replace(match: re.Match[bytes]) -> bytes:
        nonlocal places
        if match[1] is None:
            return match[0]
        places += 1
        return b"\\ufffd"

    repaired = _ESCAPES.sub(replace, body)
    try:
        repaired.decode()
    except UnicodeDecodeError:
        text = repaired.decode("utf-8", "replace")
        places += max(1, text.count("\ufffd") - repaired.count("\ufffd".encode()))
        repaired = text.encode()
    return repaired, places


class _Builder:
    """Fills protobuf messages from the decoded structs."""

    def __init__(self, max_depth: int, tally: Tally, shape: Shape) -> None:
        self._max_depth = max_depth
        self._tally = tally
        self._shape = shape

    def resource_group(self, target: Any, source: ResourceSpans, r: int) -> None:
        target.schema_url = source.schema_url or ""
        try:
            resource = _tolerant(_resource, source.resource, self._tally)
            if resource:
                self._attributes(target.resource.attributes, resource.attributes, _IN_RESOURCE)
                target.resource.dropped_attributes_count = _number(resource.dropped_attributes_count, 32)
        except (_BadSpanError, msgspec.DecodeError, RecursionError) as error:
            self._reject_all(
                [s for g in source.scope_spans or () for s in g.spans or ()],
                f"{self._shape.where(r)}.resource: {error}",
            )
            return
        for s, group in enumerate(source.scope_spans or ()):
            self._scope_group(getattr(target, self._shape.scopes).add(), group, r, s)

    def _reject_all(self, spans: list[msgspec.Raw], example: str) -> None:
        self._tally.received += len(spans)
        self._tally.reject("invalid_resource", example, len(spans))

    def _scope_group(self, target: Any, source: ScopeSpans, r: int, s: int) -> None:
        target.schema_url = source.schema_url or ""
        raw_spans = source.spans or []
        try:
            scope = _tolerant(_scope, source.scope, self._tally)
            if scope:
                target.scope.name, target.scope.version = scope.name or "", scope.version or ""
                self._attributes(target.scope.attributes, scope.attributes, _IN_SPAN)
                target.scope.dropped_attributes_count = _number(scope.dropped_attributes_count, 32)
        except (_BadSpanError, msgspec.DecodeError, RecursionError) as error:
            self._reject_all(raw_spans, f"{self._shape.where(r, s)}.scope: {error}")
            return
        for n, raw in enumerate(raw_spans):
            self._checked(getattr(target, self._shape.items), raw, self._shape.where(r, s, n))

    def _checked(self, items: Any, raw: msgspec.Raw, where: str) -> None:
        message = self._shape.item()
        reason = "invalid_value"
        try:
            if self._shape is LOGS:
                self._log_record(message, _tolerant(_record, raw, self._tally))
            else:
                self._span(message, _tolerant(_span, raw, self._tally))
            items.append(message)
            return
        except _BadSpanError as error:
            reason, what = error.reason, str(error)
        except RecursionError:
            reason, what = "too_deep", "nested too deep to read"
        except msgspec.DecodeError as error:
            what = str(error)
        self._tally.received += 1
        self._tally.reject(reason, f"{where}: {what}")

    def _span(self, target: Any, source: Span) -> None:
        target.trace_id = _id(source.trace_id, 16, "invalid_trace_id", "traceId")
        target.span_id = _id(source.span_id, 8, "invalid_span_id", "spanId")
        target.parent_span_id = _id(source.parent_span_id, 8, "invalid_parent_span_id", "parentSpanId")
        target.trace_state, target.name = source.trace_state or "", source.name or ""
        target.flags = _number(source.flags, 32)
        target.kind = _enum(source.kind, SpanMessage.SpanKind)
        target.start_time_unix_nano = _number(source.start_time_unix_nano, 64)
        target.end_time_unix_nano = _number(source.end_time_unix_nano, 64)
        self._attributes(target.attributes, source.attributes, _IN_SPAN)
        target.dropped_attributes_count = _number(source.dropped_attributes_count, 32)
        target.dropped_events_count = _number(source.dropped_events_count, 32)
        target.dropped_links_count = _number(source.dropped_links_count, 32)
        for event in source.events or ():
            self._event(target.events.add(), event)
        for link in source.links or ():
            self._link(target.links.add(), link)
        if source.status:
            target.status.message = source.status.message or ""
            target.status.code = _enum(source.status.code, StatusMessage.StatusCode)

    def _log_record(self, target: Any, source: LogRecord) -> None:
        target.trace_id = _id(source.trace_id, 16, "invalid_trace_id", "traceId")
        target.span_id = _id(source.span_id, 8, "invalid_span_id", "spanId")
        target.event_name, target.severity_text = source.event_name or "", source.severity_text or ""
        target.severity_number = _enum(source.severity_number, SeverityNumber)
        target.flags = _number(source.flags, 32)
        target.time_unix_nano = _number(source.time_unix_nano, 64)
        target.observed_time_unix_nano = _number(source.observed_time_unix_nano, 64)
        if source.body is not None:
            self._value(target.body, source.body, 0, _IN_RECORD)
        self._attributes(target.attributes, source.attributes, _IN_SPAN)
        target.dropped_attributes_count = _number(source.dropped_attributes_count, 32)

    def _event(self, target: Any, source: Event) -> None:
        target.time_unix_nano, target.name = _number(source.time_unix_nano, 64), source.name or ""
        self._attributes(target.attributes, source.attributes, _IN_EVENT)
        target.dropped_attributes_count = _number(source.dropped_attributes_count, 32)

    def _link(self, target: Any, source: Link) -> None:
        target.trace_id = _id(source.trace_id, 16, "invalid_value", "links.traceId")
        target.span_id = _id(source.span_id, 8, "invalid_value", "links.spanId")
        target.trace_state, target.flags = source.trace_state or "", _number(source.flags, 32)
        self._attributes(target.attributes, source.attributes, _IN_EVENT)
        target.dropped_attributes_count = _number(source.dropped_attributes_count, 32)

    def _attributes(self, target: Any, source: list[KeyValue] | None, level: int) -> None:
        for pair in source or ():
            added = target.add(key=pair.key)
            if pair.value is not None:
                self._value(added.value, pair.value, 0, level)

    def _value(self, target: Any, source: AnyValue, depth: int, level: int) -> None:
        self._check_depth(depth, level)
        target.SetInParent()
        if source.string_value is not None:
            target.string_value = source.string_value
        elif source.int_value is not None:
            target.int_value = _number(source.int_value, 63, signed=True)
        elif source.bool_value is not None:
            target.bool_value = source.bool_value
        elif source.double_value is not None:
            target.double_value = _double(source.double_value)
        elif source.bytes_value is not None:
            target.bytes_value = _bytes(source.bytes_value)
        else:
            self._nested(target, source, depth + 1, level)

    def _nested(self, target: Any, source: AnyValue, depth: int, level: int) -> None:
        if source.array_value is not None:
            self._check_depth(depth, level + 1)
            target.array_value.SetInParent()
            for item in source.array_value.values or ():
                self._value(target.array_value.values.add(), item or AnyValue(), depth, level + 2)
        elif source.kvlist_value is not None:
            self._check_depth(depth, level + (2 if source.kvlist_value.values else 1))
            target.kvlist_value.SetInParent()
            for pair in source.kvlist_value.values or ():
                added = target.kvlist_value.values.add(key=pair.key)
                if pair.value is not None:
                    self._value(added.value, pair.value, depth, level + 3)

    def _check_depth(self, depth: int, level: int) -> None:
        if depth > self._max_depth or level > PARSER_LEVELS:
            raise _BadSpanError("too_deep", f"an attribute value is nested deeper than {depth - 1} levels")


def _id(text: str | None, size: int, reason: str, field: str) -> bytes:
    """The bytes of a hex id; b"" for none. Base64 has another length and is refused by name."""
    if not text:
        return b""
    try:
        if len(text) == 2 * size:
            return bytes.fromhex(text)
    except ValueError:
        pass
    hint = " (base64? OTLP/JSON ids are hex)" if len(text.rstrip("=")) == -(-size * 8 // 6) else ""
    raise _BadSpanError(reason, f"{field} {text[:40]!r}{hint}; expected {2 * size} hex characters")


def _number(value: Number, bits: int, signed: bool = False) -> int:
    """An integer that a field of so many bits can hold, given as number or decimal string."""
    if value is None:
        return 0
    try:
        number = int(value)
        if isinstance(value, float) and number != value:
            raise ValueError
    except (ValueError, OverflowError):
        raise _BadSpanError("invalid_value", f"{str(value)[:40]!r} is not an integer") from None
    if not (-(1 << bits) if signed else 0) <= number < (1 << bits):
        raise _BadSpanError("invalid_value", f"{str(number)[:40]} does not fit in {bits + signed} bits")
    return number


def _double(value: int | float | str) -> float:
    """A double given as number, or as text: protobuf's JSON writes NaN and infinities so."""
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise _BadSpanError("invalid_value", f"{str(value)[:40]!r} is not a number") from None


def _bytes(text: str) -> bytes:
    """Base64, in either alphabet, with or without padding."""
    try:
        plain = text.replace("-", "+").replace("_", "/")
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise _BadSpanError("invalid_value", "bytesValue is not base64") from None


def _enum(value: Number, kind: Any) -> int:
    """An enum given as number or name."""
    if isinstance(value, str) and not value.isdigit():
        if value not in kind.keys():  # noqa: SIM118 - an enum wrapper, not a dict
            raise _BadSpanError("invalid_value", f"{value[:40]!r} is no name of an enum; expected {kind.keys()}")
        return int(kind.Value(value))
    return _number(value, 31)


def dump_json(request: Any) -> dict[str, Any]:
    """The request as OTLP/JSON: hex ids, enums as numbers, 64-bit integers as strings. For export and replay."""
    document: dict[str, Any] = json_format.MessageToDict(request, use_integers_for_enums=True)
    for resources, scopes, items in (
        ("resourceSpans", "scopeSpans", "spans"),
        ("resourceLogs", "scopeLogs", "logRecords"),
    ):
        for resource in document.get(resources, ()):
            for scope in resource.get(scopes, ()):
                for item in scope.get(items, ()):
                    _hex_ids(item)
    return document


def _hex_ids(item: dict[str, Any]) -> None:
    for holder in (item, *item.get("links", ())):
        for field in ("traceId", "spanId", "parentSpanId"):
            if field in holder:
                holder[field] = base64.b64decode(holder[field]).hex()
