"""Vercel AI SDK: `ai.operationId` (core telemetry of 5 and 6, the legacy one of 7)."""

from __future__ import annotations

from typing import Any

import msgspec

from otelmon.assemble.dialects import _tools, genai
from otelmon.assemble.dialects._definitions import definitions
from otelmon.assemble.dialects._fields import call_id_of, content_of, first_text, reading, structured, tool_content
from otelmon.assemble.dialects._messages import from_item, make
from otelmon.assemble.dialects._shows import Shows
from otelmon.assemble.history import History
from otelmon.vocabulary.reading import Message, Reading
from otelmon.vocabulary.span import Attributes, Span

NAME = "vercel"
PRIORITY = 80
SHOWS = Shows(
    instrumentation="Vercel AI SDK 5 and 6, and 7 with LegacyOpenTelemetry",
    conversation="setting",
    setting="experimental_telemetry: { isEnabled: true, recordInputs: true, recordOutputs: true, "
    "metadata: { sessionId, userId } }",
    note="Version 7 drops the metadata.",
)

OPERATION = "ai.operationId"
_METADATA = "ai.telemetry.metadata."
_SESSION = tuple(_METADATA + k for k in ("sessionId", "conversationId", "threadId", "chatId", "session_id"))
_USER = tuple(_METADATA + k for k in ("userId", "user_id"))
_RUNS = ("ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject")


def matches(span: Span) -> bool:
    return OPERATION in span.attributes


def read(span: Span, history: History) -> Reading:
    """A span by its operation: a tool call, a call of the model, or the run around them."""
    operation = span.attributes.get(OPERATION)
    if operation == "ai.toolCall":
        return _read_tool(span)
    if isinstance(operation, str) and operation.endswith((".doGenerate", ".doStream")):
        return _read_model(span, history)
    if operation in _RUNS:
        return _read_run(span, history)
    return _base(span, "other")


def _base(span: Span, kind: Any, **fields: Any) -> Reading:
    attributes = span.attributes
    return reading(
        span,
        NAME,
        kind,
        conversation=first_text(attributes, "gen_ai.conversation.id", "session.id", *_SESSION),
        principal=first_text(attributes, "user.id", "enduser.id", *_USER),
        agent_name=first_text(attributes, "gen_ai.agent.name", "ai.telemetry.functionId"),
        model=first_text(
            attributes, "gen_ai.response.model", "ai.response.model", "gen_ai.request.model", "ai.model.id"
        ),
        **fields,
    )


def _read_tool(span: Span) -> Reading:
    attributes = span.attributes
    raw_name = first_text(attributes, "ai.toolCall.name")
    if raw_name is None:
        return _base(span, "other")
    tool = _tools.fields(
        span,
        raw_name,
        call_id=call_id_of(attributes.get("ai.toolCall.id")),
        called=_tools.arguments(span, attributes.get("ai.toolCall.args", attributes.get("ai.toolCall.input"))),
        returned=_tools.result(span, attributes.get("ai.toolCall.result", attributes.get("ai.toolCall.output"))),
    )
    return _base(span, "tool", tool=tool, content=tool_content(tool))


def _read_model(span: Span, history: History) -> Reading:
    attributes = span.attributes
    entered = genai.message_batch("ai.prompt.messages", attributes.get("ai.prompt.messages"), history, from_item)
    left = history.send(_response(attributes))
    return msgspec.structs.replace(
        _base(span, "model", content=content_of(bool(entered.digests or left.digests), span, entered.truncated)),
        input=entered.digests,
        output=left.digests,
        messages=entered.messages + left.messages,
        definitions=definitions(attributes.get("ai.prompt.tools")),
        history_complete=bool(entered.digests) and not entered.truncated,
    )


def _response(attributes: Attributes, calls: bool = True) -> list[Message]:
    """The model's answer: text and, for a single step, the calls it asked for."""
    text = first_text(attributes, "ai.response.text", "ai.response.object")
    parts: list[Any] = [{"type": "text", "text": text}] if text else []
    asked = structured(attributes.get("ai.response.toolCalls")) if calls else None
    if isinstance(asked, list):
        parts.extend({**call, "type": "tool-call"} for call in asked if isinstance(call, dict))
    return from_item({"role": "assistant", "content": parts}) if parts else []


def _read_run(span: Span, history: History) -> Reading:
    """A run: its prompt and its last text. The calls listed on it are those of all its steps."""
    attributes = span.attributes
    entered = history.send(_prompt(structured(attributes.get("ai.prompt"))))
    left = history.send(_response(attributes, calls=False))
    return msgspec.structs.replace(
        _base(span, "agent"),
        input=entered.digests,
        output=left.digests,
        messages=entered.messages + left.messages,
    )


def _prompt(prompt: Any) -> list[Message]:
    if not isinstance(prompt, dict):
        return []
    messages: list[Message] = []
    system = prompt.get("system")
    if isinstance(system, str) and system:
        messages.append(make("system", system))
    asked = prompt.get("prompt")
    if isinstance(asked, str) and asked:
        messages.append(make("user", asked))
    for key in ("messages", "prompt"):
        listed = prompt.get(key)
        if isinstance(listed, list):
            messages.extend(m for item in listed for m in from_item(item))
    return messages
