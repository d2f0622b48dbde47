"""Packing loses no span, keeps traces whole in their partition, and keeps messages within their size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from otelmon.receive import otlp
from otelmon.receive.otlp import PROTOBUF, Packed
from otelmon.vocabulary.config import ReceiveConfig
from tests.receive.build import GROUPS, LAW, NOW, a_group, a_span, as_message, as_protobuf, many

LIMITS = ReceiveConfig()


def by_last_digit(trace_id: str) -> int:
    return int(trace_id[-1], 16) % 4


def contents(bodies: Iterable[bytes]) -> Counter[str]:
    """Digests of the spans of messages: they cover resource and scope."""
    return Counter(s.digest for body in bodies for s in otlp.spans(otlp.parse(body, PROTOBUF, LIMITS), NOW))


def check(request: Any, packed: list[Packed], target: int) -> None:
    assert contents(p.value for p in packed) == contents([request.SerializeToString()])
    for message in packed:
        spans = list(otlp.spans(otlp.parse(message.value, PROTOBUF, LIMITS), NOW))
        assert {by_last_digit(span.trace_id) for span in spans} == {message.partition}
        assert message.key in {span.trace_id for span in spans}
        assert message.spans == len(spans)
        assert len(message.value) <= target or len(spans) == 1


@LAW
@given(st.lists(GROUPS, min_size=1, max_size=4), st.integers(1, 2000))
def test_every_span_travels_once_with_its_resource_and_scope(groups: list[dict[str, Any]], target: int) -> None:
    request = as_message(groups)
    check(request, otlp.messages(request, by_last_digit, target), target)


def test_many_traces_share_few_messages() -> None:
    request = as_message(many(2000))
    size = request.ByteSize()
    packed = otlp.messages(request, by_last_digit, 100_000)
    check(request, packed, 100_000)
    assert len(packed) <= 4 + size // 100_000 + 4
    assert {p.partition for p in packed} == {0, 1, 2, 3}


def test_one_partition_and_small_is_forwarded_as_it_came() -> None:
    body = as_protobuf(many(10))
    request = otlp.parse(body, PROTOBUF, LIMITS)
    [packed] = otlp.messages(request, lambda _: 3, 100_000, body)
    assert packed.value is body
    assert (packed.partition, packed.spans) == (3, 10)
    [encoded] = otlp.messages(request, lambda _: 3, 100_000)
    assert contents([encoded.value]) == contents([body])


def test_one_partition_but_large_is_split() -> None:
    body = as_protobuf(many(100))
    packed = otlp.messages(otlp.parse(body, PROTOBUF, LIMITS), lambda _: 0, len(body) - 1, body)
    assert len(packed) == 2
    assert contents(p.value for p in packed) == contents([body])


def test_a_huge_span_goes_alone() -> None:
    huge = a_span(trace=b"t" * 16, attributes={"text": "x" * 5000})
    small = [a_span(trace=b"t" * 16, span=b"%08d" % n) for n in range(1, 5)]
    request = as_message([a_group(*small[:2], huge, *small[2:])])
    packed = otlp.messages(request, by_last_digit, 1000)
    check(request, packed, 1000)
    assert [p.spans for p in packed if len(p.value) > 1000] == [1]


def test_nothing_to_send_gives_no_message() -> None:
    assert otlp.messages(as_message([]), by_last_digit, 1000) == []
    assert otlp.messages(as_message([a_group()]), by_last_digit, 1000) == []


def test_a_partition_is_asked_for_once_a_trace() -> None:
    asked: list[str] = []

    def partition_of(trace_id: str) -> int:
        asked.append(trace_id)
        return 0

    otlp.messages(as_message(many(100, per_trace=10)), partition_of, 1000)
    assert len(asked) == len(set(asked)) == 10
    assert all(len(trace_id) == 32 for trace_id in asked)
