"""Splitting a request into messages for the spans topic: all items (spans, log records) of a trace in its partition,
many traces a message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from otelmon.receive.shapes import TRACES, Shape
from otelmon.receive.wire import framed, varint

PartitionOf = Callable[[str], int]
_FRAME = 12  # tag and length around a resource or a scope, at most, twice


class Packed(msgspec.Struct, frozen=True):
    """One message: an ExportTraceServiceRequest in protobuf, or an ExportLogsServiceRequest when `signal`
    says so. `key` is a trace id in it (32 hex characters); every trace in it belongs to `partition`;
    `spans` is the number of its spans or log records."""

    partition: int
    key: str
    value: bytes
    spans: int
    signal: str = "traces"


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
    request: Any,
    partition_of: PartitionOf,
    target_bytes: int,
    encoded: bytes | None = None,
    shape: Shape = TRACES,
) -> list[Packed]:
    """The messages of a checked request, none larger than `target_bytes` unless a single span is.

    `partition_of` maps a trace id (32 hex characters) to a partition. `encoded` is the wire form of
    `request` when the caller has it. Resource and scope of every span are kept.
    """
    partitions: dict[bytes, int] = {}
    count = 0
    for _, _, items in shape.groups(request):
        count += len(items)
        for trace_id in {item.trace_id for item in items}:
            if trace_id not in partitions:
                partitions[trace_id] = partition_of(trace_id.hex())
    if not count:
        return []
    if len(set(partitions.values())) == 1:
        value = request.SerializeToString() if encoded is None else encoded
        if len(value) <= target_bytes:
            trace_id, partition = next(iter(partitions.items()))
            return [Packed(partition, trace_id.hex(), value, count, shape.signal)]
    return _split(request, partitions, target_bytes, shape)


def _split(request: Any, partitions: dict[bytes, int], target_bytes: int, shape: Shape) -> list[Packed]:
    done: list[Packed] = []
    opened: dict[int, _Open] = {}

    def close(partition: int) -> None:
        message = opened.pop(partition)
        done.append(Packed(partition, message.key, message.value(), message.spans, shape.signal))

    for r, resource_group in enumerate(getattr(request, shape.resources)):
        resource = header(resource_group)
        for s, scope_group in enumerate(getattr(resource_group, shape.scopes)):
            scope, at = header(scope_group), (r, s)
            for span in getattr(scope_group, shape.items):
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
    """The wire form of a resource or scope group without what it holds."""
    what = "resource" if "resource" in message.DESCRIPTOR.fields_by_name else "scope"
    own: Any = type(message)(schema_url=message.schema_url, **{what: getattr(message, what)})
    encoded: bytes = own.SerializeToString()
    return encoded
