"""Spring AI: `spring.ai.kind`; its operation is `framework`, so it is asked before the conventions."""

from __future__ import annotations

from typing import Any

import msgspec

from otelmon.assemble.dialects import _tools, genai
from otelmon.assemble.dialects._definitions import make as defined
from otelmon.assemble.dialects._fields import first_text, reading, structured, tool_content
from otelmon.assemble.dialects._messages import make
from otelmon.assemble.dialects._shows import Shows
from otelmon.assemble.history import History
from otelmon.vocabulary.reading import Reading
from otelmon.vocabulary.span import Span

NAME = "spring_ai"
PRIORITY = 84
SHOWS = Shows(
    instrumentation="Spring AI 1.x and 2.x",
    arguments="setting",
    results="setting",
    definitions="partly",
    user_text="partly",
    final_message="partly",
    conversation="setting",
    setting="spring.ai.tools.observations.include-content=true; "
    "advisors.param(ChatMemory.CONVERSATION_ID, ...) on the chat client",
    note="Prompts and completions are logged, not traced. A definition is on the spans of its tool. No call id.",
)

KIND = "spring.ai.kind"
_TOOL = "spring.ai.tool.definition."
_CALL = "spring.ai.tool.call."
_SESSION = ("spring.ai.chat.client.conversation.id", "gen_ai.conversation.id", "session.id")


def matches(span: Span) -> bool:
    return KIND in span.attributes


def read(span: Span, history: History) -> Reading:
    """A span by its kind: a tool call, the chat client around a run, a call of the model."""
    attributes = span.attributes
    kind = attributes.get(KIND)
    if kind == "tool_call":
        return _read_tool(span)
    if kind == "chat_client":
        return _read_client(span, history)
    if attributes.get(genai.OPERATION) in genai.MODEL_OPERATIONS:
        found = genai.read_messages(span, history, NAME, "model")
        return msgspec.structs.replace(found, conversation_id=first_text(attributes, *_SESSION))
    return _base(span, "other")


def _base(span: Span, kind: Any, **fields: Any) -> Reading:
    return reading(span, NAME, kind, conversation=first_text(span.attributes, *_SESSION), **fields)


def _read_tool(span: Span) -> Reading:
    attributes = span.attributes
    raw_name = first_text(attributes, _TOOL + "name", "gen_ai.tool.name")
    raw_name = raw_name or span.name.removeprefix("execute_tool ").removeprefix("tool_call ")
    if not raw_name:
        return _base(span, "other")
    arguments = attributes.get(_CALL + "arguments", attributes.get("gen_ai.tool.call.arguments"))
    returned = attributes.get(_CALL + "result", attributes.get("gen_ai.tool.call.result"))
    tool = _tools.fields(
        span,
        raw_name,
        called=_tools.arguments(span, arguments),
        returned=_tools.result(span, returned),
        description=first_text(attributes, _TOOL + "description") or "",
    )
    schema = structured(attributes.get(_TOOL + "schema"))
    defines = (defined(tool.name, tool.description, schema),) if isinstance(schema, dict) else ()
    return msgspec.structs.replace(_base(span, "tool", tool=tool, content=tool_content(tool)), definitions=defines)


def _read_client(span: Span, history: History) -> Reading:
    """The run; the milestones before 1.0 had the prompt on it."""
    attributes = span.attributes
    system = first_text(attributes, "spring.ai.chat.client.system.text")
    user = first_text(attributes, "spring.ai.chat.client.user.text")
    said = ([make("system", system)] if system else []) + ([make("user", user)] if user else [])
    entered = history.send(said)
    return msgspec.structs.replace(_base(span, "agent"), input=entered.digests, messages=entered.messages)
