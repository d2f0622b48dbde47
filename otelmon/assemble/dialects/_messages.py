"""Messages in the shapes that model APIs and instrumentations use, as vocabulary messages.

Shapes: `{role, parts: [...]}` (GenAI conventions), `{role, content, tool_calls}` (OpenAI),
`{role, content: [{type: ...}]}` (Vercel, Anthropic), `{role, parts: [{function_call: ...}]}` (Gemini),
`{role, content: [{toolUse: ...}]}` (Bedrock), LangChain's serialised messages.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from otelmon.assemble.dialects._fields import call_id_of, canonical_name, text_of
from otelmon.assemble.values import compact, decode_arguments, parse_json, stable_bytes
from otelmon.vocabulary.reading import Message, RequestedCall, Role, ToolResponse

Rename = Callable[[str], str]

_ROLES: dict[str, Role] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
}
_TEXT = ("text", "input_text", "output_text", "")
_CALL = ("tool_call", "tool-call", "tool_use", "function_call", "toolCall")
_RESPONSE = ("tool_call_response", "tool-result", "tool_result", "function_call_output", "toolResult", "tool-error")
_SILENT = ("reasoning", "thinking", "redacted_thinking", "compaction", "step-start")
_OUTPUTS = ("json", "text", "content", "error-text", "error-json")
_MCP_RESULT = {
    "content",
    "isError",
    "is_error",
    "structuredContent",
    "structured_content",
    "resultType",
    "_meta",
    "meta",
}
_IMAGE = ("image", "image_url", "input_image")
_UNTYPED = {
    "toolUse": "tool_use",
    "toolResult": "tool_result",
    "function_call": "tool_call",
    "functionCall": "tool_call",
    "function_response": "tool_call_response",
    "functionResponse": "tool_call_response",
}
_LANGCHAIN = ("human", "ai", "tool", "system", "function")


def same_name(name: str) -> str:
    """Tool names as sent."""
    return name


def make(
    role: Role,
    text: str = "",
    requests: tuple[RequestedCall, ...] = (),
    responses: tuple[ToolResponse, ...] = (),
    truncated: bool = False,
) -> Message:
    """A message with its digest: equal content in two dialects' encodings has one digest."""
    content = (
        role,
        text,
        [(r.tool_name, r.tool_call_id, r.arguments_text if r.arguments is None else r.arguments) for r in requests],
        [(r.tool_call_id, _comparable(r.text)) for r in responses],
    )
    digest = hashlib.blake2b(stable_bytes(content), digest_size=16).hexdigest()
    return Message(role, digest, text, requests, responses, truncated)


def _comparable(text: str) -> Any:
    """JSON is compared by value: one dialect sends it as text, another as an object."""
    if text[:1] in ("{", "["):
        try:
            return parse_json(text)
        except ValueError:
            return text
    return text


def role_of(value: Any) -> Role:
    """Our role for a foreign one. An unknown one is instructions: a source, never a person's yes."""
    return _ROLES.get(value, "system") if isinstance(value, str) else "system"


def request(name: Any, call_id: Any, arguments: Any, rename: Rename = same_name) -> RequestedCall:
    """A requested call; arguments as an object or as the model's text."""
    decoded = decode_arguments(arguments)
    tool, _ = canonical_name(rename(text_of(name) or ""))
    fidelity = "decoded" if decoded.fidelity == "absent" else decoded.fidelity
    value = {} if decoded.fidelity == "absent" else decoded.value
    return RequestedCall(tool, call_id_of(call_id), value, decoded.text, fidelity)


def response(call_id: Any, payload: Any, name: Any = None, is_error: Any = None) -> ToolResponse:
    """A tool result in history; `payload` is text, content blocks or a value."""
    text, failed = unwrap(payload)
    raw = text_of(name)
    flag = is_error if isinstance(is_error, bool) else failed
    return ToolResponse(text, call_id_of(call_id), canonical_name(raw)[0] if raw else None, flag)


