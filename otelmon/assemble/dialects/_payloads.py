"""Requests to models and their answers, as the APIs have them: message items, definitions, and what
a run was asked and answered.

Shapes: OpenAI chat (`messages`, `choices`) and Responses (`input`, `instructions`, `output`),
LangChain (`messages` in batches, `generations`), a message, a list of them, plain text.
"""

from __future__ import annotations

from typing import Any

from otelmon.assemble.dialects._fields import first_text, structured
from otelmon.assemble.dialects._messages import from_item, langchain_fields, make
from otelmon.assemble.values import compact
from otelmon.vocabulary.reading import Message

_CALLS = ("function_call", "custom_tool_call", "mcp_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_GIVEN = ("messages", "input", "contents", "prompt")
_QUESTIONS = ("task", "input", "query", "question", "prompt", "message", "content")
_ANSWERS = ("output", "answer", "response", "result", "text", "content", "raw")
_LAST = 50
_MAX_DEPTH = 8


def entered(value: Any) -> list[Any]:
    """The message items that a request gave to the model, its instructions first."""
    return _entered(value, 0)


def _entered(value: Any, depth: int) -> list[Any]:
    if isinstance(value, str):
        return [{"role": "user", "content": value}] if value else []
    if isinstance(value, list):
        return _items(value)
    if not isinstance(value, dict) or depth > _MAX_DEPTH:
        return []
    if "role" in value or langchain_fields(value) is not None:
        return [value]
    head = value.get("instructions") or value.get("system")
    items = [{"role": "system", "content": head}] if isinstance(head, str | list) and head else []
    given = next((value[key] for key in _GIVEN if value.get(key)), None)
    return items + _entered(given, depth + 1)


def left(value: Any) -> list[Any]:
    """The message items that a model answered with."""
    return _left(value, 0)


def _left(value: Any, depth: int) -> list[Any]:
    if isinstance(value, str):
        return [{"role": "assistant", "content": value}] if value else []
    if isinstance(value, list):
        return _items([{"role": "assistant", "content": v} if isinstance(v, str) else v for v in value])
    if not isinstance(value, dict) or depth > _MAX_DEPTH:
        return []
    choices, generations = value.get("choices"), value.get("generations")
    if isinstance(choices, list):
        return [_assistant(c.get("message")) for c in choices if isinstance(c, dict) and isinstance(c.get("message"), dict)]  # fmt: skip
    if isinstance(generations, list):
        return [_generated(g) for g in _flat(generations) if isinstance(g, dict)]
    if "role" in value or "tool_calls" in value or langchain_fields(value) is not None:
        return [_assistant(value)]
    inner = next((value[key] for key in ("message", "output", "messages") if value.get(key)), None)
    return _left(inner, depth + 1)


def _flat(value: list[Any]) -> list[Any]:
    return [inner for item in value for inner in (item if isinstance(item, list) else [item])]


def _generated(generation: dict[str, Any]) -> Any:
    message = generation.get("message")
    return message if isinstance(message, dict) else {"role": "assistant", "content": generation.get("text")}


def _assistant(message: Any) -> Any:
    if isinstance(message, dict) and "role" not in message and langchain_fields(message) is None:
        return {**message, "role": "assistant"}
    return message


def _items(value: list[Any]) -> list[Any]:
    """Message items of a list; what the Responses API puts beside messages becomes messages."""
    if value and all(isinstance(v, list) and v and isinstance(v[0], dict) for v in value):
        value = _flat(value)  # LangChain sends batches of conversations
    items: list[Any] = []
    calls: list[Any] | None = None
    for item in value:
        kind = item.get("type") if isinstance(item, dict) and "role" not in item else None
        if kind == "reasoning":
            continue
        if kind in _CALLS:
            if calls is None:
                calls = []
                items.append({"role": "assistant", "parts": calls})
            calls.append({**item, "type": "function_call"})
            continue
        calls = None
        output = {**item, "type": "function_call_output"} if kind in _OUTPUTS else None
        items.append(item if output is None else {"role": "tool", "parts": [output]})
    return items


def tools(value: Any) -> Any:
    """The tool definitions of a request, in the form that `definitions` takes."""
    return value.get("tools") if isinstance(value, dict) else None


def question(value: Any) -> list[Message]:
    """What a run was asked, from what its function was called with: its messages, or the one text
    that can be it; nothing when that is not plain."""
    if isinstance(value, str):
        found = structured(value)
        if not isinstance(found, dict | list):
            return [make("user", value)] if value else []
        value = found
    if isinstance(value, list):
        return _last(value, "user")
    if not isinstance(value, dict):
        return []
    if isinstance(value.get("messages"), list):
        return _last(value["messages"], "user")
    if isinstance(value.get("inputs"), dict):
        return question(value["inputs"]) if value["inputs"].get("inputs") is None else []
    if value.keys() <= {"args", "kwargs"}:
        args, kwargs = value.get("args"), value.get("kwargs")
        given = [*(args if isinstance(args, list) else ()), *(kwargs.values() if isinstance(kwargs, dict) else ())]
    else:
        named = first_text(value, *_QUESTIONS)
        given = [named] if named else list(value.values())
    texts = [g for g in given if isinstance(g, str) and g]
    if len(texts) == 1:
        return [make("user", texts[0])]
    listed = [g for g in given if isinstance(g, list) and g and all(isinstance(m, dict) and "role" in m for m in g)]
    return _last(listed[0], "user") if len(listed) == 1 and not texts else []


def answer(value: Any) -> list[Message]:
    """What a run answered, from what its function returned."""
    if isinstance(value, str):
        found = structured(value)
        if not isinstance(found, dict | list):
            return [make("assistant", value)] if value else []
        value = found
    if isinstance(value, dict) and isinstance(value.get("messages"), list):
        return _last(value["messages"], "assistant")
    if isinstance(value, dict) and ("choices" in value or "role" in value or "generations" in value):
        return [m for item in left(value) for m in from_item(item) if m.text]
    if isinstance(value, dict):
        text = first_text(value, *_ANSWERS)
        return [make("assistant", text or compact(value))] if value else []
    if isinstance(value, list) and value and all(isinstance(v, dict) and "role" in v for v in value):
        return _last(value, "assistant")
    return []


def _last(items: list[Any], role: Any) -> list[Message]:
    said = [m for item in items[-_LAST:] for m in from_item(item) if m.role == role and m.text]
    return [make(role, said[-1].text)] if said else []
