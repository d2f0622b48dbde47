"""Requests for the tests, built twice: as OTLP/JSON by hand, and as protobuf by hand, so that neither checks itself."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
LAW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
NOW = 1_790_000_000_000_000_000

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SCALARS = st.one_of(
    st.none(),
    TEXT,
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.binary(max_size=8),
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=8
)
ATTRIBUTES = st.dictionaries(TEXT, VALUES, max_size=5)
TIMES = st.integers(0, 2**63 - 1)
COUNTS = st.integers(0, 2**32 - 1)
EVENTS = st.lists(st.fixed_dictionaries({"name": TEXT, "time": TIMES, "attributes": ATTRIBUTES}), max_size=2)
SPANS = st.fixed_dictionaries(
    {
        "trace": st.binary(min_size=16, max_size=16).filter(any),
        "span": st.binary(min_size=8, max_size=8).filter(any),
        "parent": st.just(b"") | st.binary(min_size=8, max_size=8),
        "name": TEXT,
        "kind": st.integers(0, 5),
        "start": TIMES,
        "end": TIMES,
        "code": st.integers(0, 2),
        "status": TEXT,
        "attributes": ATTRIBUTES,
        "events": EVENTS,
        "dropped": COUNTS,
    }
)
GROUPS = st.fixed_dictionaries(
    {"resource": ATTRIBUTES, "scope": TEXT, "schema": TEXT, "spans": st.lists(SPANS, min_size=1, max_size=3)}
)


def a_span(**changes: Any) -> dict[str, Any]:
    """One span as plain data, for `as_json` and `as_protobuf`."""
    plain = {
        "trace": bytes.fromhex(TRACE),
        "span": bytes.fromhex(SPAN),
        "parent": b"",
        "name": "work",
        "kind": 1,
        "start": NOW,
        "end": NOW + 5,
        "code": 0,
        "status": "",
        "attributes": {"a": 1},
        "events": [],
        "dropped": 0,
    }
    return plain | changes


def a_group(*spans: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Spans of one resource and scope."""
    return {"resource": {"service.name": "agent"}, "scope": "tests", "schema": "", "spans": list(spans)} | changes


def json_value(value: Any, rng: random.Random) -> dict[str, Any]:
    """AnyValue in JSON; integers as numbers or strings, as senders differ."""
    if value is None:
        return {}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": rng.choice([value, str(value)])}
    if isinstance(value, float):
        return {"doubleValue": value if abs(value) < 1e308 else str(value).replace("inf", "Infinity")}
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, bytes):
        return {"bytesValue": base64.b64encode(value).decode()}
    if isinstance(value, list):
        return {"arrayValue": {"values": [json_value(item, rng) for item in value]}}
    return {"kvlistValue": {"values": json_attributes(value, rng)}}


def json_attributes(attributes: dict[str, Any], rng: random.Random) -> list[dict[str, Any]]:
    pairs = [{"key": key, "value": json_value(value, rng)} for key, value in attributes.items()]
    rng.shuffle(pairs)
    return pairs


def json_span(span: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """A span in OTLP/JSON, in one of the ways senders write it."""
    kinds = ["UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"]
    codes = ["UNSET", "OK", "ERROR"]
    number = rng.choice([str, int])
    return {
        "traceId": rng.choice([span["trace"].hex(), span["trace"].hex().upper()]),
        "spanId": span["span"].hex(),
        "parentSpanId": span["parent"].hex() or rng.choice(["", None]),
        "name": span["name"],
        "kind": rng.choice([span["kind"], "SPAN_KIND_" + kinds[span["kind"]]]),
        "startTimeUnixNano": number(span["start"]),
        "endTimeUnixNano": number(span["end"]),
        "status": {"message": span["status"], "code": rng.choice([span["code"], "STATUS_CODE_" + codes[span["code"]]])},
        "attributes": json_attributes(span["attributes"], rng),
        "events": [
            {"name": e["name"], "timeUnixNano": number(e["time"]), "attributes": json_attributes(e["attributes"], rng)}
            for e in span["events"]
        ],
        "droppedAttributesCount": span["dropped"],
        "somethingNew": [{"ignored": True}],
    }


def as_json(groups: list[dict[str, Any]], seed: int = 0) -> bytes:
    """An OTLP/JSON body."""
    rng = random.Random(seed)
    resource_spans = [
        {
            "resource": {"attributes": json_attributes(group["resource"], rng)},
            "scopeSpans": [
                {
                    "scope": {"name": group["scope"]},
                    "schemaUrl": group["schema"],
                    "spans": [json_span(span, rng) for span in group["spans"]],
                }
            ],
        }
        for group in groups
    ]
    return json.dumps({"resourceSpans": resource_spans}, ensure_ascii=rng.random() < 0.5).encode()


def fill_value(target: Any, value: Any) -> None:
    if isinstance(value, bool):
        target.bool_value = value
    elif isinstance(value, int):
        target.int_value = value
    elif isinstance(value, float):
        target.double_value = value
    elif isinstance(value, str):
        target.string_value = value
    elif isinstance(value, bytes):
        target.bytes_value = value
    elif isinstance(value, list):
        target.array_value.SetInParent()
        for item in value:
            fill_value(target.array_value.values.add(), item)
    elif value is not None:
        target.kvlist_value.SetInParent()
        fill_attributes(target.kvlist_value.values, value)


def fill_attributes(target: Any, attributes: dict[str, Any]) -> None:
    for key, value in attributes.items():
        pair = target.add(key=key)
        pair.value.SetInParent()
        fill_value(pair.value, value)


def as_message(groups: list[dict[str, Any]]) -> Any:
    """An ExportTraceServiceRequest."""
    request = ExportTraceServiceRequest()
    for group in groups:
        resource_spans = request.resource_spans.add()
        fill_attributes(resource_spans.resource.attributes, group["resource"])
        scope_spans = resource_spans.scope_spans.add(schema_url=group["schema"])
        scope_spans.scope.name = group["scope"]
        for span in group["spans"]:
            message = scope_spans.spans.add(
                trace_id=span["trace"],
                span_id=span["span"],
                parent_span_id=span["parent"],
                name=span["name"],
                kind=span["kind"],
                start_time_unix_nano=span["start"],
                end_time_unix_nano=span["end"],
                dropped_attributes_count=span["dropped"],
            )
            message.status.code, message.status.message = span["code"], span["status"]
            fill_attributes(message.attributes, span["attributes"])
            for event in span["events"]:
                added = message.events.add(name=event["name"], time_unix_nano=event["time"])
                fill_attributes(added.attributes, event["attributes"])
    return request


def as_protobuf(groups: list[dict[str, Any]]) -> bytes:
    """A protobuf body."""
    body: bytes = as_message(groups).SerializeToString()
    return body


def many(spans: int, per_trace: int = 5, text: int = 200) -> list[dict[str, Any]]:
    """One group of many spans; trace and span ids follow from their number."""
    made = [
        a_span(
            trace=(n // per_trace + 1).to_bytes(16, "big"),
            span=(n + 1).to_bytes(8, "big"),
            attributes={"n": n, "text": "x" * text},
        )
        for n in range(spans)
    ]
    return [a_group(*made)]
