"""The two signals whose requests have one form: resources that hold scopes that hold spans or log records.

Their field numbers are equal too, so one reader, one check and one packer serve both.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span


class Shape(msgspec.Struct, frozen=True):
    """The message types of a signal and the names of their repeated fields; `noun` is what people call an item."""

    signal: Literal["traces", "logs"]
    noun: str
    request: Any
    resource: Any
    scope: Any
    item: Any
    resources: str
    scopes: str
    items: str

    def groups(self, request: Any) -> list[tuple[Any, Any, Any]]:
        """(resource group, scope group, its items) of a request, in order."""
        return [
            (resource, scope, getattr(scope, self.items))
            for resource in getattr(request, self.resources)
            for scope in getattr(resource, self.scopes)
        ]

    def where(self, *indices: int) -> str:
        """A place in a request, as OTLP/JSON names it."""
        names = (self.resources, self.scopes, self.items)
        return ".".join(f"{_camel(name)}[{index}]" for name, index in zip(names, indices, strict=False))


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


TRACES = Shape(
    "traces", "spans", ExportTraceServiceRequest, ResourceSpans, ScopeSpans, Span, "resource_spans", "scope_spans", "spans"
)  # fmt: skip
LOGS = Shape(
    "logs", "log records", ExportLogsServiceRequest, ResourceLogs, ScopeLogs, LogRecord, "resource_logs", "scope_logs", "log_records"
)  # fmt: skip
