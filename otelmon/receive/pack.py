"""Splitting a request into messages for the spans topic: all spans of a trace in its partition, many traces a message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans

from otelmon.receive.wire import framed, varint

PartitionOf = Callable[[str], int]
_FRAME = 12  # tag and length around a resource or a scope, at most, twice


class Packed(msgspec.Struct, frozen=True):
    """One message: an ExportTraceServiceRequest in protobuf. `key` is a trace id in it (32 hex
    characters); every trace in it belongs to `partition`."""

    partition: int
    key: str
    value: bytes
    spans: int


class _Open:
    """A message being filled for one partition: pieces of the wire form, joined once."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.size = 0
        self.spans = 0
        self.resources: list[tuple[bytes, list[tuple[bytes, list[bytes]]]]] = []
        self._at: tuple[int, int] = (-1, -1)

    def overhead(self, at: tuple[int, int], resource: bytes, scope: bytes) -> int:
        """Bytes that a span of this resource and scope needs beside its own."""
        if at == self._at:
            return 0
        return len(scope) + _FRAME + (0 if at[0] == self._at[0] else len(resource) + _FRAME)

    def add(self, at: tuple[int, int], resource: bytes, scope: bytes, span: bytes, size: int) -> None:
        if at[0] != self._at[0]:
            self.resources.append((resource, []))
        if at != self._at:
            self.resources[-1][1].append((scope, []))
        self._at = at
        self.resources[-1][1][-1][1].append(span)
        self.size += size
        self.spans += 1

    def value(self) -> bytes:
        """Concatenated fields are a valid message: headers once, then the spans as they were serialised."""
        out = []
        for resource, scopes in self.resources:
            inner = [framed(2, b"".join([scope, *spans])) for scope, spans in scopes]
            out.append(framed(1, b"".join([resource, *inner])))
        return b"".join(out)


def messages(
    request: ExportTraceServiceRequest, partition_of: PartitionOf, target_bytes: int, encoded: bytes | None = None
) -> list[Packed]:
    """The messages of a checked request, none larger than `target_bytes` unless a single span is.

    `partition_of` maps a trace id (32 hex characters) to a partition. `encoded` is the wire form of
    `request` when the caller has it. Resource and scope of every span are kept.
    """
    partitions: dict[bytes, int] = {}
    count = 0
    for resource_spans in request.resource_spans:
        for scope_spans in resource_spans.scope_spans:
            count += len(scope_spans.spans)
            for trace_id in {span.trace_id for span in scope_spans.spans}:
                if trace_id not in partitions:
                    partitions[trace_id] = partition_of(trace_id.hex())
    if not count:
        return []
    if len(set(partitions.values())) == 1:
        value = request.SerializeToString() if encoded is None else encoded
        if len(value) <= target_bytes:
            trace_id, partition = next(iter(partitions.items()))
            return [Packed(partition, trace_id.hex(), value, count)]
    return _split(request, partitions, target_bytes)


def _split(request: ExportTraceServiceRequest, partitions: dict[bytes, int], target_bytes: int) -> list[Packed]:
    done: list[Packed] = []
    opened: dict[int, _Open] = {}

    def close(partition: int) -> None:
        message = opened.pop(partition)
        done.append(Packed(partition, message.key, message.value(), message.spans))

    for r, resource_spans in enumerate(request.resource_spans):
        resource = header(resource_spans)
        for s, scope_spans in enumerate(resource_spans.scope_spans):
            scope, at = header(scope_spans), (r, s)
            for span in scope_spans.spans:
                partition = partitions[span.trace_id]
                piece = _piece(span)
                message = opened.get(partition)
                if message and message.size + message.overhead(at, resource, scope) + len(piece) > target_bytes:
                    close(partition)
                    message = None
                if message is None:
                    message = opened[partition] = _Open(span.trace_id.hex())
                message.add(at, resource, scope, piece, message.overhead(at, resource, scope) + len(piece))
    for partition in sorted(opened):
        close(partition)
    return done


def _piece(span: Any) -> bytes:
    data: bytes = span.SerializeToString()
    return b"\x12" + varint(len(data)) + data


def header(message: Any) -> bytes:
    """The wire form of a ResourceSpans or ScopeSpans without what it holds."""
    own: Any = (
        ResourceSpans(resource=message.resource, schema_url=message.schema_url)
        if isinstance(message, ResourceSpans)
        else ScopeSpans(scope=message.scope, schema_url=message.schema_url)
    )
    encoded: bytes = own.SerializeToString()
    return encoded
