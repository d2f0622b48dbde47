"""Data points are counted in both encodings."""

from __future__ import annotations

import json

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from otelmon.receive.otlp import JSON, PROTOBUF
from otelmon.receive.signals import count
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


def test_every_data_point_counts() -> None:
    request = a_metrics_request()
    assert count(request.SerializeToString(), PROTOBUF) == 15
    assert count(json.dumps(json_format.MessageToDict(request)).encode(), JSON) == 15


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
    with pytest.raises(InputError) as caught:
        count(body, content_type)
    assert caught.value.reason == reason
