"""Compressed bodies come out whole, or are refused before they grow."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Callable

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from otelmon.receive.inflate import inflate
from otelmon.vocabulary.errors import InputError
from tests.receive.build import LAW

Pack = Callable[[bytes], bytes]


def bare_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


PACKERS: dict[str, Pack] = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstd}
EVERY: list[tuple[str, Pack]] = [*PACKERS.items(), ("deflate", bare_deflate), ("GZIP ", gzip.compress)]


@pytest.mark.parametrize(("encoding", "pack"), EVERY)
@LAW
@given(data=st.binary(max_size=3000) | st.integers(1, 5).map(lambda n: b"x" * 100_000 * n))
def test_what_was_packed_comes_out(encoding: str, pack: Pack, data: bytes) -> None:
    packed = pack(data)
    assert inflate(packed, encoding, len(data)) == data
    if data:
        with pytest.raises(InputError) as caught:
            inflate(packed, encoding, len(data) - 1)
        assert caught.value.reason == "too_large"


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_parts_one_behind_the_other_are_one_body(encoding: str) -> None:
    pack = PACKERS[encoding]
    assert inflate(pack(b"one ") + pack(b"") + pack(b"two" * 1000), encoding, 10_000) == b"one " + b"two" * 1000


@pytest.mark.parametrize(("encoding", "pack"), EVERY)
def test_a_body_that_is_cut_is_refused(encoding: str, pack: Pack) -> None:
    packed = pack(bytes(range(256)) * 20)
    for size in range(1, len(packed)):
        with pytest.raises(InputError) as caught:
            inflate(packed[:size], encoding, 10_000)
        assert caught.value.reason == "invalid_compression"


@pytest.mark.parametrize("encoding", list(PACKERS))
@LAW
@given(body=st.binary(min_size=1, max_size=50))
def test_noise_is_refused(encoding: str, body: bytes) -> None:
    try:
        out = inflate(body, encoding, 100)
    except InputError as error:
        reason = error.reason
    else:
        assert len(out) <= 100
        return
    assert reason in ("invalid_compression", "too_large")


def test_other_encodings_are_refused_by_name() -> None:
    with pytest.raises(InputError, match="'br'; gzip, deflate, zstd") as caught:
        inflate(b"", "br", 10)
    assert caught.value.reason == "unsupported_encoding"
    assert inflate(b"plain", "", 10) == inflate(b"plain", "identity", 10) == b"plain"


@pytest.mark.parametrize("encoding", list(PACKERS))
def test_a_bomb_never_takes_more_memory_than_the_limit_allows(encoding: str) -> None:
    packer = {"gzip": zlib.compressobj(wbits=31), "deflate": zlib.compressobj()}.get(encoding)
    zeros = bytes(1 << 20)
    if packer is None:
        stream = zstandard.ZstdCompressor().compressobj()
        bomb = b"".join(stream.compress(zeros) for _ in range(1024)) + stream.flush()
    else:
        bomb = b"".join(packer.compress(zeros) for _ in range(1024)) + packer.flush()
    del zeros
    limit = 4 << 20
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as caught:
            inflate(bomb, encoding, limit)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert caught.value.reason == "too_large"
    assert peak < 64 << 20  # of 1 GiB
