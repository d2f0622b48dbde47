"""Keys lie where Kafka's own clients put them."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner import murmur2 as kafka_murmur2

from otelmon.bus.murmur2 import key_bytes, key_text, murmur2, partition_for


@pytest.mark.parametrize(
    ("data", "wanted"),
    [  # from Kafka's own unit tests (org.apache.kafka.common.utils.UtilsTest)
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_hash_is_that_of_the_java_client(data: bytes, wanted: int) -> None:
    assert murmur2(data) == wanted & 0xFFFFFFFF


@given(st.binary(max_size=80))
def test_the_hash_is_that_of_kafka_python(data: bytes) -> None:
    assert murmur2(data) == kafka_murmur2(data)


@given(st.text(st.characters(), max_size=20))
def test_every_text_can_be_a_key(key: str) -> None:
    assert key_text(key_bytes(key)) == key
    assert 0 <= partition_for(key, 8) < 8


def test_a_lone_surrogate_is_a_key_too() -> None:
    assert key_text(key_bytes("a\ud800")) == "a\ud800"
    assert 0 <= partition_for("a\ud800", 8) < 8


def test_foreign_bytes_are_shown_not_refused() -> None:
    assert key_text(b"\xff\xfe") == "\ufffd\ufffd"


def test_keys_spread_over_the_partitions() -> None:
    counts = Counter(partition_for(f"{number * 2654435761 % 2**32:032x}", 8) for number in range(8000))
    assert len(counts) == 8
    assert max(counts.values()) < 1200
