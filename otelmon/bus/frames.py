"""Records as bytes of a segment file: length, checksum and offset before each, so that any damage is seen.

Layout, little-endian: magic (4) | body length (4) | crc32c of the body (4) | body, where the body is
offset (8) | time in ms (8) | key length (4) | headers length (4) | key | headers (msgpack) | value.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
from crc32c import crc32c

from otelmon.bus.murmur2 import key_bytes, key_text
from otelmon.bus.protocol import Delivered, Headers, Outgoing

MAGIC = b"\xf5oS\x01"
_HEAD = struct.Struct("<4sII")
_BODY = struct.Struct("<qqII")
HEAD, BODY = _HEAD.size, _BODY.size
_MS = 1_000_000

_headers_out = msgspec.msgpack.Encoder()
_headers_in = msgspec.msgpack.Decoder(Headers)


class Place(NamedTuple):
    """Where one frame lies in its file: position and size in bytes, and its offset."""

    position: int
    size: int
    offset: int


def encode(messages: Sequence[Outgoing], offset: int) -> list[bytes]:
    """One frame per message, with consecutive offsets from `offset`."""
    frames = []
    for message in messages:
        key = key_bytes(message.key)
        headers = _headers_out.encode(message.headers) if message.headers else b""
        body = _BODY.pack(offset, message.time_unix_nano // _MS, len(key), len(headers)) + key + headers
        crc = crc32c(message.value, crc32c(body))
        frames.append(_HEAD.pack(MAGIC, len(body) + len(message.value), crc) + body + message.value)
        offset += 1
    return frames


def size_at(data: bytes, position: int) -> int | None:
    """Size in bytes of the frame whose head is here, unchecked; None when this is no head."""
    if len(data) - position < HEAD:
        return None
    magic, length, _ = _HEAD.unpack_from(data, position)
    return HEAD + length if magic == MAGIC and length >= BODY else None


def place_at(data: bytes, position: int) -> Place | None:
    """The whole, undamaged frame that starts here, or None."""
    size = size_at(data, position)
    if size is None or position + size > len(data):
        return None
    (crc,) = struct.unpack_from("<I", data, position + 8)
    with memoryview(data) as view:
        if crc32c(view[position + HEAD : position + size]) != crc:
            return None
    (offset,) = struct.unpack_from("<q", data, position + HEAD)
    return Place(position, size, offset)


def next_place(data: bytes, position: int, least: int) -> Place | None:
    """The first undamaged frame at or after `position` whose offset is at least `least`."""
    while (position := data.find(MAGIC, position)) >= 0:
        place = place_at(data, position)
        if place is not None and place.offset >= least:
            return place
        position += 1
    return None


def places(data: bytes, least: int) -> Iterator[Place]:
    """Every undamaged frame in order; damage in between shows as a gap in the positions."""
    at = 0
    while at < len(data):
        place = place_at(data, at) or next_place(data, at + 1, least)
        if place is None:
            return
        yield place
        least = place.offset + 1
        at = place.position + place.size


def read(data: bytes, place: Place, topic: str, partition: int) -> Delivered:
    """The record of a checked frame."""
    start = place.position + HEAD
    offset, time_ms, key_length, headers_length = _BODY.unpack_from(data, start)
    key_at = start + BODY
    headers_at = key_at + key_length
    value_at = headers_at + headers_length
    return Delivered(
        topic,
        partition,
        offset,
        key_text(data[key_at:headers_at]),
        data[value_at : place.position + place.size],
        time_ms * _MS,
        _headers_in.decode(data[headers_at:value_at]) if headers_length else (),
    )
