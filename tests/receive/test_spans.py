"""The same span is the same Span with the same digest, however it came."""

from __future__ import annotations

import math
import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from otelmon.receive import otlp
from otelmon.receive.otlp import JSON, PROTOBUF
from otelmon.vocabulary.config import ReceiveConfig
from otelmon.vocabulary.span import Span
from tests.receive.build import GROUPS, LAW, NOW, a_group, a_span, as_json, as_message, as_protobuf

LIMITS = ReceiveConfig()


def read_spans(body: bytes, content_type: str) -> list[Span]:
    parsed = otlp.read(body, content_type, LIMITS)
    assert not parsed.rejected, parsed.message
    return list(otlp.spans(parsed.request, NOW))


def one(**changes: Any) -> Span:
    [span] = otlp.spans(as_message([a_group(a_span(**changes))]), NOW)
    return span


@LAW
@given(st.lists(GROUPS, min_size=1, max_size=3), st.integers(0, 2**32))
def test_json_and_protobuf_give_equal_spans(groups: list[dict[str, Any]], seed: int) -> None:
    assert read_spans(as_json(groups, seed), JSON) == read_spans(as_protobuf(groups), PROTOBUF)


@LAW
@given(GROUPS, st.integers(0, 2**32))
def test_the_digest_knows_no_order_batch_or_time_of_receipt(group: dict[str, Any], seed: int) -> None:
    rng = random.Random(seed)
    together = list(otlp.spans(as_message([group]), NOW))
    alone: list[Span] = []
    for span in group["spans"]:
        shuffled = list(span["attributes"].items())
        rng.shuffle(shuffled)
        body = as_message([group | {"spans": [span | {"attributes": dict(shuffled)}]}])
        alone += otlp.spans(body, NOW + 1)
    assert [span.digest for span in alone] == [span.digest for span in together]


def test_the_digest_tells_any_other_content_apart() -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"trace": b"2" * 16},
        {"span": b"2" * 8},
        {"parent": b"2" * 8},
        {"name": "other"},
        {"kind": 2},
        {"start": NOW - 1},
        {"end": NOW + 6},
        {"code": 2},
        {"status": "failed"},
        {"attributes": {"a": "1"}},
        {"attributes": {"a": 1.0}},
        {"attributes": {"a": True}},
        {"attributes": {"a": None}},
        {"attributes": {"a": b"1"}},
        {"attributes": {"a": [1]}},
        {"attributes": {"a": {"1": 1}}},
        {"attributes": {}},
        {"events": [{"name": "e", "time": NOW, "attributes": {}}]},
        {"events": [{"name": "e", "time": NOW, "attributes": {"x": 1}}]},
        {"dropped": 1},
    ]
    digests = {one(**change).digest for change in changes}
    others: list[dict[str, Any]] = [{"resource": {}}, {"scope": "s"}, {"schema": "s"}]
    groups = [a_group(a_span(), **other) for other in others]
    digests |= {span.digest for group in groups for span in otlp.spans(as_message([group]), NOW)}
    assert len(digests) == len(changes) + len(groups)
    assert all(len(digest) == 32 for digest in digests)


def test_every_kind_of_value_is_decoded() -> None:
    value = {"s": "", "b": False, "i": -(2**63), "d": 0.0, "x": b"\x00", "n": None, "l": [None, [1, "a"], {}], "m": {}}
    assert one(attributes={"all": value, **value}).attributes == {"all": value, **value}


def test_a_value_that_is_absent_is_the_empty_value() -> None:
    request = as_message([a_group(a_span(attributes={"a": None}))])
    request.resource_spans[0].scope_spans[0].spans[0].attributes[0].ClearField("value")
    [span] = otlp.spans(request, NOW)
    assert span == one(attributes={"a": None})


def test_an_index_into_another_signals_texts_is_the_empty_value() -> None:
    request = as_message([a_group(a_span(attributes={"a": 1}))])
    request.resource_spans[0].scope_spans[0].spans[0].attributes[0].value.string_value_strindex = 7
    [span] = otlp.spans(request, NOW)
    assert span == one(attributes={"a": None})


def test_not_a_number_is_kept_and_its_digest_is_stable() -> None:
    span = one(attributes={"a": math.nan, "b": math.inf})
    assert math.isnan(span.attributes["a"])
    assert span.digest == one(attributes={"b": math.inf, "a": math.nan}).digest


def test_a_span_that_ends_before_it_starts_has_no_negative_duration() -> None:
    span = one(start=NOW, end=NOW - 1)
    assert (span.start_time_unix_nano, span.end_time_unix_nano) == (NOW, NOW)
    assert one(start=NOW, end=0).end_time_unix_nano == NOW


def test_a_parent_of_zeros_is_no_parent() -> None:
    assert one(parent=bytes(8)) == one(parent=b"")
    assert one(parent=b"\x01" * 8).parent_span_id == "01" * 8


def test_of_a_key_given_twice_the_last_value_counts() -> None:
    request = as_message([a_group(a_span(attributes={"a": 1}))])
    request.resource_spans[0].scope_spans[0].spans[0].attributes.add(key="a").value.int_value = 2
    [span] = otlp.spans(request, NOW)
    assert span == one(attributes={"a": 2})


def test_a_resource_is_decoded_once_and_shared() -> None:
    first, second = otlp.spans(as_message([a_group(a_span(), a_span(span=b"2" * 8))]), NOW)
    assert first.resource is second.resource
    assert first.resource == {"service.name": "agent"}
    assert first.scope.name == "tests"
    assert first.received_unix_nano == NOW
