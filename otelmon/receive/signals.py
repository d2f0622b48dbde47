"""Log records and metrics: counted and refused politely, because they are not stored yet."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from otelmon.receive.otlp import JSON, PROTOBUF
from otelmon.vocabulary.errors import InputError, Problem

Signal = Literal["traces", "logs", "metrics"]
NOT_STORED = {
    "logs": "log records are not stored yet; send traces, or turn the log exporter off",
    "metrics": "metrics are not stored here; send traces, or turn the metric exporter off",
}


class _Camel(msgspec.Struct, rename="camel"):
    pass


class _ScopeLogs(_Camel):
    log_records: list[msgspec.Raw] = []


class _ResourceLogs(_Camel):
    scope_logs: list[_ScopeLogs] = []


class _Logs(_Camel):
    resource_logs: list[_ResourceLogs] = []


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
_decoders: dict[str, msgspec.json.Decoder[Any]] = {
    "logs": msgspec.json.Decoder(_Logs),
    "metrics": msgspec.json.Decoder(_Metrics),
}
_messages: dict[str, Any] = {"logs": ExportLogsServiceRequest, "metrics": ExportMetricsServiceRequest}


def count(body: bytes, content_type: str, signal: Signal) -> int:
    """Log records or data points in a request. Raises InputError like otlp.read."""
    kind = content_type.split(";", 1)[0].strip().lower()
    if kind not in (JSON, PROTOBUF):
        raise InputError("unsupported_type", Problem("content-type", repr(content_type[:80]), f"{PROTOBUF} or {JSON}"))
    try:
        request = _decoders[signal].decode(body) if kind == JSON else _messages[signal].FromString(body)
    except (msgspec.DecodeError, RecursionError, DecodeError) as error:
        reason = "invalid_json" if kind == JSON else "invalid_protobuf"
        raise InputError(reason, Problem("body", str(error), f"an OTLP request of {signal}")) from None
    if signal == "logs":
        return sum(len(scope.log_records) for resource in request.resource_logs for scope in resource.scope_logs)
    metrics = (m for resource in request.resource_metrics for scope in resource.scope_metrics for m in scope.metrics)
    return sum(len(getattr(metric, kind).data_points) for metric in metrics for kind in _KINDS)
