"""Undoing Content-Encoding with a bound on what comes out, kept while inflating."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import zstandard

from otelmon.vocabulary.errors import InputError, Problem

_ZSTD_WINDOW = 1 << 27
_ZSTD_STEP = 512  # bytes of input; a block of 128 KiB takes at least 4
_GZIP_WINDOW, _ZLIB_WINDOW, _RAW_WINDOW = 31, 15, -15


def inflate(body: bytes, encoding: str, limit: int) -> bytes:
    """The body without its encoding (gzip, deflate, zstd, identity).

    Never holds more than `limit` bytes of output and one block. Raises InputError
    (`too_large`, `invalid_compression`, `unsupported_encoding`).
    """
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return body
    decode = _DECODERS.get(name)
    if decode is None:
        expected = ", ".join(_DECODERS)
        raise InputError("unsupported_encoding", Problem("content-encoding", repr(encoding[:40]), expected))
    try:
        data = decode(body, limit + 1)
    except (zlib.error, zstandard.ZstdError, EOFError) as error:
        raise InputError("invalid_compression", Problem("body", f"broken {name}: {error}")) from None
    if len(data) > limit:
        wrong, expected = "decompresses to more than is taken", f"at most {limit} bytes"
        raise InputError("too_large", Problem("body", wrong, expected, "send fewer spans a request"))
    return data


def _zlib(body: bytes, most: int, window: int) -> bytes:
    """One or more compressed members, one behind the other."""
    out = bytearray()
    while body and len(out) < most:
        decoder = zlib.decompressobj(window)
        out += decoder.decompress(body, most - len(out))
        if not decoder.eof:
            if len(out) < most:
                raise EOFError("cut off")
            break
        body = decoder.unused_data
    return bytes(out)


def _gzip(body: bytes, most: int) -> bytes:
    return _zlib(body, most, _GZIP_WINDOW)


def _deflate(body: bytes, most: int) -> bytes:
    """zlib's format, as HTTP means by `deflate`, or the bare one that some senders write."""
    wrapped = len(body) > 1 and body[0] & 0x0F == 8 and int.from_bytes(body[:2], "big") % 31 == 0
    return _zlib(body, most, _ZLIB_WINDOW if wrapped else _RAW_WINDOW)


def _zstd(body: bytes, most: int) -> bytes:
    """One or more frames. Fed in small steps, because a step's output has no bound of its own."""
    out = bytearray()
    at = 0
    while at < len(body) and len(out) < most:
        decoder = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()
        while not decoder.eof and at < len(body) and len(out) < most:
            out += decoder.decompress(body[at : at + _ZSTD_STEP])
            at += _ZSTD_STEP
        if not decoder.eof and len(out) < most:
            raise EOFError("cut off")
        at = min(at, len(body)) - len(decoder.unused_data)
    return bytes(out)


_DECODERS: dict[str, Callable[[bytes, int], bytes]] = {"gzip": _gzip, "deflate": _deflate, "zstd": _zstd}
