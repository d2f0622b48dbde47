"""Google ADK: 1.x writes `gcp.vertex.agent.*`, 2.x the GenAI conventions. A tool span of 1.x that failed
has nothing but its name."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from otelmon.assemble.dialects import _payloads, genai
from otelmon.assemble.dialects._definitions import definitions
from otelmon.assemble.dialects._fields import content_of, first_text, reading, structured
from otelmon.assemble.dialects._shows import Shows
from otelmon.assemble.history import History
from otelmon.vocabulary.reading import Definition, Reading
from otelmon.vocabulary.span import Attributes, Span

NAME = "google_adk"
PRIORITY = 88
SHOWS = Shows(
    instrumentation="Google Agent Development Kit 1.x and 2.x",
    arguments="setting",
    results="setting",
    definitions="partly",
    user_text="setting",
    final_message="setting",
    setting=genai.CAPTURE + " (2.x); ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=true (1.x)",
    note="Without content 2.x names the tools but not their schemas. The arguments of a failed call of 1.x are read "
    "from the model span before it.",
)

_SCOPE = "gcp.vertex.agent"
_KEY = "gcp.vertex.agent."
_AGENT_RUN = re.compile(r"^agent_run \[(.+)\]$")
_TOOL = "execute_tool "
_REQUEST, _RESPONSE = _KEY + "llm_request", _KEY + "llm_response"
_HIDDEN = ("", "{}", "null")
_NOTHING = ("<not serializable>", '{"result": "<not specified>"}')


def matches(span: Span) -> bool:
    return span.scope.name == _SCOPE or _REQUEST in span.attributes or span.attributes.get("gen_ai.system") == _SCOPE


def read(span: Span, history: History) -> Reading:
    """A span as 2.x writes it, else by its name."""
    attributes = span.attributes
    if _is_merged(span):
        return reading(span, NAME, "other")
    operation = attributes.get(genai.OPERATION)
    found = _of_version_1(span, history) if _is_version_1(span) else genai.read_as(span, history, NAME)
    if operation is None and found.kind == "other" and span.name.startswith(_TOOL):
        found = genai.read_tool(span, NAME)
    session = first_text(attributes, _KEY + "session_id")
    return found if found.conversation_id or not session else msgspec.structs.replace(found, conversation_id=session)


def _is_merged(span: Span) -> bool:
    """The answers of parallel calls, put together under a tool's operation: no call of its own."""
    return span.name == "execute_tool (merged)" or span.attributes.get("gen_ai.tool.name") == "(merged tools)"


def _is_version_1(span: Span) -> bool:
    attributes = span.attributes
    return genai.OPERATION not in attributes or _KEY + "tool_call_args" in attributes or _REQUEST in attributes


def _of_version_1(span: Span, history: History) -> Reading:
    attributes = span.attributes
    agent = _AGENT_RUN.match(span.name)
    if agent is not None:
        return reading(span, NAME, "agent", agent_name=agent[1])
    if span.name == "invocation":
        return reading(span, NAME, "agent")
    if attributes.get(genai.OPERATION) == "execute_tool":
        return genai.read_tool(_with_call(span), NAME)
    if span.name == "call_llm" or first_text(attributes, _REQUEST) not in (None, *_HIDDEN):
        return _read_model(span, history)
    return reading(span, NAME, "other")


def _with_call(span: Span) -> Span:
    """The span with its call under the names of the conventions."""
    attributes = span.attributes
    given = {"gen_ai.tool.call.arguments": _shown(attributes, "tool_call_args"), "gen_ai.tool.call.result": _shown(attributes, "tool_response")}  # fmt: skip
    return msgspec.structs.replace(span, attributes={**{k: v for k, v in given.items() if v is not None}, **attributes})


def _shown(attributes: Attributes, key: str) -> Any:
    """The value; an empty object stands in for content that may not be shown."""
    value = attributes.get(_KEY + key)
    hides = value == "{}" and attributes.get(_KEY + "tool_response") in _HIDDEN and attributes.get(_KEY + "tool_call_args") in _HIDDEN  # fmt: skip
    return None if hides or value in _NOTHING else value


def _read_model(span: Span, history: History) -> Reading:
    attributes = span.attributes
    request, response = structured(attributes.get(_REQUEST)), structured(attributes.get(_RESPONSE))
    request = request if isinstance(request, dict) else {}
    settings = request.get("config")
    settings = settings if isinstance(settings, dict) else {}
    head = settings.get("system_instruction")
    asked = {"system": head if isinstance(head, str) else None, "contents": request.get("contents")}
    said = response.get("content") if isinstance(response, dict) else None
    entered = genai.send_items(history, _payloads.entered(asked))
    left = genai.send_items(history, [{**said, "role": "assistant"}] if isinstance(said, dict) else [])
    seen = bool(entered.digests or left.digests)
    return msgspec.structs.replace(
        reading(span, NAME, "model", content=content_of(seen, span, False)),
        input=entered.digests,
        output=left.digests,
        messages=entered.messages + left.messages,
        definitions=_declared(settings.get("tools")),
        history_complete=bool(entered.digests),
    )


def _declared(tools: Any) -> tuple[Definition, ...]:
    """Gemini's function declarations, their schemas as JSON Schema."""
    if not isinstance(tools, list):
        return ()
    declared = [d for t in tools if isinstance(t, dict) for d in (t.get("function_declarations") or ())]
    return definitions([_plain(d) for d in declared if isinstance(d, dict)])


def _plain(declaration: dict[str, Any]) -> dict[str, Any]:
    schema = declaration.get("parameters_json_schema") or declaration.get("parameters")
    return {**declaration, "parameters": lowered(schema)} if isinstance(schema, dict) else declaration


def lowered(schema: Any, depth: int = 0) -> Any:
    """A schema whose types are words of JSON Schema: Gemini writes them in capitals."""
    if depth > 32 or not isinstance(schema, dict | list):
        return schema
    if isinstance(schema, list):
        return [lowered(item, depth + 1) for item in schema]
    return {
        key: value.lower() if key == "type" and isinstance(value, str) else lowered(value, depth + 1)
        for key, value in schema.items()
    }
