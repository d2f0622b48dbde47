"""Langfuse SDK 3 to 5: `langfuse.observation.*`, from `@observe` and from its LangChain handler."""

from __future__ import annotations

from typing import Any

import msgspec

from otelmon.assemble.dialects import _payloads, _tools, genai
from otelmon.assemble.dialects._definitions import definitions
from otelmon.assemble.dialects._fields import (
    call_id_of,
    content_of,
    first_text,
    reading,
    structured,
    text_of,
    tool_content,
    was_cut,
)
from otelmon.assemble.dialects._messages import from_item, langchain_fields
from otelmon.assemble.dialects._shows import Shows
from otelmon.assemble.dialects._wrappers import unwrap
from otelmon.assemble.history import History
from otelmon.vocabulary.reading import Reading
from otelmon.vocabulary.span import Attributes, Span

NAME = "langfuse"
PRIORITY = 30
SHOWS = Shows(
    instrumentation="Langfuse SDK (@observe, LangChain handler)",
    definitions="partly",
    user_text="partly",
    final_message="partly",
    conversation="setting",
    timeouts="partly",
    setting="langfuse.propagate_attributes(session_id=..., user_id=...) around the run; "
    "@observe(as_type='generation') on the call of the model",
    note="The type of an exception is never recorded: a timeout is known by its message, and a failure without "
    "one has the outcome unknown. Messages and definitions are on generation observations only.",
)

_PREFIX = "langfuse.observation."
TYPE = _PREFIX + "type"
_INPUT, _OUTPUT, _LEVEL, _STATUS = (_PREFIX + k for k in ("input", "output", "level", "status_message"))
_METADATA = _PREFIX + "metadata."
_SESSION = ("session.id", "langfuse.session.id", "gen_ai.conversation.id")
_USER = ("user.id", "langfuse.user.id", "enduser.id")
_SESSION_METADATA = tuple(
    p + k for p in (_METADATA, "langfuse.trace.metadata.") for k in ("session_id", "conversation_id", "thread_id")
)
_USER_METADATA = tuple(p + "user_id" for p in (_METADATA, "langfuse.trace.metadata."))
_WRAPPERS = ("span", "chain")


def matches(span: Span) -> bool:
    return TYPE in span.attributes


def read(span: Span, history: History) -> Reading:
    """A span by its type. A span or chain is a wrapper, except at the root, where it is the run."""
    span = _with_status(span)
    kind = span.attributes.get(TYPE)
    if kind == "tool" or (kind in _WRAPPERS and _returned_by_tool(span)):
        return _read_tool(span)
    if kind == "generation":
        return _read_model(span, history)
    root = not span.parent_span_id or span.attributes.get("langfuse.internal.is_app_root") is True
    if kind == "agent" and _is_graph_node(span):
        return _base(span, "other")
    if kind == "agent" or (kind in _WRAPPERS and root):
        return _read_agent(span, history)
    return _base(span, "other")


def _is_graph_node(span: Span) -> bool:
    """LangGraph calls the step that asks the model `agent`; versions 3 and 4 take it for one."""
    return span.name == "agent" == metadata_of(span.attributes, _METADATA + "langgraph_node")


def _returned_by_tool(span: Span) -> bool:
    """Whether a span's output is the message of a tool of its name: older handlers had no type for tools."""
    output = structured(span.attributes.get(_OUTPUT))
    message = langchain_fields(output)
    return message is not None and message.get("type") == "tool" and message.get("name") == span.name


def _with_status(span: Span) -> Span:
    """Failures are a level of the observation too; some versions leave the span's status alone."""
    if span.attributes.get(_LEVEL) != "ERROR":
        return span
    said = first_text(span.attributes, _STATUS) or span.status_message
    return msgspec.structs.replace(span, status_code=2, status_message=said)


def metadata_of(attributes: Attributes, *keys: str) -> str | None:
    """The first of the metadata that holds text; each value is JSON of its own."""
    for key in keys:
        value = attributes.get(key)
        found = structured(value) if isinstance(value, str) and value[:1] == '"' else value
        text = text_of(found)
        if text is not None:
            return text
    return None


