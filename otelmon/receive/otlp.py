"""OTLP trace requests: decode, check span by span, split for the bus, and read as spans."""

from __future__ import annotations

from typing import Any

import msgspec
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from otelmon.receive.otlp_json import PARSER_LEVELS, dump_json, parse_json
from otelmon.receive.pack import Packed, header, messages
from otelmon.receive.spans import spans
from otelmon.receive.tally import Tally
from otelmon.receive.wire import salvage
from otelmon.vocabulary.config import ReceiveConfig
from otelmon.vocabulary.errors import InputError, Problem

__all__ = ["JSON", "PROTOBUF", "Packed", "Parsed", "check_request", "dump_json", "messages", "parse", "read", "spans"]

PROTOBUF = "application/x-protobuf"
JSON = "application/json"
PROTOBUF_DEPTH = 30
"""From here on the protobuf parser's own limit of 100 message levels holds: 31 maps or 47 lists in each other."""
SPAN_BYTES, MIN_SPANS = 256, 1000
"""A request may hold a span for every 256 bytes of receive.max_request_bytes, and a thousand in any case."""
_MAX_TIME = 1 << 63  # nanoseconds beyond the year 2262 fit in no signed 64-bit column
_NO_TRACE, _NO_SPAN = bytes(16), bytes(8)


class Parsed(msgspec.Struct, frozen=True):
    """A request with the spans that may be kept. `received` counts all spans that came, `rejected`
    the refused ones by reason, `repaired` the places where text was not Unicode; `message` tells
    the sender. `encoded` is the body when it is the wire form of `request`."""

    request: Any
    received: int
    rejected: dict[str, int]
    repaired: int
    message: str
    encoded: bytes | None


def read(body: bytes, content_type: str, limits: ReceiveConfig) -> Parsed:
    """Decode and check one request. Never loses a good span for a bad neighbour.

    Raises InputError with a reason of tally.REQUEST_REASONS when nothing of it can be read.
    """
    tally = Tally(max(MIN_SPANS, limits.max_request_bytes // SPAN_BYTES))
    request, encoded = _decode(body, content_type, limits, tally)
    kept = _check(request, limits, tally, 0 if encoded is None else len(encoded))
    if kept != tally.received:
        encoded = None
    return Parsed(request, tally.received, tally.rejected, tally.repaired, tally.message, encoded)


def parse(body: bytes, content_type: str, limits: ReceiveConfig) -> ExportTraceServiceRequest:
    """The request alone, for callers that count nothing. Raises like `read`."""
    request: ExportTraceServiceRequest = read(body, content_type, limits).request
    return request


def check_request(
    request: ExportTraceServiceRequest, limits: ReceiveConfig
) -> tuple[ExportTraceServiceRequest, dict[str, int], str]:
    """(the request with bad spans taken out in place, {reason: count}, message for the sender)."""
    tally = Tally()
    _check(request, limits, tally, 0)
    return request, tally.rejected, tally.message


def _decode(
    body: bytes, content_type: str, limits: ReceiveConfig, tally: Tally
) -> tuple[ExportTraceServiceRequest, bytes | None]:
    if len(body) > limits.max_request_bytes:
        wrong = f"{len(body)} bytes"
        raise InputError("too_large", Problem("body", wrong, f"at most {limits.max_request_bytes} bytes", "send less"))
    kind = content_type.split(";", 1)[0].strip().lower()
    if kind == JSON:
        return parse_json(body, _max_depth(limits) or PARSER_LEVELS, tally), None
    if kind != PROTOBUF:
        raise InputError("unsupported_type", Problem("content-type", repr(content_type[:80]), f"{PROTOBUF} or {JSON}"))
    try:
        return ExportTraceServiceRequest.FromString(body), body
    except DecodeError:
        return salvage(body, tally), None


def _max_depth(limits: ReceiveConfig) -> int:
    """The limit to look at, 0 when the parser sees to it."""
    return limits.max_depth if limits.max_depth < PROTOBUF_DEPTH else 0


def _check(request: ExportTraceServiceRequest, limits: ReceiveConfig, tally: Tally, size: int) -> int:
    """Take bad spans out of the request; returns how many are left. `size` is the wire size, 0 when unknown."""
    small = 0 < size <= limits.message_bytes // 2
    fits = 0 < size <= limits.max_span_bytes
    max_depth = _max_depth(limits)
    kept = 0
    tally.expect(sum(len(scope.spans) for resource in request.resource_spans for scope in resource.scope_spans))
    for r, resource_spans in enumerate(request.resource_spans):
        for s, scope_spans in enumerate(resource_spans.scope_spans):
            where = f"resourceSpans[{r}].scopeSpans[{s}]"
            found = scope_spans.spans
            tally.received += len(found)
            too_large = None if small else _too_large(resource_spans, scope_spans, limits)
            if too_large:
                tally.reject("resource_too_large", f"{where}: {too_large}", len(found))
                del found[:]
                continue
            fit = fits or scope_spans.ByteSize() <= limits.max_span_bytes
            bad = _bad_spans(found, where, tally, 0 if fit else limits.max_span_bytes, max_depth)
            if bad:
                good = [span for n, span in enumerate(found) if n not in bad]
                del found[:]
                found.extend(good)
            kept += len(found)
    return kept


def _too_large(resource_spans: Any, scope_spans: Any, limits: ReceiveConfig) -> str:
    """A resource goes into every message its spans go into: one that fills half a message would multiply."""
    size = len(header(resource_spans)) + len(header(scope_spans))
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


def _shown(identifier: bytes) -> str:
    return identifier[:20].hex() or "missing"


def _depth(span: Any, limit: int) -> int:
    """Deepest nesting of the span's attribute values, looked at no further than one beyond the limit."""
    level = [pair.value for pair in span.attributes]
    level += [pair.value for event in span.events for pair in event.attributes]
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
