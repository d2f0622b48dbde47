"""GenAI semantic conventions (`gen_ai.*`): the OpenTelemetry instrumentations, `@ai-sdk/otel` and
whoever else follows them. Dialects of frameworks that do build on what is here.

Content stands in attributes, in one details event, or in the older forms: an event a message, or the
whole prompt and completion as one value.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import msgspec

from otelmon.assemble.dialects import _events, _payloads, _tools
from otelmon.assemble.dialects._definitions import definitions
from otelmon.assemble.dialects._definitions import make as defined
from otelmon.assemble.dialects._fields import (
    call_id_of,
    content_of,
    first_text,
    reading,
    structured,
    text_of,
    tool_content,
)
from otelmon.assemble.dialects._messages import Rename, from_item, make, same_name
from otelmon.assemble.dialects._shows import Shows
from otelmon.assemble.history import Batch, History
from otelmon.assemble.values import hidden, plain, stable_bytes
from otelmon.vocabulary.reading import Kind, Message, Reading
from otelmon.vocabulary.span import Attributes, Span

NAME = "genai"
PRIORITY = 100

OPERATION = "gen_ai.operation.name"
MODEL_OPERATIONS = ("chat", "text_completion", "generate_content")
AGENT_OPERATIONS = ("invoke_agent", "invoke_workflow")
_ARGUMENTS = ("gen_ai.tool.call.arguments", "tool_arguments")
_RESULT = ("gen_ai.tool.call.result", "tool_response")
_DETAILS = "gen_ai.client.inference.operation.details"
_PROMPT, _COMPLETION = "gen_ai.prompt", "gen_ai.completion"
_CALLED = "gen_ai.tool.message"
CAPTURE = (
    "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental "
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY"
)
SHOWS = Shows(
    instrumentation="OpenTelemetry GenAI conventions (opentelemetry-instrumentation-genai-*, @ai-sdk/otel)",
    arguments="setting",
    results="setting",
    definitions="setting",
    user_text="setting",
    final_message="setting",
    conversation="partly",
    setting=CAPTURE,
    note="The conversation id stands on model and agent spans only. openai-agents reports a call that timed out "
    "as a result: it is known by its text.",
)


def matches(span: Span) -> bool:
    return OPERATION in span.attributes


def read(span: Span, history: History) -> Reading:
    """A span by its operation; operations we have no word for are `other`."""
    return read_as(span, history, NAME)


def read_as(span: Span, history: History, dialect: str) -> Reading:
    """The same for dialects that build on these conventions."""
    operation = span.attributes.get(OPERATION)
    if operation == "execute_tool":
        return read_tool(span, dialect)
    if operation in MODEL_OPERATIONS:
        return read_messages(span, history, dialect, "model")
    if operation in AGENT_OPERATIONS:
        return read_messages(span, history, dialect, "agent")
    found = renamed(definitions(span.attributes.get("gen_ai.tool.definitions")), rename_for(span))
    kind: Kind = "setup" if operation == "create_agent" else "other"
    return msgspec.structs.replace(reading(span, dialect, kind), definitions=found)


def read_tool(span: Span, dialect: str) -> Reading:
    """An execute_tool span. One without a name is no call that anything could judge: `other`."""
    attributes = span.attributes
    raw_name = first_text(attributes, "gen_ai.tool.name") or span.name.removeprefix("execute_tool ").strip()
    if not raw_name:
        return reading(span, dialect, "other")
    tool = _tools.fields(
        span,
        raw_name,
        name=rename_for(span)(raw_name),
        call_id=call_id_of(attributes.get("gen_ai.tool.call.id")),
        called=_tools.arguments(span, _first(_pick(attributes, _ARGUMENTS), _told(span, _CALLED, "content"))),
        returned=_tools.result(span, _first(_pick(attributes, _RESULT), _told(span, _events.CHOICE, "message"))),
        description=first_text(attributes, "gen_ai.tool.description") or "",
        extra=("is_error",) if attributes.get("gen_ai.tool.status") == "error" else (),
    )
    schema = structured(attributes.get("gen_ai.tool.json_schema"))
    defines = (defined(tool.name, tool.description, schema),) if isinstance(schema, dict) else ()
    base = reading(span, dialect, "tool", tool=tool, content=tool_content(tool))
    return msgspec.structs.replace(base, definitions=defines) if defines else base


def _first(value: Any, other: Any) -> Any:
    return other if value is None else value


def _told(span: Span, name: str, key: str) -> Any:
    """What an event of the tool span says instead of an attribute."""
    return next((e.attributes[key] for e in span.events if e.name == name and key in e.attributes), None)


def read_messages(span: Span, history: History, dialect: str, kind: str) -> Reading:
    """A model or agent span with its messages and definitions."""
    attributes = _with_details(span)
    rename = rename_for(span)
    system = _system(attributes.get("gen_ai.system_instructions"), history)
    entered, left = _exchange(span, attributes, history, rename, kind)
    before = system + entered
    if system.digests and entered.digests[: len(system.digests)] == system.digests:  # said in both places
        before = Batch(entered.digests, before.messages, before.truncated)
    cut = before.truncated or left.truncated or (span.dropped_events_count > 0 and bool(span.events))
    seen = bool(entered.digests or left.digests)
    base = reading(span, dialect, "agent" if kind == "agent" else "model")
    tools = renamed(definitions(attributes.get("gen_ai.tool.definitions")), rename)
    content = _hidden(attributes) or (
        "truncated" if cut else "full" if kind == "agent" else content_of(seen, span, cut)
    )
    return msgspec.structs.replace(
        base,
        content=content,
        input=before.digests,
        output=left.digests,
        messages=before.messages + left.messages,
        definitions=tools,
        history_complete=kind == "model" and not cut and starts_at_first_turn(attributes, entered),
    )


def _exchange(span: Span, attributes: Attributes, history: History, rename: Rename, kind: str) -> tuple[Batch, Batch]:
    """What went in and what came out, in the newest form that the span has."""
    entered = _messages(attributes, "gen_ai.input.messages", history, rename)
    left = _messages(attributes, "gen_ai.output.messages", history, rename, final=kind == "agent")
    if entered.digests or left.digests:
        return entered, left
    if kind == "agent" and "pydantic_ai.all_messages" in attributes:
        return _messages(attributes, "pydantic_ai.all_messages", history, rename), _final(attributes, history)
    told = _events.of_span(span.events)
    if told:
        given, answered = _events.split(told)
        return send_items(history, given, rename), send_items(history, _trimmed(answered), rename)
    prompt, completion = _whole(span, _events.PROMPT, _PROMPT), _whole(span, _events.COMPLETION, _COMPLETION)
    asked, said = _payloads.entered(_opened(prompt)), _payloads.left(_opened(completion))
    return send_items(history, asked, rename), send_items(history, said, rename)


def send_items(history: History, items: list[Any], rename: Rename = same_name) -> Batch:
    """The messages of items; those seen before in this trace are not read again."""
    plain_items = [plain(item) for item in items]
    marks: list[Hashable] = [("item", hash(stable_bytes(item))) for item in plain_items]
    return history.items(marks, lambda i: from_item(plain_items[i], rename))


def _trimmed(items: list[Any]) -> list[Any]:
    """Answers without the line break that Strands puts behind an agent's."""
    return [{**i, "content": i["content"].rstrip("\n")} if isinstance(i.get("content"), str) else i for i in items]


