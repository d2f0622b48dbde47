"""Log records and data points are counted in both encodings."""

from __future__ import annotations

import json

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from otelmon.receive.otlp import JSON, PROTOBUF
from otelmon.receive.signals import Signal, count
from otelmon.vocabulary.errors import InputError


def a_metrics_request() -> ExportMetricsServiceRequest:
    request = ExportMetricsServiceRequest()
    metrics = request.resource_metrics.add().scope_metrics.add().metrics
    for number, kind in enumerate(("gauge", "sum", "histogram", "exponential_histogram", "summary"), 1):
        points = getattr(metrics.add(name=kind), kind).data_points
        for _ in range(number):
            points.add(time_unix_nano=1)
    metrics.add(name="empty")
    return request


def a_logs_request() -> ExportLogsServiceRequest:
    request = ExportLogsServiceRequest()
    for records in (2, 0, 3):
        scope_logs = request.resource_logs.add().scope_logs.add()
        for _ in range(records):
            scope_logs.log_records.add(severity_number=9)
    return request


@pytest.mark.parametrize(("signal", "number"), [("logs", 5), ("metrics", 15)])
def test_every_record_counts(signal: Signal, number: int) -> None:
    request = a_logs_request() if signal == "logs" else a_metrics_request()
    assert count(request.SerializeToString(), PROTOBUF, signal) == number
    assert count(json.dumps(json_format.MessageToDict(request)).encode(), JSON, signal) == number


@pytest.mark.parametrize(
    ("body", "content_type", "reason"),
    [
        (b"{", JSON, "invalid_json"),
        (b"[" * 100_000, JSON, "invalid_json"),
        (b"\xff", PROTOBUF, "invalid_protobuf"),
        (b"{}", "text/html", "unsupported_type"),
    ],
)
def test_what_can_not_be_read_is_refused(body: bytes, content_type: str, reason: str) -> None:
    for signal in ("logs", "metrics"):
        with pytest.raises(InputError) as caught:
            count(body, content_type, signal)
        assert caught.value.reason == reason
