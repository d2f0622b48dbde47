"""Requests are decoded and checked span by span: whatever is broken costs no good neighbour."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otelmon.receive import otlp
from otelmon.receive.otlp import JSON, PROTOBUF, Parsed
from otelmon.receive.tally import REQUEST_REASONS, SPAN_REASONS
from otelmon.receive.wire import framed
from otelmon.vocabulary.config import ReceiveConfig
from otelmon.vocabulary.errors import InputError
from tests.receive.build import LAW, NOW, SPAN, TRACE, a_group, a_span, as_json, as_message, as_protobuf, many

LIMITS = ReceiveConfig()
GOOD = a_span(name="good", span=b"goodgood")


def names(parsed: Parsed) -> list[str]:
    return [span.name for span in otlp.spans(parsed.request, NOW)]


def read(body: bytes, content_type: str = PROTOBUF, **limits: int) -> Parsed:
    parsed = otlp.read(body, content_type, ReceiveConfig(**limits))  # type: ignore[arg-type]
    assert parsed.received == len(names(parsed)) + sum(parsed.rejected.values())
    assert set(parsed.rejected) <= set(SPAN_REASONS)
    return parsed


def refused(body: bytes, content_type: str, **limits: int) -> InputError:
    with pytest.raises(InputError) as caught:
        otlp.read(body, content_type, ReceiveConfig(**limits))  # type: ignore[arg-type]
    assert caught.value.reason in REQUEST_REASONS
    assert caught.value.problems
    return caught.value


def nested(levels: int, kind: Callable[[Any], Any]) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = kind(value)
    return value


BROKEN_IN_BOTH: list[tuple[dict[str, Any], str]] = [
    ({"trace": bytes(16)}, "invalid_trace_id"),
    ({"trace": b""}, "invalid_trace_id"),
    ({"trace": b"7" * 15}, "invalid_trace_id"),
    ({"span": bytes(8)}, "invalid_span_id"),
    ({"span": b""}, "invalid_span_id"),
    ({"span": b"7" * 7}, "invalid_span_id"),
    ({"parent": b"7" * 9}, "invalid_parent_span_id"),
    ({"start": 2**63}, "invalid_time"),
    ({"end": 2**64 - 1}, "invalid_time"),
    ({"attributes": {"a": "x" * 2000}}, "span_too_large"),
    ({"attributes": {"a": nested(32, lambda v: {"k": v})}}, "too_deep"),
    ({"attributes": {"a": nested(48, lambda v: [v])}}, "too_deep"),
    ({"events": [{"name": "e", "time": 1, "attributes": {"a": nested(32, lambda v: {"k": v})}}]}, "too_deep"),
]


@pytest.mark.parametrize(("content_type", "encode"), [(PROTOBUF, as_protobuf), (JSON, as_json)])
@pytest.mark.parametrize(("change", "reason"), BROKEN_IN_BOTH)
def test_a_bad_span_is_refused_with_a_reason_and_its_neighbours_kept(
    change: dict[str, Any], reason: str, content_type: str, encode: Callable[[list[dict[str, Any]]], bytes]
) -> None:
    last = a_span(name="last", span=b"lastlast")
    parsed = read(encode([a_group(GOOD, a_span(**change), last)]), content_type, max_span_bytes=1000)
    assert names(parsed) == ["good", "last"]
    assert parsed.rejected == {reason: 1}
    assert parsed.encoded is None
    assert "1 of 3 spans refused" in parsed.message
    assert f"{reason} 1 (resourceSpans[0].scopeSpans[0].spans[1]: " in parsed.message


EMPTY: list[Any] = [[], {}, {"k": None}, "x"]


@pytest.mark.parametrize("inner", EMPTY)
@pytest.mark.parametrize("levels", range(29, 50))
@pytest.mark.parametrize("kind", [lambda v: {"k": v}, lambda v: [v]])
def test_both_encodings_keep_the_same_depth(kind: Callable[[Any], Any], levels: int, inner: Any) -> None:
    value = inner
    for _ in range(levels):
        value = kind(value)
    event = {"name": "e", "time": 1, "attributes": {"a": value}}
    for group in (a_group(a_span(attributes={"a": value})), a_group(a_span(events=[event]))):
        from_json, from_protobuf = read(as_json([group]), JSON), read(as_protobuf([group]))
        assert from_json.rejected == from_protobuf.rejected
        assert names(read(from_json.request.SerializeToString())) == names(from_json)
    in_resource = a_group(a_span(), resource={"a": value})
    assert names(read(as_json([in_resource]), JSON)) == names(read(as_protobuf([in_resource])))


def test_an_empty_name_is_a_good_span() -> None:
    assert names(read(as_protobuf([a_group(a_span(name=""))]))) == [""]


def test_a_lower_depth_limit_holds_for_protobuf_too() -> None:
    spans = [a_span(attributes={"a": nested(n, lambda v: [v])}, name=str(n), span=b"span%04d" % n) for n in (2, 3, 4)]
    event = {"name": "e", "time": 1, "attributes": {"a": {"b": nested(3, lambda v: [v])}}}
    parsed = read(as_protobuf([a_group(*spans, a_span(events=[event]))]), max_depth=3)
    assert names(parsed) == ["2", "3"]
    assert parsed.rejected == {"too_deep": 2}


def test_the_wire_form_is_handed_on_only_when_nothing_changed() -> None:
    body = as_protobuf([a_group(GOOD)])
    assert read(body).encoded == body
    assert read(as_json([a_group(GOOD)]), JSON).encoded is None
    assert read(as_protobuf([a_group(GOOD, a_span(trace=b""))])).encoded is None


def test_check_request_takes_bad_spans_out_in_place() -> None:
    request = as_message([a_group(a_span(trace=b""), GOOD), a_group(a_span(span=b""))])
    kept, rejected, message = otlp.check_request(request, LIMITS)
    assert kept is request
    assert [span.name for span in otlp.spans(kept, NOW)] == ["good"]
    assert rejected == {"invalid_trace_id": 1, "invalid_span_id": 1}
    assert "trace id missing; expected 16 bytes" in message
    assert otlp.check_request(kept, LIMITS)[1:] == ({}, "")


def test_a_resource_that_would_fill_messages_is_refused() -> None:
    heavy = a_group(a_span(), a_span(span=b"2" * 8), resource={"a": "x" * 600})
    parsed = read(as_protobuf([heavy, a_group(GOOD)]), message_bytes=1000)
    assert names(parsed) == ["good"]
    assert parsed.rejected == {"resource_too_large": 2}


# ---------------------------------------------------------------------------------------- JSON


def json_request(*spans: Any, **group: Any) -> bytes:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]} | group]}).encode()


def json_span(**changes: Any) -> dict[str, Any]:
    return {"traceId": TRACE, "spanId": SPAN, "name": "bad"} | changes


GOOD_JSON = {"traceId": TRACE, "spanId": "0102030405060708", "name": "good"}
A_TRACE_IN_BASE64 = "CvdlGRbNQ92ESOshHIAxnA=="
BROKEN_JSON: list[tuple[Any, str, str]] = [
    (json_span(traceId=A_TRACE_IN_BASE64), "invalid_trace_id", "base64? OTLP/JSON ids are hex"),
    (json_span(spanId="t61rcWkgMzE="), "invalid_span_id", "base64? OTLP/JSON ids are hex"),
    (json_span(parentSpanId="t61rcWkgMzE"), "invalid_parent_span_id", "base64?"),
    (json_span(traceId="z" * 32), "invalid_trace_id", "expected 32 hex characters"),
    (json_span(traceId=5), "invalid_value", "$.traceId"),
    (json_span(name={}), "invalid_value", "$.name"),
    (json_span(startTimeUnixNano="soon"), "invalid_value", "'soon' is not an integer"),
    (json_span(startTimeUnixNano=1.5), "invalid_value", "not an integer"),
    (json_span(startTimeUnixNano=-1), "invalid_value", "does not fit"),
    (json_span(endTimeUnixNano=2**64), "invalid_value", "does not fit"),
    (json_span(kind="SPAN_KIND_ODD"), "invalid_value", "no name of an enum"),
    (json_span(kind=-1), "invalid_value", "does not fit"),
    (json_span(status={"code": "FINE"}), "invalid_value", "no name of an enum"),
    (json_span(droppedAttributesCount=2**32), "invalid_value", "does not fit"),
    (json_span(attributes={}), "invalid_value", "$.attributes"),
    (json_span(attributes=[{"key": "a", "value": {"intValue": str(2**63)}}]), "invalid_value", "does not fit"),
    (json_span(attributes=[{"key": "a", "value": {"intValue": "1e400"}}]), "invalid_value", "not an integer"),
    (json_span(attributes=[{"key": "a", "value": {"doubleValue": "much"}}]), "invalid_value", "not a number"),
    (json_span(attributes=[{"key": "a", "value": {"doubleValue": 10**400}}]), "invalid_value", "not a number"),
    (json_span(attributes=[{"key": "a", "value": {"bytesValue": "~"}}]), "invalid_value", "not base64"),
    (json_span(attributes=[{"key": "a", "value": {"boolValue": "yes"}}]), "invalid_value", "boolValue"),
    (json_span(links=[{"traceId": A_TRACE_IN_BASE64}]), "invalid_value", "links.traceId"),
    ("text", "invalid_value", "got `str`"),
    (None, "invalid_value", "got `null`"),
]


@pytest.mark.parametrize(("span", "reason", "says"), BROKEN_JSON)
def test_a_span_of_wrong_json_is_refused_and_its_neighbours_kept(span: Any, reason: str, says: str) -> None:
    parsed = read(json_request(GOOD_JSON, span), JSON)
    assert names(parsed) == ["good"]
    assert parsed.rejected == {reason: 1}
    assert says in parsed.message


def test_json_nested_beyond_reading_inside_one_span() -> None:
    deep = b'{"x":' * 400 + b"1" + b"}" * 400
    body = json_request(GOOD_JSON, json_span()).replace(b'"bad"', b'"bad","attributes":[' + deep + b"]")
    assert names(read(body, JSON)) == ["good", "bad"]  # an unknown field is not looked at
    value = b'{"arrayValue":{"values":[' * 200 + b"{}" + b"]}}" * 200
    body = json_request(GOOD_JSON, json_span()).replace(
        b'"bad"', b'"bad","attributes":[{"key":"a","value":' + value + b"}]"
    )
    parsed = read(body, JSON)
    assert names(parsed) == ["good"]
    assert parsed.rejected == {"too_deep": 1}


def test_null_and_absent_fields_are_defaults() -> None:
    fields = ["parentSpanId", "kind", "attributes", "events", "links", "status", "traceState", "startTimeUnixNano"]
    parsed = read(json_request(json_span(**dict.fromkeys(fields)), schemaUrl=None, resource=None), JSON)
    assert parsed.request == read(json_request(json_span()), JSON).request


def test_integers_may_be_written_as_whole_numbers_with_a_point() -> None:
    [span] = otlp.spans(read(json_request(json_span(startTimeUnixNano=1e18, kind="3")), JSON).request, NOW)
    assert (span.start_time_unix_nano, span.kind) == (10**18, 3)


@pytest.mark.parametrize("text", ["-_8=", "+/8=", "-_8", "+/8"])
def test_bytes_may_be_written_in_either_alphabet_with_or_without_padding(text: str) -> None:
    body = json_request(json_span(attributes=[{"key": "a", "value": {"bytesValue": text}}]))
    [span] = otlp.spans(read(body, JSON).request, NOW)
    assert span.attributes == {"a": b"\xfb\xff"}


@pytest.mark.parametrize("part", ["resource", "scope"])
def test_a_broken_resource_or_scope_costs_its_own_spans_only(part: str) -> None:
    broken = {"attributes": [{"key": "a", "value": {"intValue": "x"}}]}
    group: dict[str, Any] = {"scopeSpans": [{"spans": [json_span(), json_span()]}]}
    (group if part == "resource" else group["scopeSpans"][0])[part] = broken
    body = json.dumps({"resourceSpans": [group, {"scopeSpans": [{"spans": [GOOD_JSON]}]}]}).encode()
    parsed = read(body, JSON)
    assert names(parsed) == ["good"]
    assert parsed.rejected == {"invalid_resource": 2}


def test_half_a_surrogate_pair_is_replaced_and_nothing_else_is_lost() -> None:
    text = r'"a \ud83e b", "x": "\ud83d\ude00 \\ud83e \udc00\ud83e"'
    body = json_request(GOOD_JSON, json_span(attributes=[{"key": "k", "value": {"stringValue": "HERE"}}]))
    parsed = read(body.replace(b'"HERE"', text.encode()), JSON)
    assert names(parsed) == ["good", "bad"]
    _, span = otlp.spans(parsed.request, NOW)
    assert span.attributes == {"k": "a \ufffd b"}
    assert parsed.repaired == 3
    assert not parsed.rejected
    assert "invalid text replaced by U+FFFD in 3 places" in parsed.message


def test_bytes_that_are_not_utf8_are_replaced_in_json() -> None:
    parsed = read(json_request(GOOD_JSON, json_span()).replace(b'"bad"', b'"b\xf0\x9f\xa4d"'), JSON)
    assert names(parsed) == ["good", "b\ufffdd"]
    assert parsed.repaired == 1


def never_crashes(body: bytes, content_type: str) -> None:
    try:
        parsed = otlp.read(body, content_type, LIMITS)
    except InputError as error:
        reason = error.reason
    else:
        assert parsed.received == len(names(parsed)) + sum(parsed.rejected.values())
        return
    assert reason in REQUEST_REASONS


@LAW
@given(st.binary(max_size=40) | st.text(max_size=40).map(str.encode))
def test_no_bytes_crash_the_reader(body: bytes) -> None:
    never_crashes(body, JSON)
    never_crashes(body, PROTOBUF)


@LAW
@given(st.data())
def test_a_body_cut_or_changed_anywhere_never_crashes(data: st.DataObject) -> None:
    encode = data.draw(st.sampled_from([as_json, as_protobuf]))
    body = bytearray(encode([a_group(GOOD, a_span(attributes={"k": [1, {"x": "text"}]}))]))
    for _ in range(data.draw(st.integers(0, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    body = body[: data.draw(st.integers(0, len(body)))]
    never_crashes(bytes(body), JSON if encode is as_json else PROTOBUF)


@pytest.mark.parametrize(
    ("body", "reason", "says"),
    [
        (b"", "invalid_json", "body:1:1: Input data was truncated"),
        (b'{\n"resourceSpans": nope}', "invalid_json", "body:2:"),
        (b'{"resourceSpans":[NaN]}', "invalid_json", "body:1:19: "),
        (b'{"resourceSpans":{}}', "invalid_json", "$.resourceSpans"),
        (b"[]", "invalid_json", "got `array`"),
        (b"null", "invalid_json", "got `null`"),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "too_deep", "nested too deep"),
    ],
)
def test_json_that_is_no_request_is_refused_as_a_whole(body: bytes, reason: str, says: str) -> None:
    error = refused(body, JSON)
    assert error.reason == reason
    assert says in str(error)


def test_dump_json_gives_back_what_was_read() -> None:
    value = {"i": 2**62, "b": b"\x00\xff", "n": None, "l": [1.5, "x"]}
    event = {"name": "e", "time": 3, "attributes": value}
    groups = [a_group(a_span(parent=b"parent!!", kind=3, code=2, attributes=value, events=[event]))]
    request = as_message(groups)
    request.resource_spans[0].scope_spans[0].spans[0].links.add(trace_id=b"t" * 16, span_id=b"s" * 8, trace_state="a=b")
    document = otlp.dump_json(request)
    span = document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    assert span["traceId"] == TRACE
    assert span["parentSpanId"] == b"parent!!".hex()
    assert span["links"][0]["spanId"] == (b"s" * 8).hex()
    assert span["kind"] == 3
    assert span["startTimeUnixNano"] == str(NOW)
    assert read(json.dumps(document).encode(), JSON).request == request


# ------------------------------------------------------------------------------------ protobuf


def raw_request(*spans: bytes, header: bytes = b"") -> bytes:
    return framed(1, header + framed(2, b"".join(framed(2, span) for span in spans)))


def raw_span(**changes: Any) -> bytes:
    span: bytes = as_message([a_group(a_span(**changes))]).resource_spans[0].scope_spans[0].spans[0].SerializeToString()
    return span


def test_text_that_is_not_utf8_is_replaced_in_protobuf() -> None:
    cut = raw_span(name="bad", attributes={"k": {"in": ["hello @@@@", "fine"]}}).replace(b"@@@@", b"@\xf0\x9f\xa4")
    parsed = read(raw_request(raw_span(name="good"), cut))
    assert names(parsed) == ["good", "bad"]
    assert list(otlp.spans(parsed.request, NOW))[1].attributes == {"k": {"in": ["hello @\ufffd", "fine"]}}
    assert parsed.repaired == 1
    assert not parsed.rejected


def test_text_that_is_not_utf8_in_a_resource_is_replaced() -> None:
    resource = as_message([a_group(resource={"host": "@@"})]).resource_spans[0].resource.SerializeToString()
    parsed = read(raw_request(raw_span(), header=framed(1, resource.replace(b"@@", b"@\xff"))))
    [span] = otlp.spans(parsed.request, NOW)
    assert span.resource == {"host": "@\ufffd"}


def test_a_broken_span_in_a_sound_frame_costs_itself_only() -> None:
    parsed = read(raw_request(raw_span(name="good"), b"\x0a\x7fcut", raw_span(name="last")))
    assert names(parsed) == ["good", "last"]
    assert parsed.rejected == {"invalid_span": 1}


def test_a_broken_resource_costs_its_own_spans_only() -> None:
    broken = raw_request(raw_span(), raw_span(), header=framed(1, b"\x0a\x7fcut"))
    parsed = read(broken + raw_request(raw_span(name="good")))
    assert names(parsed) == ["good"]
    assert parsed.rejected == {"invalid_resource": 2}


def test_a_broken_frame_is_refused_as_a_whole() -> None:
    for body in (b"hello world", b"\x0a\x7fcut", as_protobuf([a_group(GOOD)])[:-3], b"\xff" * 12):
        assert refused(body, PROTOBUF).reason == "invalid_protobuf"


def test_unknown_fields_are_no_mistake() -> None:
    body = raw_request(raw_span() + framed(4000, b"new")) + framed(99, b"new")
    assert names(read(body)) == ["work"]


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/jsonp", "application/grpc"])
def test_other_content_types_are_refused_by_name(content_type: str) -> None:
    assert refused(b"{}", content_type).reason == "unsupported_type"


def test_content_types_may_carry_parameters() -> None:
    assert names(read(as_json([a_group(GOOD)]), "Application/JSON; charset=utf-8")) == ["good"]


def test_a_body_beyond_the_limit_is_refused() -> None:
    body = as_protobuf([a_group(GOOD)])
    assert names(read(body, max_request_bytes=len(body))) == ["good"]
    assert refused(body, PROTOBUF, max_request_bytes=len(body) - 1).reason == "too_large"


def test_more_spans_than_a_request_may_hold_are_refused_before_any_is_looked_at() -> None:
    most = otlp.MIN_SPANS
    limits = {"max_request_bytes": 100_000}
    for count in (most, most + 1):
        spans = b"\x12\x00" * count
        bodies = [
            (framed(1, framed(2, spans)), PROTOBUF),
            (framed(1, framed(2, spans) + framed(3, b"\xff")), PROTOBUF),  # read by hand
            (b'{"resourceSpans":[{"scopeSpans":[{"spans":[' + b",".join([b"{}"] * count) + b"]}]}]}", JSON),
        ]
        for body, content_type in bodies:
            if count == most:
                assert read(body, content_type, **limits).rejected == {"invalid_trace_id": count}
            else:
                assert refused(body, content_type, **limits).reason == "too_large"
    assert not read(as_protobuf(many(2000, text=10))).rejected


def test_parse_gives_the_request_alone() -> None:
    assert otlp.parse(as_json([a_group(GOOD)]), JSON, LIMITS) == as_message([a_group(GOOD)])