def unwrap(payload: Any) -> tuple[str, bool | None]:
    """(text the model saw, whether it was marked as an error) of a result value: the content of a
    wrapper, anything else as compact JSON."""
    if isinstance(payload, str):
        return payload, None
    if payload is None:
        return "", None
    return opened(payload) or (compact(payload), None)


def opened(payload: Any) -> tuple[str, bool | None] | None:
    """(text, error mark) in a wrapper: content blocks of MCP and Bedrock, Vercel outputs, LangChain
    tool messages; None when the value is the payload itself."""
    if isinstance(payload, list):
        text = blocks_text(payload)
        return (text, None) if text else None
    if not isinstance(payload, dict):
        return None
    kind = payload.get("type")
    if kind in _OUTPUTS and payload.keys() <= {"type", "value", "providerOptions"}:
        text, _ = unwrap(payload.get("value"))
        return text, True if kind.startswith("error") else None
    content = payload.get("content")
    if isinstance(content, list) and payload.keys() <= _MCP_RESULT:
        failed = payload.get("isError", payload.get("is_error"))
        return blocks_text(content) or compact(payload), failed if isinstance(failed, bool) else None
    message = langchain_fields(payload)
    if message is not None and message.get("type") == "tool":
        text, _ = unwrap(message.get("content"))
        return text, message.get("status") == "error" or None
    return None


def blocks_text(blocks: list[Any]) -> str:
    """The text of content blocks; "" when these are not content blocks."""
    texts: list[str] = []
    for block in blocks:
        text = _block_text(block)
        if text is None:
            return ""
        texts.append(text)
    return "\n".join(texts)


def _block_text(block: Any) -> str | None:
    if not isinstance(block, dict):
        return None
    kind, text = block.get("type"), block.get("text")
    if isinstance(text, str) and kind in ("text", "output_text", None):
        return text
    if kind is None and block.keys() == {"json"}:
        return compact(block["json"])
    if kind in ("image", "audio", "resource", "resource_link", "file", "image_url", "image-data", "media"):
        return f"[{'image' if str(kind).startswith('image') else 'file'}]"
    return None


def langchain_fields(value: Any) -> dict[str, Any] | None:
    """The fields of a serialised LangChain message: `{type, data: {...}}`, a constructor, or a flat one."""
    if not isinstance(value, dict):
        return None
    if "additional_kwargs" in value and value.get("type") in _LANGCHAIN and "content" in value:
        return value
    data = value.get("data")
    if isinstance(data, dict) and isinstance(value.get("type"), str) and value.keys() <= {"type", "data"}:
        return {"type": value["type"]} | data
    names, kwargs = value.get("id"), value.get("kwargs")
    if value.get("type") == "constructor" and isinstance(names, list) and isinstance(kwargs, dict):
        kind = str(names[-1]).removesuffix("Chunk").removesuffix("Message").lower() if names else ""
        return kwargs | {"type": kind}
    return None


def from_item(item: Any, rename: Rename = same_name) -> list[Message]:
    """Messages of one element of a message list, in any of the shapes above."""
    if isinstance(item, list) and len(item) == 2 and isinstance(item[1], str):
        item = {"role": item[0], "content": item[1]}
    if not isinstance(item, dict):
        return [make("user", item)] if isinstance(item, str) and item else []
    fields = langchain_fields(item)
    if fields is not None:
        item = fields | {"role": fields.get("type")}
    role = role_of(item.get("role"))
    parts = item.get("parts")
    if not isinstance(parts, list):
        parts = _content_parts(item, role)
    return _from_parts(role, [_typed(part) for part in parts], rename)


def _typed(part: Any) -> Any:
    """Bedrock's and Gemini's parts are named by their only key: the same with a type."""
    if not isinstance(part, dict) or "type" in part:
        return part
    for key, kind in _UNTYPED.items():
        inner = part.get(key)
        if isinstance(inner, dict):
            return {**inner, "type": kind}
    return part


