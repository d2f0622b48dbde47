"""LangSmith's OpenTelemetry export: `langsmith.span.kind`, content in `gen_ai.prompt` and
`gen_ai.completion`. It also sets GenAI operations, so it is asked before those."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from otelmon.assemble.dialects import _payloads, _tools, genai
from otelmon.assemble.dialects._definitions import definitions
from otelmon.assemble.dialects._fields import call_id_of, content_of, first_text, reading, structured, tool_content
from otelmon.assemble.dialects._shows import Shows
from otelmon.assemble.history import History
from otelmon.assemble.values import Decoded, decode_arguments
from otelmon.vocabulary.reading import Reading
from otelmon.vocabulary.span import Span, SpanEvent

NAME = "langsmith"
PRIORITY = 50
SHOWS = Shows(
    instrumentation="LangSmith (LANGSMITH_OTEL_ENABLED=true)",
    definitions="partly",
    conversation="setting",
    setting="metadata={'session_id': ..., 'user_id': ...} in the run's config; unset LANGSMITH_HIDE_INPUTS and "
    "LANGSMITH_HIDE_OUTPUTS",
    note="Failed runs may have the status OK; the exception's type stands in its message only. Environment "
    "variables are sent as metadata; otelmon reads none of them. Definitions are on model spans.",
)

KIND = "langsmith.span.kind"
_METADATA = "langsmith.metadata."
_SESSION = ("session.id", *(_METADATA + k for k in ("session_id", "conversation_id", "thread_id")), "langsmith.trace.session_id")  # fmt: skip
_USER = ("user.id", _METADATA + "user_id", _METADATA + "userId")
_PROMPT, _COMPLETION = "gen_ai.prompt", "gen_ai.completion"
_RAISED = re.compile(r"^([A-Za-z_][\w.]*)\((.*)\)$", re.DOTALL)
_TRACEBACK = "Traceback (most recent call last)"


def matches(span: Span) -> bool:
    return KIND in span.attributes


def read(span: Span, history: History) -> Reading:
    """A span by its kind. A chain is a wrapper, except at the root, where it is the run."""
    span = _with_exception(span)
    kind = span.attributes.get(KIND)
    if kind == "tool":
        return _read_tool(span)
    if kind == "llm":
        return _read_model(span, history)
    if kind == "chain" and not span.parent_span_id:
        return _read_agent(span, history)
    return _base(span, "other")


def _with_exception(span: Span) -> Span:
    """The exception with the type that its message begins with: `Exception` is all the event has."""
    events = tuple(_named(e) if e.name == "exception" else e for e in span.events)
    return span if events == span.events else msgspec.structs.replace(span, events=events)


def _named(event: SpanEvent) -> SpanEvent:
    message = event.attributes.get("exception.message")
    if event.attributes.get("exception.type") != "Exception" or not isinstance(message, str):
        return event
    raised = _RAISED.match(message.split(_TRACEBACK)[0].strip())
    if raised is None:
        return event
    said = raised[2].strip()
    said = said[1:-1] if len(said) > 1 and said[0] in "'\"" and said[-1] == said[0] else said
    told = {**event.attributes, "exception.type": raised[1], "exception.message": said}
    return msgspec.structs.replace(event, attributes=told)


def _base(span: Span, kind: Any, **fields: Any) -> Reading:
    attributes = span.attributes
    return reading(
        span,
        NAME,
        kind,
        conversation=first_text(attributes, *_SESSION),
        principal=first_text(attributes, *_USER),
        agent_name=first_text(attributes, _METADATA + "lc_agent_name") or (span.name if kind == "agent" else None),
        **fields,
    )


def _read_tool(span: Span) -> Reading:
    attributes = span.attributes
    tool = _tools.fields(
        span,
        first_text(attributes, "gen_ai.tool.name") or span.name,
        call_id=call_id_of(attributes.get("gen_ai.tool.call.id")),
        called=_called(span),
        returned=_tools.result(span, _returned(span)),
    )
    return _base(span, "tool", tool=tool, content=tool_content(tool))


def _called(span: Span) -> Decoded:
    """The inputs; LangChain gives the text of a call as its one input when it has nothing better."""
    found = _tools.arguments(span, None if _hides(span) else span.attributes.get(_PROMPT))
    value = found.value
    if isinstance(value, dict) and value.keys() == {"input"} and isinstance(value["input"], str):
        inner = decode_arguments(value["input"])
        if isinstance(inner.value, dict):
            return msgspec.structs.replace(inner, fidelity="decoded", text=None)
    return found


def _hides(span: Span) -> bool:
    """Hidden inputs and outputs are empty objects."""
    return span.attributes.get(_PROMPT) == "{}" and span.attributes.get(_COMPLETION) in (None, "{}")


def _returned(span: Span) -> Any:
    """The output; a failed run has an empty one."""
    raw = span.attributes.get(_COMPLETION)
    if raw == "{}" and (_hides(span) or any(e.name == "exception" for e in span.events)):
        return None
    value = structured(raw)
    return value["output"] if isinstance(value, dict) and value.keys() == {"output"} else raw


def _read_model(span: Span, history: History) -> Reading:
    attributes = span.attributes
    asked, said = structured(attributes.get(_PROMPT)), structured(attributes.get(_COMPLETION))
    entered = genai.send_items(history, _payloads.entered(asked))
    left = genai.send_items(history, _payloads.left(said))
    seen = bool(entered.digests or left.digests)
    cut = (asked is None and _PROMPT in attributes) or (said is None and _COMPLETION in attributes)
    return msgspec.structs.replace(
        _base(span, "model", content=content_of(seen, span, cut)),
        input=entered.digests,
        output=left.digests,
        messages=entered.messages + left.messages,
        definitions=definitions(attributes.get("gen_ai.tool.definitions") or _payloads.tools(asked)),
        history_complete=bool(entered.digests) and not cut,
    )


def _read_agent(span: Span, history: History) -> Reading:
    entered = history.send(_payloads.question(structured(span.attributes.get(_PROMPT))))
    failed = any(e.name == "exception" for e in span.events)
    left = history.send([] if failed else _payloads.answer(span.attributes.get(_COMPLETION)))
    return msgspec.structs.replace(
        _base(span, "agent"),
        input=entered.digests,
        output=left.digests,
        messages=entered.messages + left.messages,
    )