def _whole(span: Span, event: str, key: str) -> Any:
    value = span.attributes.get(key)
    return value if value is not None else _told(span, event, key)


def _opened(value: Any) -> Any:
    found = structured(value)
    if found is None or isinstance(found, int | float | bool):
        return value if isinstance(value, str) else None
    if isinstance(found, list) and all(isinstance(item, str) for item in found):
        return "\n".join(found)
    return found


def _hidden(attributes: Attributes) -> str | None:
    """How the messages are hidden, when a stand-in is in their place."""
    values = (attributes.get(key) for key in ("gen_ai.input.messages", "gen_ai.output.messages"))
    return next((word for word in (hidden(v) for v in values if isinstance(v, str)) if word), None)


def rename_for(span: Span) -> Rename:
    """Semantic Kernel names a tool `plugin-function`; the function is the tool."""
    return _without_plugin if span.scope.name.startswith("semantic_kernel.") else same_name


def _without_plugin(name: str) -> str:
    return name.partition("-")[2] or name


def renamed(found: tuple[Any, ...], rename: Rename) -> tuple[Any, ...]:
    """Definitions under their canonical names."""
    if rename is same_name:
        return found
    return tuple(msgspec.structs.replace(d, name=rename(d.name)) for d in found)


def starts_at_first_turn(attributes: Attributes, entered: Batch) -> bool:
    """Whether the input shows everything the model saw: not when the provider keeps the state."""
    if not entered.digests:
        return False
    return first_text(attributes, "gen_ai.request.previous_response_id", "openai.request.previous_response_id") is None


def _with_details(span: Span) -> Attributes:
    """Attributes of the span, completed from the event that may carry the content instead."""
    attributes = span.attributes
    for event in span.events:
        if event.name == _DETAILS:
            attributes = {**event.attributes, **attributes}
    return attributes


def _pick(attributes: Attributes, keys: tuple[str, ...]) -> Any:
    return next((attributes[k] for k in keys if attributes.get(k) is not None), None)


def _system(value: Any, history: History) -> Batch:
    """System instructions: parts, or plain text; each part is a message of its own."""
    if value is None:
        return Batch()
    parts = structured(value)
    if parts is None:
        text = text_of(value)
        return history.send([make("system", text)] if text else [])
    parts = parts if isinstance(parts, list) else [parts]
    texts = [p if isinstance(p, str) else p.get("content", p.get("text")) for p in parts if isinstance(p, str | dict)]
    return history.send([make("system", text) for text in texts if isinstance(text, str) and text])


def _messages(attributes: Attributes, key: str, history: History, rename: Rename, final: bool = False) -> Batch:
    """The messages under a key: JSON text or structured values."""
    value = attributes.get(key)

    def read_item(item: Any) -> list[Message]:
        return without_finished_requests(from_item(item, rename), item) if final else from_item(item, rename)

    return message_batch(key, value, history, read_item)


def message_batch(key: str, value: Any, history: History, read_item: Any) -> Batch:
    """Messages of a list attribute, whatever its encoding; a cut list gives its whole elements."""
    if isinstance(value, str):
        return history.array(key, value, read_item) or Batch()
    if isinstance(value, list | tuple):
        items = [plain(item) for item in value]
        marks: list[Hashable] = [(key, hash(stable_bytes(item))) for item in items]
        return history.items(marks, lambda i: read_item(items[i]))
    return Batch()


def without_finished_requests(messages: list[Message], item: Any) -> list[Message]:
    """An agent's answer that also lists the calls and results of the whole run is only the answer."""
    if not isinstance(item, dict) or item.get("finish_reason") != "stop":
        return messages
    return [make(m.role, m.text) if m.requests and m.text else m for m in messages if m.role == "assistant"]


def _final(attributes: Attributes, history: History) -> Batch:
    """pydantic-ai's last answer, when the span has its result as text."""
    text = attributes.get("final_result")
    return history.send([make("assistant", text)]) if isinstance(text, str) and text else Batch()
