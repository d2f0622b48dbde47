"""Log records that carry what their span does not: GenAI events (the whole exchange in one record, or a
message each), Semantic Kernel's logging of the same, and Claude Code's tool events.

The event's name is a field, an attribute, or the text of the body; the body is structured, or JSON text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from otelmon.assemble.dialects import _events, _tools, genai
from otelmon.assemble.dialects._fields import call_id_of, first_text, reading, structured, tool_content
from otelmon.assemble.dialects._messages import from_item
from otelmon.assemble.history import History
from otelmon.assemble.values import Decoded, ends_in_cut_marker, plain
from otelmon.vocabulary.reading import Approval, Reading
from otelmon.vocabulary.span import LogRecord, Span

Reader = Callable[[Span, Any, History], Reading | None]

NAME = "genai"
_DETAILS = "gen_ai.client.inference.operation.details"
_CONTENT = ("gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions", "gen_ai.tool.definitions")
_MESSAGES = frozenset(name for name in _events.NAMES if name not in (_events.PROMPT, _events.COMPLETION))
_CLAUDE = "claude_code"
_TOOL_RESULT, _TOOL_DECISION = f"{_CLAUDE}.tool_result", f"{_CLAUDE}.tool_decision"
_DECISIONS = {"accept": "approved", "approved": "approved", "reject": "rejected", "rejected": "rejected"}


def known(record: LogRecord) -> bool:
    """Whether the record is an event that somebody here reads."""
    return _reader(record)[0] is not None


def carries(record: LogRecord) -> bool:
    """Whether `read` makes a reading of the record."""
    reader, body = _reader(record)
    return reader is not None and reader(as_span(record), body, History()) is not None


def read(record: LogRecord, history: History) -> Reading | None:
    """What the record says of the span it names; None when that is nothing of an agent.

    A record with the whole exchange has the kind of its span ("model", "agent"), one with a single message
    or with facts of a tool call is "other".
    """
    reader, body = _reader(record)
    found = None if reader is None else reader(as_span(record), body, history)
    return None if found is None else msgspec.structs.replace(found, supplement=True)


def as_span(record: LogRecord) -> Span:
    """The record in the form that dialects read: a span without length."""
    time = record.time_unix_nano
    return Span(
        record.trace_id, record.span_id, "", record.event_name, 0, time, time, 0, "", record.attributes, (),
        record.resource, record.scope, record.received_unix_nano, record.digest, record.dropped_attributes_count,
    )  # fmt: skip


def _reader(record: LogRecord) -> tuple[Reader | None, Any]:
    """Who reads the record, and its body decoded."""
    body = record.body
    name = record.event_name or first_text(record.attributes, "event.name") or ""
    if isinstance(body, str):
        if body.startswith(f"{_CLAUDE}."):
            name = body
        body = structured(body) if body[:1] == "{" else None
    if name in _MESSAGES:
        return (_read_message, (name, body)) if isinstance(body, dict) else (None, None)
    if name == _DETAILS:
        return _read_details, body
    if name in (_TOOL_RESULT, _TOOL_DECISION):
        return _read_claude, name
    return None, None


def _read_details(span: Span, body: Any, history: History) -> Reading | None:
    """The whole exchange, in attributes; an early form had them in the body."""
    if isinstance(body, dict) and not any(key in span.attributes for key in _CONTENT):
        span = msgspec.structs.replace(span, attributes={**span.attributes, **body})
    if not any(span.attributes.get(key) for key in _CONTENT):
        return None
    agent = span.attributes.get(genai.OPERATION) in genai.AGENT_OPERATIONS
    return genai.read_messages(span, history, NAME, "agent" if agent else "model")


def _read_message(span: Span, named: tuple[str, dict[str, Any]], history: History) -> Reading | None:
    """One message. Without its content (which a setting leaves out) it says nothing."""
    name, body = named
    inner = body.get("message")
    message = inner if isinstance(inner, dict) else body
    if message.get("content") in (None, "") and not _asks(message.get("tool_calls")):
        return None
    item = _events.item(name, plain(body))
    batch = history.send(from_item(item, genai.rename_for(span)) if item else [])
    left = name == _events.CHOICE
    content = "truncated" if span.dropped_attributes_count else "full"
    return msgspec.structs.replace(
        reading(span, NAME, "other", content=content),
        input=() if left else batch.digests,
        output=batch.digests if left else (),
        messages=batch.messages,
        history_complete=True,
    )


def _asks(calls: Any) -> bool:
    """Whether requested calls are shown with their arguments."""
    functions = [call.get("function") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    return any(isinstance(f, dict) and f.get("arguments") is not None for f in functions)


def _read_claude(span: Span, name: str, history: History) -> Reading | None:  # noqa: ARG001 - as every reader
    """What Claude Code says of a tool call beside its span: who allowed it, with what it was called, how it ended."""
    attributes = span.attributes
    raw_name = first_text(attributes, "tool_name")
    call_id = call_id_of(attributes.get("tool_use_id"))
    if raw_name is None or call_id is None:
        return None
    failed = name == _TOOL_RESULT and str(attributes.get("success", "")).lower() == "false"
    decision = _DECISIONS.get(first_text(attributes, "decision", "decision_type") or "")
    parameters = structured(attributes.get("tool_parameters"))
    tool = _tools.fields(
        span,
        raw_name,
        call_id=call_id,
        called=_given(span),
        returned=_tools.Result(),
        server=first_text(parameters, "mcp_server_name") if isinstance(parameters, dict) else None,
        extra=("is_error",) if failed and decision != "rejected" else (),
    )
    tool = msgspec.structs.replace(
        tool,
        error_message=first_text(attributes, "error") if failed else None,
        approval=None if decision is None else Approval(decision, first_text(attributes, "source", "decision_source") or ""),
    )  # fmt: skip
    return reading(span, _CLAUDE, "other", tool=tool, content=tool_content(tool))


def _given(span: Span) -> Decoded:
    """The arguments. Long values are cut one by one, so that the JSON stays whole."""
    decoded = _tools.arguments(span, span.attributes.get("tool_input"))
    if isinstance(decoded.value, dict) and any(isinstance(v, str) and ends_in_cut_marker(v) for v in decoded.value.values()):  # fmt: skip
        return msgspec.structs.replace(decoded, fidelity="truncated")
    return decoded
