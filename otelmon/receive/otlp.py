"""OTLP requests of traces and of logs: decode, check item by item, split for the bus, and read in our words."""

from __future__ import annotations

from typing import Any

import msgspec
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from otelmon.receive.otlp_json import PARSER_LEVELS, dump_json, parse_json
from otelmon.receive.pack import Packed, header, messages
from otelmon.receive.shapes import LOGS, TRACES, Shape
from otelmon.receive.spans import log_records, spans
from otelmon.receive.tally import Tally
from otelmon.receive.wire import salvage
from otelmon.vocabulary.config import ReceiveConfig
from otelmon.vocabulary.errors import InputError, Problem

__all__ = [
    "JSON", "LOGS", "PROTOBUF", "TRACES", "Packed", "Parsed", "Shape", "check_request", "dump_json", "log_records",
    "messages", "parse", "read", "spans",
]  # fmt: skip

PROTOBUF = "application/x-protobuf"
JSON = "application/json"
PROTOBUF_DEPTH = 30
"""From here on the protobuf parser's own limit of 100 message levels holds: 31 maps or 47 lists in each other."""
SPAN_BYTES, MIN_SPANS = 256, 1000
"""A request may hold a span for every 256 bytes of receive.max_request_bytes, and a thousand in any case."""
_MAX_TIME = 1 << 63  # nanoseconds beyond the year 2262 fit in no signed 64-bit column
_NO_TRACE, _NO_SPAN = bytes(16), bytes(8)


class Parsed(msgspec.Struct, frozen=True):
    """A request with the items (spans, log records) that may be kept. `received` counts all that came, `rejected`
    the refused ones by reason, `filtered` those left out by reason, `repaired` the places where text was not Unicode; `message` tells
    the sender. `encoded` is the body when it is the wire form of `request`."""

    request: Any
    received: int
    rejected: dict[str, int]
    repaired: int
    message: str
    encoded: bytes | None
    filtered: dict[str, int] = {}


