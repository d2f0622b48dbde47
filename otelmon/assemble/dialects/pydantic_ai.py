"""Pydantic AI: formats 2 to 6 follow the GenAI conventions; the first one has `tool_arguments` and lists
of events in `events` and `all_messages_events`."""

from __future__ import annotations

import msgspec

from otelmon.assemble.dialects import _events, genai
from otelmon.assemble.dialects._definitions import definitions
from otelmon.assemble.dialects._fields import content_of, first_text, reading, structured
from otelmon.assemble.dialects._messages import from_item, make
from otelmon.assemble.dialects._shows import Shows
from otelmon.assemble.history import Batch, History
from otelmon.vocabulary.reading import Definition, Reading
from otelmon.vocabulary.span import Attributes, Span

NAME = "pydantic_ai"
PRIORITY = 90
SHOWS = Shows(
    instrumentation="Pydantic AI (format versions 1 to 6)",
    results="partly",
    conversation="partly",
    setting="InstrumentationSettings(include_content=True, version=5) of pydantic-ai 2",
    note="Before 1.0 tool spans have no result: it is read from the next model span. The conversation id is on "
    "every span when the run was given one.",
)

_SCOPES = ("pydantic-ai", "pydantic_ai")
_EVENTS, _ALL_EVENTS = "events", "all_messages_events"
_PARAMETERS = "model_request_parameters"
_TOOL_NAME = "gen_ai.tool.name"


def matches(span: Span) -> bool:
    attributes = span.attributes
    return span.scope.name in _SCOPES or _ALL_EVENTS in attributes or _PARAMETERS in attributes or (
        _TOOL_NAME in attributes and "tool_arguments" in attributes
    )  # fmt: skip


def read(span: Span, history: History) -> Reading:
    """A span by its operation, or without one as the first format writes it."""
    attributes = span.attributes
    operation = attributes.get(genai.OPERATION)
    if operation == "execute_tool":
        return _deferred(span, genai.read_tool(span, NAME))
    if operation in genai.MODEL_OPERATIONS:
        return _read_model(span, history)
    if operation is not None:
        return genai.read_as(span, history, NAME)
    if _TOOL_NAME in attributes:
        return genai.read_tool(span, NAME)
    if "agent_name" in attributes or _ALL_EVENTS in attributes:
        return _read_run(span, history)
    return reading(span, NAME, "other")


def _deferred(span: Span, found: Reading) -> Reading:
    """A call that waits for approval, or runs elsewhere, ends without result and without error."""
    tool = found.tool
    if tool is None or tool.arguments_fidelity == "absent" or tool.result_fidelity != "absent" or span.status_code == 2:
        return found
    return msgspec.structs.replace(
        found, tool=msgspec.structs.replace(tool, signals=tuple(sorted({*tool.signals, "pending"})))
    )


def _read_model(span: Span, history: History) -> Reading:
    found = genai.read_messages(span, history, NAME, "model")
    defined = found.definitions or _defined(span.attributes)
    if found.input or found.output or _EVENTS not in span.attributes:
        return msgspec.structs.replace(found, definitions=defined)
    entered, left = exchanged(span.attributes, _EVENTS, history)
    seen = bool(entered.digests or left.digests)
    cut = not seen and structured(span.attributes[_EVENTS]) is None
    return msgspec.structs.replace(
        found,
        content=content_of(seen, span, cut),
        input=entered.digests,
        output=left.digests,
        messages=entered.messages + left.messages,
        definitions=defined,
        history_complete=bool(entered.digests) and not cut,
    )


def exchanged(attributes: Attributes, key: str, history: History) -> tuple[Batch, Batch]:
    """(what went in, what came out) of a list of events, by the number that groups events to messages."""
    given, said = _events.split(_events.listed(attributes.get(key)))
    return genai.send_items(history, given), genai.send_items(history, said)


def _defined(attributes: Attributes) -> tuple[Definition, ...]:
    parameters = structured(attributes.get(_PARAMETERS))
    return definitions(parameters.get("function_tools")) if isinstance(parameters, dict) else ()


def _read_run(span: Span, history: History) -> Reading:
    """The agent run of the first format: all messages, the last of them the answer."""
    attributes = span.attributes
    given, said = _events.split(_events.listed(attributes.get(_ALL_EVENTS)))
    answered = [m for item in said for m in from_item(item) if m.text and not m.requests]
    entered = genai.send_items(history, given if answered else [*given, *said])
    result = first_text(attributes, "final_result")
    left = history.send(answered or ([make("assistant", result)] if result and structured(result) is None else []))
    return msgspec.structs.replace(
        reading(
            span,
            NAME,
            "agent",
            agent_name=first_text(attributes, "agent_name"),
            model=first_text(attributes, "model_name"),
        ),
        input=entered.digests,
        output=left.digests,
        messages=entered.messages + left.messages,
    )