def _base(span: Span, kind: Any, **fields: Any) -> Reading:
    attributes = span.attributes
    agent = span.name if kind == "agent" else None
    return reading(
        span,
        NAME,
        kind,
        conversation=first_text(attributes, *_SESSION) or metadata_of(attributes, *_SESSION_METADATA),
        principal=first_text(attributes, *_USER) or metadata_of(attributes, *_USER_METADATA),
        agent_name=metadata_of(attributes, _METADATA + "lc_agent_name") or agent,
        model=first_text(attributes, _PREFIX + "model.name"),
        **fields,
    )


def _read_tool(span: Span) -> Reading:
    attributes = span.attributes
    called, wrapped_id = unwrap(_tools.arguments(span, _given(attributes), scalar=True))
    silent = attributes.get(_LEVEL) == "ERROR" and not span.status_message and not span.events
    tool = _tools.fields(
        span,
        span.name,
        call_id=call_id_of(metadata_of(attributes, _METADATA + "tool_call_id")) or wrapped_id,
        called=called,
        returned=_tools.result(span, attributes.get(_OUTPUT)),
        extra=("no_reason",) if silent else (),
    )
    return _base(span, "tool", tool=tool, content=tool_content(tool))


def _given(attributes: Attributes) -> Any:
    """The input; where it is the repr of the arguments, the metadata has them as JSON."""
    value, exact = attributes.get(_INPUT), attributes.get(_METADATA + "inputs")
    is_repr = isinstance(value, str) and value[:2] in ("{'", '{"') and structured(value) is None
    return exact if is_repr and isinstance(structured(exact), dict) else value


def _read_model(span: Span, history: History) -> Reading:
    attributes = span.attributes
    given, answered = attributes.get(_INPUT), attributes.get(_OUTPUT)
    cut = any(isinstance(v, str) and v[:1] in "[{" and structured(v) is None and was_cut(span, v) for v in (given, answered))  # fmt: skip
    asked = _value(given)
    items = _answers_named([item for item in _payloads.entered(asked) if not _is_definition(item)])
    entered = genai.send_items(history, items)
    left = genai.send_items(history, _payloads.left(_value(answered)))
    defined = [item["content"] for item in asked if _is_definition(item)] if isinstance(asked, list) else None
    seen = bool(entered.digests or left.digests)
    return msgspec.structs.replace(
        _base(span, "model", content=content_of(seen, span, cut)),
        input=entered.digests,
        output=left.digests,
        messages=entered.messages + left.messages,
        definitions=definitions(defined or _payloads.tools(asked)),
        history_complete=bool(entered.digests) and not cut,
    )


def _answers_named(items: list[Any]) -> list[Any]:
    """The items with the role of tool results where the handler wrote the tool's name: its requests tell."""
    names = {
        request.tool_name
        for item in items
        if isinstance(item, dict) and item.get("role") == "assistant"
        for message in from_item(item)
        for request in message.requests
    }
    return [
        {**item, "role": "tool", "name": item["role"]} if isinstance(item, dict) and item.get("role") in names else item
        for item in items
    ]


def _value(value: Any) -> Any:
    found = structured(value)
    return value if found is None and isinstance(value, str) and value[:1] not in ("{", "[") else found


def _is_definition(item: Any) -> bool:
    """The LangChain handler lists the tools among the messages, as messages of a tool."""
    if not isinstance(item, dict) or item.get("role") != "tool":
        return False
    content = item.get("content")
    return isinstance(content, dict) and content.get("type") == "function" and isinstance(content.get("function"), dict)


def _read_agent(span: Span, history: History) -> Reading:
    entered = history.send(_payloads.question(span.attributes.get(_INPUT)))
    left = history.send(_payloads.answer(span.attributes.get(_OUTPUT)))
    return msgspec.structs.replace(
        _base(span, "agent"),
        input=entered.digests,
        output=left.digests,
        messages=entered.messages + left.messages,
    )
