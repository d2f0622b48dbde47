"""The real SDK with an exporter that keeps spans in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otelmon.instrument import setup
from otelmon.instrument.capture import Capture

_exporter = InMemorySpanExporter()


def _provider() -> TracerProvider:
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    return provider


@pytest.fixture(scope="session", autouse=True)
def _exporting() -> None:
    _provider().add_span_processor(SimpleSpanProcessor(_exporter))


Spans = Callable[[], list[ReadableSpan]]


@pytest.fixture
def spans() -> Iterator[Spans]:
    """The spans ended since the test began, oldest first."""
    _exporter.clear()
    setup.settings.capture = Capture()
    setup.settings.agent = None
    yield lambda: list(_exporter.get_finished_spans())
    setup.settings.capture = Capture()
