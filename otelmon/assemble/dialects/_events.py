"""Messages as events: `gen_ai.user.message`, `gen_ai.choice` and the like, on the span or listed in one
of its attributes; and the whole prompt and completion as one event each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from otelmon.assemble.dialects._fields import structured
from otelmon.vocabulary.span import SpanEvent

_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
CHOICE = "gen_ai.choice"
PROMPT, COMPLETION = "gen_ai.content.prompt", "gen_ai.content.completion"
NAMES = frozenset({*_ROLES, CHOICE, PROMPT, COMPLETION})


def item(name: str, body: dict[str, Any]) -> dict[str, Any] | None:
    """The message item of one event; None when the event is no message."""
    if name == CHOICE:
        message = body.get("message", body.get("content"))
        found = blocks(message)
        if isinstance(found, dict) and ("content" in found or "tool_calls" in found or "role" in found):
            return {**found, "role": "assistant"}
        return {"role": "assistant", "content": found, "tool_calls": structured(body.get("tool_calls"))}
    role = _ROLES.get(name)
    if role is None:
        return None
    calls = body.get("tool_calls")
    return {
        "role": role,
        "content": blocks(body.get("content")),
        "tool_calls": structured(calls) if isinstance(calls, str) else calls,
        "tool_call_id": body.get("id", body.get("tool_call_id")),
        "name": body.get("name") if role == "tool" else None,
    }


def blocks(value: Any) -> Any:
    """Content as it is; text that holds a list of content blocks, or a message, is opened."""
    if not isinstance(value, str) or value[:1] not in ("[", "{"):
        return value
    found = structured(value)
    if isinstance(found, list) and found and all(isinstance(b, dict) for b in found):
        return found
    if isinstance(found, dict) and found.get("role") == "assistant":
        return found
    return value


def split(named: Iterable[tuple[str, dict[str, Any]]]) -> tuple[list[Any], list[Any]]:
    """(items that went in, items that came out). A choice came out; without any, so did what the
    assistant said last."""
    entered: list[Any] = []
    left: list[Any] = []
    for name, body in named:
        found = item(name, body)
        if found is not None:
            (left if name == CHOICE else entered).append(found)
    while not left and entered and entered[-1]["role"] == "assistant":
        left = [entered.pop()]
    return entered, left


def listed(value: Any) -> list[tuple[str, dict[str, Any]]]:
    """(name, body) of events that stand as a list in an attribute."""
    found = structured(value)
    if not isinstance(found, list):
        return []
    return [(str(e.get("event.name", "")), e) for e in found if isinstance(e, dict)]


def of_span(events: Iterable[SpanEvent]) -> list[tuple[str, dict[str, Any]]]:
    """(name, body) of the span events that are messages."""
    return [(e.name, e.attributes) for e in events if e.name in _ROLES or e.name == CHOICE]
