"""The signals of OTLP. Metrics are counted and refused politely, because nothing here reads them."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from otelmon.receive.otlp import JSON, PROTOBUF
from otelmon.vocabulary.errors import InputError, Problem

Signal = Literal["traces", "logs", "metrics"]
METRICS_NOT_STORED = "metrics are not stored here; send traces and logs, or turn the metric exporter off"


class _Camel(msgspec.Struct, rename="camel"):
    pass


class _Data(_Camel):
    data_points: list[msgspec.Raw] = []


class _Metric(_Camel):
    gauge: _Data = msgspec.field(default_factory=_Data)
    sum: _Data = msgspec.field(default_factory=_Data)
    histogram: _Data = msgspec.field(default_factory=_Data)
    exponential_histogram: _Data = msgspec.field(default_factory=_Data)
    summary: _Data = msgspec.field(default_factory=_Data)


class _ScopeMetrics(_Camel):
    metrics: list[_Metric] = []


class _ResourceMetrics(_Camel):
    scope_metrics: list[_ScopeMetrics] = []


class _Metrics(_Camel):
    resource_metrics: list[_ResourceMetrics] = []


_KINDS = ("gauge", "sum", "histogram", "exponential_histogram", "summary")
_decoder = msgspec.json.Decoder(_Metrics)


def count(body: bytes, content_type: str) -> int:
    """Data points in a request of metrics. Raises InputError like otlp.read."""
    kind = content_type.split(";", 1)[0].strip().lower()
    if kind not in (JSON, PROTOBUF):
        raise InputError("unsupported_type", Problem("content-type", repr(content_type[:80]), f"{PROTOBUF} or {JSON}"))
    try:
        request: Any = _decoder.decode(body) if kind == JSON else ExportMetricsServiceRequest.FromString(body)
    except (msgspec.DecodeError, RecursionError, DecodeError) as error:
        reason = "invalid_json" if kind == JSON else "invalid_protobuf"
        raise InputError(reason, Problem("body", str(error), "an OTLP request of metrics")) from None
    metrics = (m for resource in request.resource_metrics for scope in resource.scope_metrics for m in scope.metrics)
    return sum(len(getattr(metric, kind).data_points) for metric in metrics for kind in _KINDS)