def read(body: bytes, content_type: str, limits: ReceiveConfig, shape: Shape = TRACES) -> Parsed:
    """Decode and check one request. Never loses a good item for a bad neighbour.

    Raises InputError with a reason of tally.REQUEST_REASONS when nothing of it can be read.
    """
    tally = Tally(max(MIN_SPANS, limits.max_request_bytes // SPAN_BYTES), shape.noun)
    request, encoded = _decode(body, content_type, limits, tally, shape)
    kept = _check(request, limits, tally, 0 if encoded is None else len(encoded), shape)
    if kept != tally.received:
        encoded = None
    return Parsed(request, tally.received, tally.rejected, tally.repaired, tally.message, encoded, tally.filtered)


def parse(body: bytes, content_type: str, limits: ReceiveConfig) -> ExportTraceServiceRequest:
    """The request alone, for callers that count nothing. Raises like `read`."""
    request: ExportTraceServiceRequest = read(body, content_type, limits).request
    return request


def check_request(
    request: ExportTraceServiceRequest, limits: ReceiveConfig
) -> tuple[ExportTraceServiceRequest, dict[str, int], str]:
    """(the request with bad spans taken out in place, {reason: count}, message for the sender)."""
    tally = Tally()
    _check(request, limits, tally, 0, TRACES)
    return request, tally.rejected, tally.message


def _decode(
    body: bytes, content_type: str, limits: ReceiveConfig, tally: Tally, shape: Shape
) -> tuple[Any, bytes | None]:
    if len(body) > limits.max_request_bytes:
        wrong = f"{len(body)} bytes"
        raise InputError("too_large", Problem("body", wrong, f"at most {limits.max_request_bytes} bytes", "send less"))
    kind = content_type.split(";", 1)[0].strip().lower()
    if kind == JSON:
        return parse_json(body, _max_depth(limits) or PARSER_LEVELS, tally, shape), None
    if kind != PROTOBUF:
        raise InputError("unsupported_type", Problem("content-type", repr(content_type[:80]), f"{PROTOBUF} or {JSON}"))
    try:
        return shape.request.FromString(body), body
    except DecodeError:
        return salvage(body, tally, shape), None


def _max_depth(limits: ReceiveConfig) -> int:
    """The limit to look at, 0 when the parser sees to it."""
    return limits.max_depth if limits.max_depth < PROTOBUF_DEPTH else 0


def _check(request: Any, limits: ReceiveConfig, tally: Tally, size: int, shape: Shape) -> int:
    """Take bad items out of the request; returns how many are left. `size` is the wire size, 0 when unknown."""
    small = 0 < size <= limits.message_bytes // 2
    fits = 0 < size <= limits.max_span_bytes
    max_depth = _max_depth(limits)
    kept = 0
    tally.expect(sum(len(items) for _, _, items in shape.groups(request)))
    bad_items = _bad_spans if shape is TRACES else _bad_records
    for r, resource in enumerate(getattr(request, shape.resources)):
        for s, scope in enumerate(getattr(resource, shape.scopes)):
            where = shape.where(r, s)
            found = getattr(scope, shape.items)
            tally.received += len(found)
            too_large = None if small else _too_large(resource, scope, limits)
            if too_large:
                tally.reject("resource_too_large", f"{where}: {too_large}", len(found))
                del found[:]
                continue
            fit = fits or scope.ByteSize() <= limits.max_span_bytes
            bad = bad_items(found, where, tally, 0 if fit else limits.max_span_bytes, max_depth)
            if bad:
                good = [span for n, span in enumerate(found) if n not in bad]
                del found[:]
                found.extend(good)
            kept += len(found)
    return kept


def _too_large(resource: Any, scope: Any, limits: ReceiveConfig) -> str:
    """A resource goes into every message its items go into: one that fills half a message would multiply."""
    size = len(header(resource)) + len(header(scope))
    limit = limits.message_bytes // 2
    return f"resource and scope take {size} bytes, at most {limit} are kept" if size > limit else ""


def _bad_spans(found: Any, where: str, tally: Tally, max_bytes: int, max_depth: int) -> set[int]:
    """Positions of the spans that can not be kept. A limit of 0 is not looked at."""
    bad = set()
    for n, span in enumerate(found):
        trace_id, span_id, parent = span.trace_id, span.span_id, span.parent_span_id
        if len(trace_id) != 16 or trace_id == _NO_TRACE:
            reason, what = "invalid_trace_id", f"trace id {_shown(trace_id)}; expected 16 bytes, not all zero"
        elif len(span_id) != 8 or span_id == _NO_SPAN:
            reason, what = "invalid_span_id", f"span id {_shown(span_id)}; expected 8 bytes, not all zero"
        elif parent and len(parent) != 8:
            reason, what = "invalid_parent_span_id", f"parent span id {_shown(parent)}; expected 8 bytes or none"
        elif span.start_time_unix_nano >= _MAX_TIME or span.end_time_unix_nano >= _MAX_TIME:
            reason, what = "invalid_time", "a time beyond the year 2262; expected nanoseconds since 1970"
        elif max_bytes and span.ByteSize() > max_bytes:
            reason, what = "span_too_large", f"{span.ByteSize()} bytes, at most {max_bytes} are kept"
        elif max_depth and _depth(span, max_depth) > max_depth:
            reason, what = "too_deep", f"an attribute value is nested deeper than {max_depth} levels"
        else:
            continue
        bad.add(n)
        tally.reject(reason, f"{where}.spans[{n}]: {what}")
    return bad


def _bad_records(found: Any, where: str, tally: Tally, max_bytes: int, max_depth: int) -> set[int]:
    """Positions of the log records that can not be kept, or that name no span."""
    bad = set()
    for n, record in enumerate(found):
        trace_id, span_id = record.trace_id, record.span_id
        reason = ""
        if trace_id in (b"", _NO_TRACE) or span_id in (b"", _NO_SPAN):
            tally.leave_out("no_trace_context")
        elif len(trace_id) != 16:
            reason, what = "invalid_trace_id", f"trace id {_shown(trace_id)}; expected 16 bytes or none"
        elif len(span_id) != 8:
            reason, what = "invalid_span_id", f"span id {_shown(span_id)}; expected 8 bytes or none"
        elif record.time_unix_nano >= _MAX_TIME or record.observed_time_unix_nano >= _MAX_TIME:
            reason, what = "invalid_time", "a time beyond the year 2262; expected nanoseconds since 1970"
        elif max_bytes and record.ByteSize() > max_bytes:
            reason, what = "span_too_large", f"{record.ByteSize()} bytes, at most {max_bytes} are kept"
        elif max_depth and _depth(record, max_depth) > max_depth:
            reason, what = "too_deep", f"a value is nested deeper than {max_depth} levels"
        else:
            continue
        bad.add(n)
        if reason:
            tally.reject(reason, f"{where}.logRecords[{n}]: {what}")
    return bad


def _shown(identifier: bytes) -> str:
    return identifier[:20].hex() or "missing"


def _depth(item: Any, limit: int) -> int:
    """Deepest nesting of the values of a span or log record, looked at no further than one beyond the limit."""
    level = [pair.value for pair in item.attributes]
    if hasattr(item, "body"):
        level.append(item.body)
    else:
        level += [pair.value for event in item.events for pair in event.attributes]
    depth = 0
    while depth <= limit:
        level = [v for v in level if v.WhichOneof("value") in ("array_value", "kvlist_value")]
        if not level:
            break
        depth += 1
        level = [inner for v in level for inner in _inside(v)]
    return depth


def _inside(value: Any) -> list[Any]:
    if value.WhichOneof("value") == "array_value":
        return list(value.array_value.values)
    return [pair.value for pair in value.kvlist_value.values]
