"""Answers as protobuf messages: OTLP's partial success, and google.rpc.Status for what is refused."""

from __future__ import annotations

from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.rpc.code_pb2 import INVALID_ARGUMENT, UNAUTHENTICATED, UNAVAILABLE
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from otelmon.receive.receiver import RETRY_AFTER_S, Answer
from otelmon.vocabulary.errors import InputError, Problem

_RESPONSES: dict[str, tuple[Any, str]] = {
    "traces": (ExportTraceServiceResponse, "rejected_spans"),
    "logs": (ExportLogsServiceResponse, "rejected_log_records"),
    "metrics": (ExportMetricsServiceResponse, "rejected_data_points"),
}


def unauthenticated() -> InputError:
    """The refusal of a request without the token."""
    do = "send the token that the server's option receive.token has"
    return InputError("unauthenticated", Problem("authorization", "no valid token", "`Bearer <token>`", do))


def response(answer: Answer) -> Any:
    """The export response of an accepted request; partial success is left unset when all was taken."""
    kind, field = _RESPONSES[answer.signal]
    message = kind()
    if answer.rejected or (answer.message and answer.signal != "metrics"):
        setattr(message.partial_success, field, answer.rejected)
        message.partial_success.error_message = answer.message
    return message


def status(answer: Answer) -> Status:
    """The status of a request that was not accepted; its details name the reason and, when busy, the wait."""
    code = UNAVAILABLE if answer.outcome == "busy" else INVALID_ARGUMENT
    if answer.reason == "unauthenticated":
        code = UNAUTHENTICATED
    result = Status(code=code, message=answer.message)
    result.details.add().Pack(ErrorInfo(reason=answer.reason, domain="otelmon"))
    if answer.outcome == "busy":
        result.details.add().Pack(RetryInfo(retry_delay=Duration(seconds=RETRY_AFTER_S)))
    return result
