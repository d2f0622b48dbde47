"""Log records through both doors: checked one by one, packed by partition, and those of no span left out."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry._logs import LogRecord as SdkRecord
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter as HttpExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider

from otelmon.receive import otlp
from otelmon.receive.doors import Doors
from otelmon.receive.otlp import JSON, LOGS, PROTOBUF, Parsed
from otelmon.receive.tally import FILTERED_REASONS, SPAN_REASONS
from otelmon.vocabulary.config import ReceiveConfig
from otelmon.vocabulary.errors import InputError
from otelmon.vocabulary.span import LogRecord
from tests.receive.build import ATTRIBUTES, LAW, NOW, SPAN, TRACE, VALUES, json_value
from tests.receive.conftest import Sink

OpenDoors = Callable[..., Doors]


def a_record(**changes: Any) -> dict[str, Any]:
    """One log record of OTLP/JSON."""
    return {"traceId": TRACE, "spanId": SPAN, "eventName": "e", "timeUnixNano": str(NOW)} | changes


def as_json(*records: dict[str, Any]) -> bytes:
    group = {"resource": {"attributes": []}, "scopeLogs": [{"scope": {"name": "s"}, "logRecords": list(records)}]}
    return json.dumps({"resourceLogs": [group]}).encode()


def read(body: bytes, content_type: str = JSON, **limits: int) -> Parsed:
    """Parsed, and added up: nothing is lost without a name."""
    parsed = otlp.read(body, content_type, ReceiveConfig(**limits), LOGS)  # type: ignore[arg-type]
    kept = len(records_of(parsed))
    assert parsed.received == kept + sum(parsed.rejected.values()) + sum(parsed.filtered.values())
    assert set(parsed.rejected) <= set(SPAN_REASONS)
    assert set(parsed.filtered) <= set(FILTERED_REASONS)
    return parsed


def records_of(parsed: Parsed) -> list[LogRecord]:
    return list(otlp.log_records(parsed.request, NOW))


def test_a_record_is_the_same_in_both_encodings() -> None:
    value = {"role": "user", "n": [1, 2.5, True, None, {"deep": "x"}], "raw": b"\x01"}
    body = as_json(
        a_record(body=json_value(value, random.Random(1)), attributes=[{"key": "k", "value": {"intValue": "7"}}])
    )
    parsed = read(body)
    [record] = records_of(parsed)
    assert (record.trace_id, record.span_id, record.event_name, record.time_unix_nano) == (TRACE, SPAN, "e", NOW)
    assert (record.body, record.attributes, record.scope.name) == (value, {"k": 7}, "s")
    assert records_of(read(parsed.request.SerializeToString(), PROTOBUF)) == [record]


def test_the_time_of_observation_stands_in_for_a_missing_one() -> None:
    [record] = records_of(read(as_json(a_record(timeUnixNano="0", observedTimeUnixNano=str(NOW + 3)))))
    assert record.time_unix_nano == NOW + 3


@pytest.mark.parametrize("change", [{"traceId": ""}, {"spanId": ""}, {"traceId": "0" * 32}, {"spanId": "0" * 16}])
def test_a_record_of_no_span_is_left_out_and_nobody_is_blamed(change: dict[str, Any]) -> None:
    parsed = read(as_json(a_record(**change), a_record()))
    assert (parsed.filtered, parsed.rejected, parsed.message) == ({"no_trace_context": 1}, {}, "")
    assert len(records_of(parsed)) == 1


BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"traceId": "12"}, "invalid_trace_id"),
    ({"spanId": "t61rcWkgMzE="}, "invalid_span_id"),
    ({"timeUnixNano": str(2**63)}, "invalid_time"),
    ({"observedTimeUnixNano": "soon"}, "invalid_value"),
    ({"severityNumber": "LOUD"}, "invalid_value"),
    ({"attributes": [{"key": "k", "value": {"intValue": "x"}}]}, "invalid_value"),
    ({"body": {"stringValue": "x" * 3000}}, "span_too_large"),
    ({"body": {"arrayValue": {"values": [{"arrayValue": {"values": [{"arrayValue": {"values": []}}]}}]}}}, "too_deep"),
    ({"eventName": 7}, "invalid_value"),
]


@pytest.mark.parametrize(("change", "reason"), BROKEN, ids=[reason + str(n) for n, (_, reason) in enumerate(BROKEN)])
def test_a_broken_record_loses_no_neighbour(change: dict[str, Any], reason: str) -> None:
    body = as_json(a_record(eventName="a"), a_record(**change), a_record(eventName="b"))
    parsed = read(body, max_depth=2, max_span_bytes=2000)
    assert parsed.rejected == {reason: 1}
    assert [record.event_name for record in records_of(parsed)] == ["a", "b"]
    assert f"1 of 3 log records refused: {reason} 1 (resourceLogs[0].scopeLogs[0].logRecords[1]: " in parsed.message


def test_text_that_is_not_unicode_is_replaced_in_protobuf() -> None:
    request = read(as_json(a_record(eventName="@@"), a_record(eventName="good"))).request
    parsed = read(request.SerializeToString().replace(b"@@", b"\xff\xfe"), PROTOBUF)
    assert [record.event_name for record in records_of(parsed)] == ["\ufffd\ufffd", "good"]
    assert parsed.repaired == 1


@pytest.mark.parametrize(
    ("body", "content_type", "reason"),
    [(b"{", JSON, "invalid_json"), (b"\xff", PROTOBUF, "invalid_protobuf"), (b"{}", "text/html", "unsupported_type")],
)
def test_a_request_that_can_not_be_read_is_refused(body: bytes, content_type: str, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        otlp.read(body, content_type, ReceiveConfig(), LOGS)
    assert caught.value.reason == reason


@LAW
@given(st.lists(st.tuples(VALUES, ATTRIBUTES, st.integers(0, 5)), max_size=6), st.integers(200, 4000))
def test_packing_keeps_every_record_in_the_partition_of_its_trace(
    contents: list[tuple[Any, dict[str, Any], int]], target: int
) -> None:
    rng = random.Random(0)
    records = [
        a_record(
            traceId=f"{n + 1:032x}",
            body=json_value(body, rng),
            attributes=[{"key": key, "value": json_value(value, rng)} for key, value in attributes.items()],
        )
        for body, attributes, n in contents
    ]
    parsed = read(as_json(*records))
    packed = otlp.messages(parsed.request, lambda trace_id: int(trace_id, 16) % 3, target, None, LOGS)
    again = []
    for message in packed:
        assert message.signal == "logs"
        mine = records_of(read(message.value, PROTOBUF))
        assert message.spans == len(mine)
        assert {int(record.trace_id, 16) % 3 for record in mine} == {message.partition}
        again += mine
    order = [record.digest for record in records_of(parsed)]
    assert sorted(record.digest for record in again) == sorted(order)


# -- the doors -------------------------------------------------------------------------------------
def test_an_answer_says_what_was_refused_and_not_what_was_left_out(open_doors: OpenDoors, sink: Sink) -> None:
    doors = open_doors()
    url, headers = f"http://{doors.http}/v1/logs", {"content-type": JSON}
    answer = httpx.post(url, content=as_json(a_record(), a_record(spanId="")), headers=headers)
    assert (answer.status_code, answer.json()) == (200, {})
    answer = httpx.post(url, content=as_json(a_record(), a_record(traceId="12")), headers=headers)
    assert answer.json()["partialSuccess"]["rejectedLogRecords"] == "1"
    partial = ExportLogsServiceResponse.FromString(
        httpx.post(url, content=b"", headers={"content-type": PROTOBUF}).content
    )
    assert not partial.HasField("partial_success")
    assert [(a.signal, a.received, a.rejected, a.filtered) for a in sink.accounts] == [
        ("logs", 2, {}, {"no_trace_context": 1}),
        ("logs", 2, {"invalid_trace_id": 1}, {}),
        ("logs", 0, {}, {}),
    ]
    assert [(message.signal, message.spans) for message, _ in sink.published] == [("logs", 1), ("logs", 1)]


def test_nothing_is_published_that_was_not_redacted(sink: Sink) -> None:
    def redact(request: Any) -> Any:
        for _, _, records in LOGS.groups(request):
            for record in records:
                record.body.string_value = "hidden"
        return request

    sink.receiver(redact).accept(as_json(a_record(body={"stringValue": "secret"})), JSON, "logs")
    [(message, _)] = sink.published
    assert [record.body for record in records_of(read(message.value, PROTOBUF))] == ["hidden"]


@pytest.mark.parametrize("door", ["http", "grpc"])
def test_the_sdk_log_exporter_delivers(open_doors: OpenDoors, sink: Sink, door: str) -> None:
    doors = open_doors()
    exporter: Any = (
        HttpExporter(f"http://{doors.http}/v1/logs") if door == "http" else GrpcExporter(doors.grpc, insecure=True)
    )
    provider = LoggerProvider(resource=Resource.create({"service.name": "agent"}))
    provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
    logger = provider.get_logger("tests", "1")
    with TracerProvider().get_tracer("t").start_as_current_span("s"):
        where = trace.get_current_span().get_span_context()
        logger.emit(
            SdkRecord(
                timestamp=NOW,
                event_name="gen_ai.user.message",
                body={"content": "hi"},
                attributes={"gen_ai.system": "x"},
            )
        )
    logger.emit(SdkRecord(timestamp=NOW, body="of no span"))
    provider.shutdown()
    [(message, _)] = sink.published
    [record] = records_of(read(message.value, PROTOBUF))
    assert (int(record.trace_id, 16), int(record.span_id, 16)) == (where.trace_id, where.span_id)
    assert (record.event_name, record.body) == ("gen_ai.user.message", {"content": "hi"})
    assert (record.resource["service.name"], record.scope.name) == ("agent", "tests")
    assert [dict(account.filtered) for account in sink.accounts] == [{"no_trace_context": 1}]
