"""Reading a protobuf body field by field, for bodies that the parser refuses as a whole: one broken span must not
take its neighbours along, and text that is not UTF-8 is replaced, not lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.message import DecodeError

from otelmon.receive.shapes import TRACES, Shape
from otelmon.receive.tally import Tally
from otelmon.vocabulary.errors import InputError, Problem

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
CHILDREN = 2  # ResourceSpans.scope_spans and ScopeSpans.spans share this number, and so do those of logs
STRING, MESSAGE = 9, 11  # google.protobuf.FieldDescriptor.TYPE_*
MAX_LEVELS = 100


class WireError(ValueError):
    """The bytes are not protobuf."""


def varint(number: int) -> bytes:
    """Protobuf's base-128 encoding of a number that is not negative."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def framed(number: int, payload: bytes) -> bytes:
    """A length-delimited field."""
    return varint(number << 3 | LENGTH) + varint(len(payload)) + payload


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 64:
        if at >= len(data):
            raise WireError("cut off")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise WireError("a number is too long")


def fields(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """(field number, wire type, raw bytes of the value) of every field. Raises WireError."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        start = at
        if kind == LENGTH:
            size, start = _varint(data, at)
            at = start + size
        elif kind == VARINT:
            _, at = _varint(data, at)
        elif kind in (FIXED64, FIXED32):
            at += 8 if kind == FIXED64 else 4
        else:
            raise WireError(f"unknown wire type {kind}")
        if at > len(data):
            raise WireError("cut off")
        yield tag >> 3, kind, data[start:at]


def _raw(number: int, kind: int, value: bytes) -> bytes:
    return framed(number, value) if kind == LENGTH else varint(number << 3 | kind) + value


def repair_utf8(data: bytes, descriptor: Any, level: int = 0) -> tuple[bytes, int]:
    """The same message with text that is not UTF-8 replaced by U+FFFD, and in how many fields. Raises WireError."""
    if level > MAX_LEVELS:
        raise WireError("nested too deep")
    out, places = bytearray(), 0
    for number, kind, value in fields(data):
        field = descriptor.fields_by_number.get(number) if kind == LENGTH else None
        if field is not None and field.type == STRING:
            clean = value.decode("utf-8", "replace").encode()
            places, value = places + (clean != value), clean
        elif field is not None and field.type == MESSAGE:
            value, inner = repair_utf8(value, field.message_type, level + 1)
            places += inner
        out += _raw(number, kind, value)
    return bytes(out), places


def _split(data: bytes) -> tuple[bytes, list[bytes]]:
    """What a resource or scope group says of itself, and its children's bytes."""
    own, children = bytearray(), []
    for number, kind, value in fields(data):
        if number == CHILDREN and kind == LENGTH:
            children.append(value)
        else:
            own += _raw(number, kind, value)
    return bytes(own), children


def salvage(body: bytes, tally: Tally, shape: Shape = TRACES) -> Any:
    """What can be read of a body that the parser refused.

    Spans that stay unreadable are counted in `tally`. Raises InputError (`invalid_protobuf`) when
    the frame around the spans is broken: then nothing tells where a span begins.
    """
    request = shape.request()
    try:
        for r, (number, kind, value) in enumerate(fields(body)):
            if number == 1 and kind == LENGTH:
                _salvage_resource(request, value, r, tally, shape)
    except WireError as error:
        expected = f"an {shape.request.DESCRIPTOR.name} in protobuf"
        raise InputError("invalid_protobuf", Problem("body", str(error), expected)) from None
    return request


def _salvage_resource(request: Any, data: bytes, r: int, tally: Tally, shape: Shape) -> None:
    own, groups = _split(data)
    split = [_split(group) for group in groups]
    tally.expect(sum(len(spans) for _, spans in split))
    try:
        resource = getattr(_read(framed(1, own), tally, shape), shape.resources)[0]
        scopes = [shape.groups(_read(framed(1, framed(2, own)), tally, shape))[0][1] for own, _ in split]
    except DecodeError as error:
        count = sum(len(spans) for _, spans in split)
        tally.received += count
        tally.reject("invalid_resource", f"{shape.where(r)}: {error}", count)
        return
    target = getattr(request, shape.resources).add()
    target.CopyFrom(resource)
    for s, (scope, (_, spans)) in enumerate(zip(scopes, split, strict=True)):
        kept = getattr(target, shape.scopes).add()
        kept.CopyFrom(scope)
        for n, span in enumerate(spans):
            _salvage_item(getattr(kept, shape.items), span, shape.where(r, s, n), tally, shape)


def _salvage_item(target: Any, data: bytes, where: str, tally: Tally, shape: Shape) -> None:
    try:
        request = _read(framed(1, framed(2, framed(2, data))), tally, shape)
        target.append(shape.groups(request)[0][2][0])
    except DecodeError as error:
        tally.received += 1
        tally.reject("too_deep" if "MaxDepth" in str(error) else "invalid_span", f"{where}: {error}")


def _read(body: bytes, tally: Tally, shape: Shape) -> Any:
    """A request that holds one part only, at its own depth, so that what is kept can be read again downstream."""
    try:
        return shape.request.FromString(body)
    except DecodeError as error:
        try:
            repaired, places = repair_utf8(body, shape.request.DESCRIPTOR)
        except WireError:
            raise error from None
        if not places:
            raise
        message = shape.request.FromString(repaired)
        tally.repaired += places
        return message
