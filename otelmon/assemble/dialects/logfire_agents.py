"""Logfire's OpenAI integrations: spans named by their template (`Function: {name}`), messages in
`events`, JSON in every other attribute."""

from __future__ import annotations

from typing import Any

import msgspec

from otelmon.assemble.dialects import _payloads, _tools, genai, pydantic_ai
from otelmon.assemble.dialects._definitions import definitions
from otelmon.assemble.dialects._fields import content_of, first_text, reading, structured, tool_content
from otelmon.assemble.dialects._shows import Shows
from otelmon.assemble.history import History
from otelmon.vocabulary.reading import Reading
from otelmon.vocabulary.span import Attributes, Span

NAME = "logfire_agents"
PRIORITY = 92
SHOWS = Shows(
    instrumentation="Logfire (instrument_openai_agents, instrument_openai)",
    conversation="setting",
    timeouts="partly",
    setting="trace(group_id=...) of the agents SDK around the run",
    note="A call that timed out is reported as a result and known by its text; the type of other failures is not "
    "recorded. There is no call id on tool spans.",
)

_TEMPLATE = "logfire.msg_template"
_FUNCTION = "Function: {name}"
_AGENT = "Agent run: {name!r}"
_TRACE = "OpenAI Agents trace: {name}"
_SCOPES = ("logfire.openai_agents", "logfire.openai")


def matches(span: Span) -> bool:
    return span.scope.name in _SCOPES or span.attributes.get(_TEMPLATE) in (_FUNCTION, _AGENT, _TRACE)


def read(span: Span, history: History) -> Reading:
    """A span by its template, a call of a model by its operation or its request."""
    attributes = span.attributes
    template = attributes.get(_TEMPLATE)
    if template == _FUNCTION:
        return _read_tool(span)
    if template == _AGENT:
        return _base(span, "agent", agent_name=first_text(attributes, "name"))
    if template == _TRACE:
        return _base(span, "agent")
    if attributes.get(genai.OPERATION) in genai.MODEL_OPERATIONS or "request_data" in attributes:
        return _read_model(span, history)
    return _base(span, "other")


def _json(attributes: Attributes, key: str) -> Any:
    """A decoded attribute; absent ones are written as `null`."""
    value = attributes.get(key)
    return None if value == "null" else structured(value)


def _base(span: Span, kind: Any, **fields: Any) -> Reading:
    attributes = span.attributes
    metadata = _json(attributes, "metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    group = first_text(attributes, "group_id")
    return reading(
        span,
        NAME,
        kind,
        conversation=None if group == "null" else group or first_text(metadata, "session_id", "conversation_id"),
        principal=first_text(metadata, "user_id"),
        **fields,
    )


def _read_tool(span: Span) -> Reading:
    attributes = span.attributes
    raw_name = first_text(attributes, "name")
    if raw_name is None:
        return _base(span, "other")
    origin = _json(attributes, "mcp_data")
    failed = _json(attributes, "error")
    returned = attributes.get("output")
    tool = _tools.fields(
        span,
        raw_name,
        called=_tools.arguments(span, attributes.get("input")),
        returned=_tools.result(span, None if returned == "null" else returned),
        server=first_text(origin, "server") if isinstance(origin, dict) else None,
        extra=("is_error",) if isinstance(failed, dict) and failed else (),
    )
    return _base(span, "tool", tool=tool, content=tool_content(tool))


def _read_model(span: Span, history: History) -> Reading:
    attributes = span.attributes
    asked, said = _json(attributes, "request_data"), _json(attributes, "response_data")
    entered, left = pydantic_ai.exchanged(attributes, "events", history)
    if not entered.digests and not left.digests:
        entered = genai.send_items(history, _payloads.entered(asked or _json(attributes, "raw_input")))
        left = genai.send_items(history, _payloads.left(said or _json(attributes, "response")))
    seen = bool(entered.digests or left.digests)
    tools = _payloads.tools(asked) or _payloads.tools(_json(attributes, "response"))
    return msgspec.structs.replace(
        _base(span, "model", content=content_of(seen, span, False)),
        input=entered.digests,
        output=left.digests,
        messages=entered.messages + left.messages,
        definitions=definitions(tools),
        history_complete=bool(entered.digests) and genai.starts_at_first_turn(attributes, entered),
    )
