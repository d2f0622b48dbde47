"""OpenInference (Arize): `openinference.span.kind`, flattened `llm.*` messages, `input.value`."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from otelmon.assemble.dialects import _flat, _payloads, _tools
from otelmon.assemble.dialects._definitions import definitions
from otelmon.assemble.dialects._fields import (
    call_id_of,
    content_of,
    first_text,
    reading,
    structured,
    text_of,
    tool_content,
    value_limit,
)
from otelmon.assemble.dialects._messages import blocks_text, from_item, make
from otelmon.assemble.dialects._shows import Shows
from otelmon.assemble.dialects._wrappers import unwrap
from otelmon.assemble.history import Batch, History
from otelmon.assemble.values import Decoded, compact, parse_repr
from otelmon.vocabulary.reading import Message, Reading, RequestedCall
from otelmon.vocabulary.span import Attributes, Span

NAME = "openinference"
PRIORITY = 20
SHOWS = Shows(
    instrumentation="OpenInference (Arize Phoenix)",
    definitions="partly",
    conversation="setting",
    timeouts="partly",
    setting="OPENINFERENCE_HIDE_INPUTS=false OPENINFERENCE_HIDE_OUTPUTS=false; "
    "using_attributes(session_id=..., user_id=...) around the run",
    note="Definitions are on model spans, so an instrumentation of the model client is needed. openai-agents reports "
    "a call that timed out as a result: it is known by its text.",
)

KIND = "openinference.span.kind"
_INPUT, _OUTPUT = "llm.input_messages.", "llm.output_messages."
_TOOLS = "llm.tools."
_SESSION = ("session_id", "conversation_id", "thread_id")
_REDACTED = "__REDACTED__"
_ANSWER_TOOL = "final_answer"
_PYTHON_OBJECT = re.compile(r"^[A-Za-z_][\w.]*\(|^None$")
_QUESTION_KEYS = ("task", "input", "query", "question", "prompt")
_ANSWER_KEYS = ("raw", "output", "answer", "response", "result", "text")


def matches(span: Span) -> bool:
    return KIND in span.attributes


def read(span: Span, history: History) -> Reading:
    """A span by its kind. A CHAIN is a wrapper, except at the root, where it is the run."""
    kind = text_of(span.attributes.get(KIND)) or ""
    kind = kind.upper()
    if kind == "TOOL":
        return _read_tool(span)
    if kind == "LLM":
        return _read_model(span, history)
    if kind == "AGENT" or (kind == "CHAIN" and not span.parent_span_id):
        return _read_agent(span, history, kind)
    return _base(span, "other")


def _base(span: Span, kind: Any, agent_name: str | None = None, **fields: Any) -> Reading:
    session, user, agent = _metadata(span.attributes)
    return reading(
        span,
        NAME,
        kind,
        conversation=first_text(span.attributes, "session.id", "gen_ai.conversation.id") or session,
        principal=first_text(span.attributes, "user.id", "enduser.id") or user,
        agent_name=first_text(span.attributes, "agent.name", "gen_ai.agent.name") or agent or agent_name,
        **fields,
    )


def _metadata(attributes: Attributes) -> tuple[str | None, str | None, str | None]:
    """(session, user, agent) that a framework left in the run's metadata."""
    found = structured(attributes.get("metadata"))
    if not isinstance(found, dict):
        return None, None, None
    return first_text(found, *_SESSION), first_text(found, "user_id", "userId"), first_text(found, "lc_agent_name")


def _read_tool(span: Span) -> Reading:
    attributes = span.attributes
    raw_name = first_text(attributes, "tool.name", "gen_ai.tool.name") or _name_of(span.name)
    if not raw_name or (raw_name == _ANSWER_TOOL and _answers_by_tool(span)):
        return _base(span, "other")
    called, wrapped_id = unwrap(_arguments(span))
    returned = _result(span)
    silent = span.status_code == 2 and not (span.status_message or span.events or returned.text)
    tool = _tools.fields(
        span,
        raw_name,
        call_id=call_id_of(attributes.get("tool.id")) or call_id_of(attributes.get("tool_call.id")) or wrapped_id,
        called=called,
        returned=returned,
        description=first_text(attributes, "tool.description") or "",
        extra=("no_reason",) if silent else (),
    )
    return _base(span, "tool", tool=tool, content=tool_content(tool))


