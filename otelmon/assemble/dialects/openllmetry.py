"""OpenLLMetry (Traceloop): `traceloop.*` beside GenAI keys, and the older flattened
`gen_ai.prompt.N` / `gen_ai.completion.N`."""

from __future__ import annotations

from typing import Any

import msgspec

from otelmon.assemble.dialects import _flat, _tools, genai
from otelmon.assemble.dialects._definitions import definition, definitions
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
from otelmon.assemble.dialects._messages import from_item, langchain_fields, make
from otelmon.assemble.dialects._shows import Shows
from otelmon.assemble.dialects._wrappers import unwrap
from otelmon.assemble.history import Batch, History
from otelmon.assemble.values import compact
from otelmon.vocabulary.reading import Definition, Message, Reading
from otelmon.vocabulary.span import Attributes, Span

NAME = "openllmetry"
PRIORITY = 60
SHOWS = Shows(
    instrumentation="OpenLLMetry (Traceloop)",
    conversation="setting",
    timeouts="partly",
    setting="TRACELOOP_TRACE_CONTENT=true; Traceloop.set_association_properties({'session_id': ..., 'user_id': ...})",
    note="openai-agents reports a call that timed out as a result: it is known by its text. CrewAI has no tool spans.",
)

KIND = "traceloop.span.kind"
_PROMPT, _COMPLETION, _FUNCTIONS = "gen_ai.prompt.", "gen_ai.completion.", "llm.request.functions."
_FLATTENED = ("gen_ai.prompt.0.role", "gen_ai.completion.0.role")
_MARKERS = (KIND, "llm.request.type", *_FLATTENED)
_ASSOCIATION = "traceloop.association.properties."
_SESSION = tuple(_ASSOCIATION + k for k in ("session_id", "conversation_id", "thread_id", "chat_id"))
_USER = tuple(_ASSOCIATION + k for k in ("user_id", "userId"))
_AGENT = ("gen_ai.agent.name", _ASSOCIATION + "lc_agent_name")
_MCP_LIST = "tools/list"


def matches(span: Span) -> bool:
    attributes = span.attributes
    return any(marker in attributes for marker in _MARKERS) or any(key.startswith("traceloop.") for key in attributes)


def read(span: Span, history: History) -> Reading:
    """A span by its Traceloop kind, else by its GenAI operation."""
    kind = _kind(span)
    if kind == "tool":
        return _read_tool(span)
    if kind == "model":
        return _read_model(span, history)
    if kind == "agent":
        return _read_agent(span, history)
    return msgspec.structs.replace(_base(span, "other"), definitions=_listed(span))


def _kind(span: Span) -> str:
    kind = span.attributes.get(KIND)
    if kind in ("workflow", "agent"):
        return "agent"
    if kind == "tool":
        return "other" if span.name.startswith(_MCP_LIST) else "tool"
    if kind is not None:
        return "other"
    operation = span.attributes.get(genai.OPERATION) or span.attributes.get("llm.request.type")
    flattened = any(key in span.attributes for key in _FLATTENED)
    if operation in (*genai.MODEL_OPERATIONS, "completion") or (operation is None and flattened):
        return "model"
    if operation in genai.AGENT_OPERATIONS:
        return "agent"
    return "tool" if operation == "execute_tool" else "other"


def _base(span: Span, kind: Any, **fields: Any) -> Reading:
    attributes = span.attributes
    named = ("traceloop.entity.name", "traceloop.workflow.name") if kind == "agent" else ()
    return reading(
        span,
        NAME,
        kind,
        conversation=first_text(attributes, "gen_ai.conversation.id", "session.id", *_SESSION),
        principal=first_text(attributes, "user.id", "enduser.id", *_USER),
        agent_name=first_text(attributes, *_AGENT, *named),
        **fields,
    )


def _read_tool(span: Span) -> Reading:
    attributes = span.attributes
    raw_name = first_text(attributes, "gen_ai.tool.name", "traceloop.entity.name") or _name_of(span.name)
    if not raw_name:
        return _base(span, "other")
    value = attributes.get("gen_ai.tool.call.arguments", attributes.get("traceloop.entity.input"))
    called, wrapped_id = unwrap(_tools.arguments(span, value))
    tool = _tools.fields(
        span,
        raw_name,
        call_id=call_id_of(attributes.get("gen_ai.tool.call.id")) or wrapped_id,
        called=called,
        returned=_result(span),
        server=_server(attributes),
        description=first_text(attributes, "gen_ai.tool.description") or "",
    )
    return _base(span, "tool", tool=tool, content=tool_content(tool))


def _name_of(span_name: str) -> str:
    for suffix in (".tool", ".mcp"):
        span_name = span_name.removesuffix(suffix)
    return span_name.removeprefix("execute_tool ")


def _server(attributes: Attributes) -> str | None:
    workflow = attributes.get("traceloop.workflow.name")
    return workflow.removesuffix(".mcp") if isinstance(workflow, str) and workflow.endswith(".mcp") else None


