"""Where a key belongs: Kafka's murmur2, so that both buses and every other producer agree."""

from __future__ import annotations

import struct
from functools import lru_cache

_SEED, _M, _MASK = 0x9747B28C, 0x5BD1E995, 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The 32-bit hash (unsigned) that Kafka's Java client computes over the bytes of a key."""
    length = len(data)
    whole = length & ~3
    h = _SEED ^ length
    for k in struct.unpack_from(f"<{whole >> 2}I", data):
        k = k * _M & _MASK
        h = (h * _M & _MASK) ^ ((k ^ k >> 24) * _M & _MASK)
    if length & 3:
        h = (h ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


def key_bytes(key: str) -> bytes:
    """utf-8; a lone surrogate, which a hostile JSON string can hold, is kept rather than refused."""
    return key.encode("utf-8", "surrogatepass")


def key_text(data: bytes) -> str:
    """The key as text. Bytes of another producer that are no utf-8 are shown with replacement signs."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")


@lru_cache(maxsize=65536)
def _positive(key: str) -> int:
    return murmur2(key_bytes(key)) & 0x7FFFFFFF


def partition_for(key: str, partitions: int) -> int:
    """The partition of a key among `partitions`. An empty key hashes like any other."""
    return _positive(key) % partitions if partitions > 1 else 0