def _name_of(span_name: str) -> str:
    """The tool in a span's name. Handing over to another agent is traced as a tool and is none."""
    return "" if span_name.lower().startswith("handoff") else span_name.removesuffix(".run")


def _answers_by_tool(span: Span) -> bool:
    """smolagents ends a run by a tool call that does nothing: it is the last message, not a call."""
    return span.scope.name.endswith(".smolagents")


def _arguments(span: Span) -> Decoded:
    value = span.attributes.get("input.value")
    if value is None:
        parameters = structured(span.attributes.get("tool.parameters"))
        if isinstance(parameters, dict) and not _is_schema(parameters):
            return Decoded(parameters, None, "decoded")
    # LangChain writes the only argument of a tool bare, and then gives no type.
    bare = span.attributes.get("input.mime_type") != "application/json"
    return _tools.arguments(span, value, scalar=bare)


def _is_schema(parameters: dict[str, Any]) -> bool:
    """`tool.parameters` is the schema in some packages and the arguments in others."""
    if "properties" in parameters or parameters.get("type") == "object":
        return True
    return bool(parameters) and all(isinstance(v, dict) and "type" in v for v in parameters.values())


def _result(span: Span) -> _tools.Result:
    value = span.attributes.get("output.value")
    found = _tools.result(span, value)
    payload = found.value
    if isinstance(payload, dict) and isinstance(payload.get("blocks"), list) and "raw_output" in payload:
        text = blocks_text(payload["blocks"]) or compact(payload["raw_output"])
        failed = payload.get("is_error")
        raw = payload["raw_output"]
        return _tools.Result(
            text, raw if isinstance(raw, dict | list) else None, "decoded", failed if isinstance(failed, bool) else None
        )
    return found


def _read_model(span: Span, history: History) -> Reading:
    """An LLM span. One that has content but no messages wraps another: it is no call of a model."""
    attributes = span.attributes
    entered, entered_gaps = _messages(span, _INPUT, history)
    left, left_gaps = _messages(span, _OUTPUT, history)
    tools = definitions([r["tool.json_schema"] for r in _flat.rows(attributes, _TOOLS).values() if "tool.json_schema" in r])  # fmt: skip
    if not entered.digests and first_text(attributes, "llm.prompts"):
        entered = history.send(_prompts(attributes["llm.prompts"]))
        left = left if left.digests else history.send(_completion(attributes))
    elif entered.digests and not left.digests:
        left = history.send(_completion(attributes))
    seen = bool(entered.digests or left.digests)
    if not seen and attributes.get("input.value") is not None:
        return msgspec.structs.replace(_base(span, "other"), definitions=tools)
    cut = entered_gaps or left_gaps or value_limit(span) is not None
    content = "redacted" if _REDACTED in attributes.values() else content_of(seen, span, cut)
    return msgspec.structs.replace(
        _base(span, "model", content=content),
        input=entered.digests,
        output=left.digests,
        messages=entered.messages + left.messages,
        definitions=tools,
        history_complete=bool(entered.digests) and not cut,
    )


def _prompts(value: Any) -> list[Message]:
    """The prompts of a completion that is no chat: a list, or one text."""
    found = structured(value)
    texts = found if isinstance(found, list) else [value]
    return [make("user", text) for text in texts if isinstance(text, str) and text]


def _completion(attributes: Attributes) -> list[Message]:
    """The answer where no output message shows it: the response of the model's API, or its text."""
    value = attributes.get("output.value")
    found = structured(value)
    if found is None:
        return [make("assistant", value)] if isinstance(value, str) and _is_prose(value) else []
    return [m for item in _payloads.left(found) for m in from_item(item) if m.role == "assistant"]


def _messages(span: Span, prefix: str, history: History) -> tuple[Batch, bool]:
    found = list(_flat.rows(span.attributes, prefix).items())
    by_tool = _answers_by_tool(span)
    marks = [_flat.fingerprint(prefix, row) for _, row in found]
    speaker = {"message.role": "assistant"} if prefix == _OUTPUT else {}
    batch = history.items(marks, lambda i: _message(speaker | found[i][1], by_tool))
    torn = any("message.role" not in row for _, row in found)
    return batch, torn or _flat.gaps(dict(found))