def _result(span: Span) -> _tools.Result:
    value = span.attributes.get("gen_ai.tool.call.result", span.attributes.get("traceloop.entity.output"))
    outer = structured(value)
    if not isinstance(outer, dict):
        return _tools.result(span, value)
    if "output" in outer and langchain_fields(outer["output"]) is not None:
        return _tools.result(span, outer["output"])
    if "output" in outer and outer.keys() <= {"output", "kwargs"} and "langchain" in span.scope.name:
        return _tools.result(span, outer["output"])
    if "result" in outer and outer.keys() <= {"result", "is_error"} and span.scope.name.endswith(".mcp"):
        found = _tools.result(span, outer["result"])
        failed = outer.get("is_error")
        return msgspec.structs.replace(found, is_error=failed) if isinstance(failed, bool) else found
    return _tools.result(span, value)


def _read_model(span: Span, history: History) -> Reading:
    """A model span: GenAI messages, or the flattened ones of older releases."""
    attributes = span.attributes
    prompts, completions = _flat.rows(attributes, _PROMPT), _flat.rows(attributes, _COMPLETION)
    if not prompts and not completions:
        found = genai.read_messages(span, history, NAME, "model")
        base = _base(span, "model")
        found = msgspec.structs.replace(
            found, conversation_id=base.conversation_id, principal=base.principal, agent_name=base.agent_name
        )
        return found if found.definitions else msgspec.structs.replace(found, definitions=_functions(attributes))
    entered, left = _messages(_PROMPT, prompts, history), _messages(_COMPLETION, completions, history)
    torn = _flat.gaps(prompts) or any("role" not in row for row in prompts.values())
    cut = torn or value_limit(span) is not None
    return msgspec.structs.replace(
        _base(span, "model", content=content_of(True, span, cut)),
        input=entered.digests,
        output=left.digests,
        messages=entered.messages + left.messages,
        definitions=_functions(attributes) or definitions(attributes.get("gen_ai.tool.definitions")),
        history_complete=bool(prompts) and not cut,
    )


def _functions(attributes: Attributes) -> tuple[Definition, ...]:
    return tuple(d for d in map(definition, _flat.rows(attributes, _FUNCTIONS).values()) if d is not None)


def _messages(prefix: str, found: _flat.Rows, history: History) -> Batch:
    listed = list(found.values())
    speaker = {"role": "assistant"} if prefix == _COMPLETION else {}
    return history.items([_flat.fingerprint(prefix, row) for row in listed], lambda i: _message(speaker | listed[i]))


def _message(row: dict[str, Any]) -> list[Message]:
    content = row.get("content")
    if isinstance(content, str) and content.startswith('[{"type"'):
        content = structured(content) or content
    calls = list(_flat.rows(row, "tool_calls.").values())
    return from_item({**row, "content": content, "tool_calls": calls})


def _read_agent(span: Span, history: History) -> Reading:
    """A workflow or agent: its messages, else the question and the answer of the decorated function."""
    found = genai.read_messages(span, history, NAME, "agent")
    base = _base(span, "agent")
    entered, left = Batch(found.input, found.messages), Batch(found.output)
    if not found.input and not found.output:
        entered = history.send(_question(structured(span.attributes.get("traceloop.entity.input"))))
        left = history.send(_answer(span.attributes.get("traceloop.entity.output")))
    return msgspec.structs.replace(
        base,
        input=entered.digests,
        output=left.digests,
        messages=entered.messages + left.messages,
        definitions=found.definitions,
        content=found.content,
    )


def _question(value: Any) -> list[Message]:
    """The user's text among the inputs of a run; nothing when it is not plain which one it is."""
    if isinstance(value, str):
        return [make("user", value)] if value else []
    if not isinstance(value, dict):
        return []
    inputs = value.get("inputs")
    if isinstance(inputs, dict) and isinstance(inputs.get("messages"), list):
        return _last(inputs["messages"], "user")
    args, kwargs = value.get("args"), value.get("kwargs")
    given = [*(args if isinstance(args, list) else ()), *(kwargs.values() if isinstance(kwargs, dict) else ())]
    texts = [a for a in given if isinstance(a, str) and a]
    return [make("user", texts[0])] if len(texts) == 1 else []


def _answer(value: Any) -> list[Message]:
    found = structured(value)
    if found is None and isinstance(value, str) and value[:1] not in ("{", "["):
        found = value
    if isinstance(found, dict):
        outputs = found.get("outputs")
        if isinstance(outputs, dict) and isinstance(outputs.get("messages"), list):
            return _last(outputs["messages"], "assistant")
    text = text_of(found) if not isinstance(found, dict | list) else compact(found)
    return [make("assistant", text)] if text else []


def _last(items: list[Any], role: Any) -> list[Message]:
    said = [m for item in items[-50:] for m in from_item(item) if m.role == role and m.text]
    return [make(role, said[-1].text)] if said else []


def _listed(span: Span) -> tuple[Definition, ...]:
    """The definitions that an MCP server answered with."""
    if not span.name.startswith(_MCP_LIST):
        return ()
    value = structured(span.attributes.get("gen_ai.tool.call.result", span.attributes.get("traceloop.entity.output")))
    if isinstance(value, dict) and isinstance(value.get("result"), str | dict | list):
        value = structured(value["result"])
    if isinstance(value, dict):
        value = value.get("tools")
    return definitions(value) if isinstance(value, list) else ()
