"""Stored messages of the spans topic as a stream of frames: 4 bytes of length, big-endian, then msgpack."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from otelmon.store.results import Payload

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Payload)
LENGTH = 4


def frames(payloads: Iterable[Payload]) -> Iterator[bytes]:
    """Each payload as a frame."""
    for payload in payloads:
        data = _encoder.encode(payload)
        yield len(data).to_bytes(LENGTH, "big") + data


def read_frames(chunks: Iterable[bytes]) -> Iterator[Payload]:
    """The payloads of a stream, however it was cut. Raises msgspec.DecodeError when it is something else,
    or ends inside a frame."""
    held = bytearray()
    for chunk in chunks:
        held += chunk
        start = 0
        while len(held) - start >= LENGTH:
            end = start + LENGTH + int.from_bytes(held[start : start + LENGTH], "big")
            if end > len(held):
                break
            yield _decoder.decode(bytes(held[start + LENGTH : end]))
            start = end
        del held[:start]
    if held:
        raise msgspec.DecodeError("the stream ends inside a frame")