def _content_parts(item: dict[str, Any], role: Role) -> list[Any]:
    """The parts of a message that has `content` and, beside it, `tool_calls`."""
    content = item.get("content")
    if role == "tool" and not _has_response(content):
        failed = item.get("is_error", True if item.get("status") == "error" else None)
        return [{"type": "tool_call_response", "id": item.get("tool_call_id"), "response": content, "name": item.get("name"), "is_error": failed}]  # fmt: skip
    parts = content if isinstance(content, list) else [] if content is None else [content]
    calls = item.get("tool_calls")
    extra = item.get("additional_kwargs")
    if not calls and isinstance(extra, dict):  # LangChain, where only the provider's own form was kept
        calls = extra.get("tool_calls")
    return [*parts, *(_openai_call(c) for c in calls)] if isinstance(calls, list) else list(parts)


def _has_response(content: Any) -> bool:
    return isinstance(content, list) and any(
        isinstance(p, dict) and (p.get("type") in _RESPONSE or "toolResult" in p) for p in content
    )


def _openai_call(call: Any) -> Any:
    if not isinstance(call, dict):
        return None
    inner = call.get("function")
    function = inner if isinstance(inner, dict) else call
    arguments = function.get("arguments", function.get("args"))
    return {"type": "tool_call", "id": call.get("id"), "name": function.get("name"), "arguments": arguments}


def _from_parts(role: Role, parts: list[Any], rename: Rename) -> list[Message]:
    texts: list[str] = []
    requests: list[RequestedCall] = []
    responses: list[ToolResponse] = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            _sort_part(part, rename, texts, requests, responses)
    messages = [make("tool", responses=(r,)) for r in responses]
    if requests and role in ("user", "tool"):
        # Calls of somebody else (a simulated user has tools of their own) are not the agent's.
        requests.clear()
        if not texts:
            return messages
    elif requests:
        role = "assistant"
    if texts or requests or not responses:
        text = "\n".join(texts)
        if role == "tool":
            messages.append(make("tool", responses=(ToolResponse(text),)))
        else:
            messages.append(make(role, text, tuple(requests)))
    return messages


def _sort_part(
    part: dict[str, Any],
    rename: Rename,
    texts: list[str],
    requests: list[RequestedCall],
    responses: list[ToolResponse],
) -> None:
    kind = text_of(part.get("type")) or ""
    if kind in _CALL:
        requests.append(_call_part(part, rename))
    elif kind in _RESPONSE:
        responses.append(_response_part(part, rename, kind))
    elif kind in _TEXT:
        text = part.get("content", part.get("text"))
        if isinstance(text, str):
            texts.append(text)
    elif kind not in _SILENT and "reasoning" not in kind.lower():
        texts.append("[image]" if kind in _IMAGE or "image" in str(part.get("modality", "")) else f"[{_label(kind)}]")


def _label(kind: str) -> str:
    return "file" if kind in ("blob", "uri", "file", "document", "audio", "video", "media") else kind[:40]


def _first(part: dict[str, Any], *keys: str) -> Any:
    return next((part[k] for k in keys if part.get(k) is not None), None)


def _call_part(part: dict[str, Any], rename: Rename) -> RequestedCall:
    call_id = _first(part, "toolCallId", "call_id", "toolUseId", "id")
    name = _first(part, "name", "toolName")
    return request(name, call_id, _first(part, "arguments", "input", "args"), rename)


def _response_part(part: dict[str, Any], rename: Rename, kind: str) -> ToolResponse:
    call_id = _first(part, "toolCallId", "tool_use_id", "call_id", "toolUseId", "tool_call_id", "id")
    name = text_of(_first(part, "name", "toolName"))
    payload = _first(part, "response", "result", "output", "content", "error")
    failed = _first(part, "is_error", "isError")
    if kind == "tool-error" or part.get("status") == "error":
        failed = True
    return response(call_id, payload, rename(name) if name else None, failed)
