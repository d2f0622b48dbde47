"""Set up the shim: where spans go, who the agent is, what may be captured."""

from __future__ import annotations

import os

import msgspec
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from otelmon import __version__
from otelmon.instrument.capture import Capture, Level, Redact

DEFAULT_ENDPOINT = "http://127.0.0.1:4318"
EXPORT_EVERY_MS = 1_000  # the SDK's default of 5 s would be most of the time from a call to a page


class Settings(msgspec.Struct):
    """What `configure` decided; one per process."""

    agent: str | None = None
    agent_version: str | None = None
    capture: Capture = Capture()


settings = Settings()


def configure(
    *,
    service_name: str | None = None,
    agent: str | None = None,
    agent_version: str | None = None,
    endpoint: str | None = None,
    environment: str | None = None,
    capture: Level = "full",
    hash_key: bytes = b"",
    redact: Redact | None = None,
    exporter: SpanExporter | None = None,
) -> None:
    """Set up the shim for this process.

    Spans go through the TracerProvider the process already has, when it has one; else a new one
    exports OTLP/HTTP to `endpoint`, by default OTEL_EXPORTER_OTLP_ENDPOINT or 127.0.0.1:4318.
    `exporter` replaces that exporter (tests, or OTLP/gRPC).
    """
    settings.agent, settings.agent_version = agent, agent_version
    settings.capture = Capture(capture, hash_key, redact)
    if isinstance(trace.get_tracer_provider(), TracerProvider):
        if exporter is not None:
            trace.get_tracer_provider().add_span_processor(_processor(exporter))  # type: ignore[attr-defined]
        return
    attributes = {"deployment.environment.name": environment, "service.name": service_name}
    resource = Resource.create({key: value for key, value in attributes.items() if value})
    # More room than the SDK's 128: it drops the oldest attributes first, and those name the tool.
    provider = TracerProvider(resource=resource, span_limits=SpanLimits(max_span_attributes=512))
    provider.add_span_processor(_processor(exporter or _http_exporter(endpoint)))
    trace.set_tracer_provider(provider)


def _processor(exporter: SpanExporter) -> BatchSpanProcessor:
    return BatchSpanProcessor(exporter, schedule_delay_millis=EXPORT_EVERY_MS)


def _http_exporter(endpoint: str | None) -> SpanExporter:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    if endpoint is None and _endpoint_in_environment():
        return OTLPSpanExporter()
    return OTLPSpanExporter(endpoint=(endpoint or DEFAULT_ENDPOINT).rstrip("/") + "/v1/traces")


def _endpoint_in_environment() -> bool:
    return any(os.environ.get(f"OTEL_EXPORTER_OTLP_{kind}ENDPOINT") for kind in ("", "TRACES_"))


def flush(timeout_ms: int = 10_000) -> bool:
    """Send what is waiting; False when it could not be sent in time."""
    provider = trace.get_tracer_provider()
    return provider.force_flush(timeout_ms) if isinstance(provider, TracerProvider) else True


def tracer() -> trace.Tracer:
    """The shim's tracer."""
    return trace.get_tracer("otelmon", __version__)