def _message(row: dict[str, Any], by_tool: bool) -> list[Message]:
    content: Any = row.get("message.content")
    parts = [_content(part) for part in _flat.rows(row, "message.contents.").values()]
    if parts and content in (None, ""):
        content = parts
    calls = [_call(call) for call in _flat.rows(row, "message.tool_calls.").values()]
    legacy = row.get("message.function_call_name")
    if legacy is not None:
        calls.append({"name": legacy, "arguments": row.get("message.function_call_arguments_json")})
    role = row.get("message.role")
    if by_tool and role in ("tool-call", "tool-response"):
        return _step(role, _text(content))
    item = {
        "role": role,
        "content": content,
        "tool_calls": calls,
        "tool_call_id": row.get("message.tool_call_id"),
        "name": row.get("message.name"),
    }
    messages = from_item(item)
    return [_answered(m) for m in messages] if by_tool else messages


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(p["text"] for p in content if isinstance(p.get("text"), str))
    return content if isinstance(content, str) else ""


def _step(role: str, text: str) -> list[Message]:
    """smolagents writes calls and results into its history as text, calls as a Python list."""
    _, _, body = text.partition("\n")
    if role == "tool-response":
        return from_item({"role": "tool", "content": body or text})
    try:
        calls = parse_repr(body)
    except ValueError:
        calls = []
    return from_item({"role": "assistant", "tool_calls": calls}) if calls else [make("assistant", text)]


def _content(part: dict[str, Any]) -> dict[str, Any]:
    fields = {k.removeprefix("message_content."): v for k, v in part.items()}
    return {"type": fields.get("type", "text" if "text" in fields else "image"), "text": fields.get("text")}


def _call(call: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": call.get("tool_call.id"),
        "name": call.get("tool_call.function.name"),
        "arguments": call.get("tool_call.function.arguments"),
    }


def _answered(message: Message) -> Message:
    """The message with the answer in place of the call that carries it."""
    answers = [r for r in message.requests if r.tool_name == _ANSWER_TOOL]
    if not answers:
        return message
    rest = tuple(r for r in message.requests if r.tool_name != _ANSWER_TOOL)
    texts = [message.text, *(_answer_text(a) for a in answers)]
    return make(message.role, "\n".join(t for t in texts if t), rest)


def _answer_text(call: RequestedCall) -> str:
    value = call.arguments.get("answer") if isinstance(call.arguments, dict) else call.arguments
    return value if isinstance(value, str) else "" if value is None else compact(value)


def _read_agent(span: Span, history: History, kind: str) -> Reading:
    """An agent span: its messages, else what went in and what came out."""
    attributes = span.attributes
    entered, _ = _messages(span, _INPUT, history)
    left, _ = _messages(span, _OUTPUT, history)
    if not entered.digests:
        entered = history.send(_exchanged(attributes.get("input.value"), "user"))
    if not left.digests:
        left = history.send(_exchanged(attributes.get("output.value"), "assistant"))
    name = first_text(attributes, "graph.node.id") or span.name.removesuffix(".run") if kind == "AGENT" else None
    return msgspec.structs.replace(
        _base(span, "agent", name),
        input=entered.digests,
        output=left.digests,
        messages=entered.messages + left.messages,
    )


def _is_prose(value: str) -> bool:
    return value[:1] not in ("", "{", "[") and not _PYTHON_OBJECT.match(value)


def _exchanged(value: Any, role: Any) -> list[Message]:
    """The question or the answer in an agent span's value: plain text, a list of messages (its last
    one of that role), or an object with one text that can be it."""
    found = structured(value)
    if found is None:
        return [make(role, value)] if isinstance(value, str) and _is_prose(value) else []
    if isinstance(found, str):
        return [make(role, found)] if found else []
    if not isinstance(found, dict):
        return []
    listed = found.get("messages")
    if isinstance(listed, list):
        said = [m for item in listed[-50:] for m in from_item(item) if m.role == role and m.text]
        return [make(role, said[-1].text)] if said else []
    text = first_text(found, *(_QUESTION_KEYS if role == "user" else _ANSWER_KEYS))
    return [make(role, text)] if text else []
