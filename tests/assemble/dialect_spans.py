"""Spans for the tests of dialects: made by hand, or read from OTLP/JSON files and requests."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from otelmon.assemble.history import History, preferred
from otelmon.assemble.readings import read_span
from otelmon.receive import otlp
from otelmon.receive.spans import spans
from otelmon.vocabulary.config import ReceiveConfig
from otelmon.vocabulary.reading import Message, Reading, ToolFields
from otelmon.vocabulary.span import Scope, Span, SpanEvent


def make_span(attributes: dict[str, Any] | None = None, **changes: Any) -> Span:
    """A span with these attributes; any other field can be given."""
    fields: dict[str, Any] = {
        "trace_id": "0" * 31 + "1",
        "span_id": "0" * 15 + "2",
        "parent_span_id": "0" * 15 + "3",
        "name": "span",
        "kind": 1,
        "start_time_unix_nano": 1_000,
        "end_time_unix_nano": 2_000,
        "status_code": 0,
        "status_message": "",
        "attributes": attributes or {},
        "events": (),
        "resource": {},
        "scope": Scope(),
        "received_unix_nano": 3_000,
        "digest": "d",
    }
    return Span(**(fields | changes))


def exception(kind: str, message: str = "") -> SpanEvent:
    return SpanEvent("exception", 1_500, {"exception.type": kind, "exception.message": message})


def read(attributes: dict[str, Any] | None = None, **changes: Any) -> Reading:
    """The reading of a span made by hand, without any history."""
    return read_span(make_span(attributes, **changes), History())


def tool(attributes: dict[str, Any] | None = None, **changes: Any) -> ToolFields:
    """The tool fields of a span made by hand; it must read as a tool."""
    found = read(attributes, **changes)
    assert found.kind == "tool"
    assert found.tool is not None
    return found.tool


def read_request(body: bytes) -> list[Reading]:
    """The readings of an OTLP/JSON request, with one history a trace."""
    memory: defaultdict[str, History] = defaultdict(History)
    request = otlp.parse(body, "application/json", ReceiveConfig())
    return [read_span(span, memory[span.trace_id]) for span in spans(request, 1)]


def read_file(path: Path) -> list[Reading]:
    return read_request(path.read_bytes())


def all_messages(readings: list[Reading]) -> dict[str, Message]:
    """The messages by digest; of two that differ in a detail the one that the timeline takes."""
    known: dict[str, Message] = {}
    for message in (message for reading in readings for message in reading.messages):
        known[message.digest] = preferred(known.get(message.digest, message), message)
    return known


def converter(shared: Path) -> Any:
    """The module that turns transcripts into OTLP."""
    path = shared / "tools" / "to_otlp.py"
    spec = importlib.util.spec_from_file_location("to_otlp", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def converted(module: Any, record: dict[str, Any], **options: Any) -> list[Reading]:
    """The readings of a transcript sent in one of the converter's dialects."""
    request = module.build(record, module.Options(**options)).request
    return read_request(json.dumps(request).encode())
