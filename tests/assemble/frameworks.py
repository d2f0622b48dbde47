"""Spans of a trace as another vendor's store kept it: observations with the attributes they came with.

That store moves messages, arguments and results out of the attributes into `input` and `output`; here they
go back under the key of the instrumentation that wrote them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from otelmon.assemble.history import History
from otelmon.assemble.readings import read_span
from otelmon.vocabulary.reading import Message, Reading
from otelmon.vocabulary.span import Scope, Span
from tests.assemble.dialect_spans import make_span

OWN_SDK = "langfuse-sdk"


def opened(value: Any) -> Any:
    """JSON text as its value, anything else as it is."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def rebuilt(observation: dict[str, Any]) -> Span:
    """The span that this observation was."""
    metadata = opened(observation.get("metadata")) or {}
    scope = opened(metadata.get("scope")) or {}
    attributes = dict(opened(metadata.get("attributes")) or {})
    for key, value in _moved(observation, scope.get("name", ""), attributes, metadata):
        if value not in (None, ""):
            attributes.setdefault(key, as_text(value))
    return make_span(
        attributes,
        trace_id=f"{int(observation['traceId'], 16):032x}" if _is_hex(observation["traceId"]) else "0" * 31 + "1",
        span_id=observation["id"],
        parent_span_id=observation.get("parentObservationId") or "",
        name=observation.get("name") or "",
        start_time_unix_nano=_nanos(observation["startTime"]),
        end_time_unix_nano=_nanos(observation.get("endTime") or observation["startTime"]),
        status_code=2 if observation.get("level") == "ERROR" else 0,
        status_message=observation.get("statusMessage") or "",
        scope=Scope(scope.get("name", ""), scope.get("version", "")),
        digest=observation["id"],
    )


def _moved(
    observation: dict[str, Any], scope: str, attributes: dict[str, Any], metadata: dict[str, Any]
) -> Iterable[tuple[str, Any]]:
    """Where input and output of the observation came from."""
    if scope == OWN_SDK:
        yield "langfuse.observation.type", observation["type"].lower()
        keys = "langfuse.observation.input", "langfuse.observation.output"
        for key, value in metadata.items():
            if key not in ("attributes", "scope", "resourceAttributes"):
                yield f"langfuse.observation.metadata.{key}", value
    elif "openinference.span.kind" in attributes:
        keys = "input.value", "output.value"
    elif attributes.get("gen_ai.operation.name") == "execute_tool":
        keys = "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"
    elif "events" in attributes or "all_messages_events" in attributes:
        return  # here they were copied, not moved
    else:
        keys = "gen_ai.input.messages", "gen_ai.output.messages"
    yield keys[0], observation.get("input")
    yield keys[1], observation.get("output")


def _is_hex(text: str) -> bool:
    return all(char in "0123456789abcdef" for char in text)


def _nanos(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1e3) * 1_000_000


def readings_of(trace: dict[str, Any]) -> dict[str, Reading]:
    """The reading of every observation by its id, each with all its messages."""
    return {o["id"]: read_span(rebuilt(o), History()) for o in trace["observations"]}


# -- one form for both -----------------------------------------------------------------------------
Row = tuple[str, str, tuple[tuple[str | None, str, str], ...], str | None]


def ours(reading: Reading, digests: tuple[str, ...]) -> list[Row]:
    """Our messages as rows (role, text, requested calls, id of the answered call)."""
    by_digest = {message.digest: message for message in reading.messages}
    return [_row(by_digest[digest]) for digest in digests]


def _row(message: Message) -> Row:
    asked = tuple((r.tool_call_id, r.tool_name, _comparable(r.arguments_text if r.arguments is None else r.arguments)) for r in message.requests)  # fmt: skip
    if message.responses:
        [answer] = message.responses
        return "tool", _comparable(answer.text), (), answer.tool_call_id
    return message.role, _comparable(message.text), asked, None


def theirs(chat: list[dict[str, Any]]) -> list[Row]:
    """The vendor's messages in the same form; what it could not place stays with it."""
    return [row for item in chat if (row := _their_row(item)) is not None]


def _their_row(item: dict[str, Any]) -> Row | None:
    if "role" not in item:
        return None
    asked = tuple((c.get("id"), c["name"], _comparable(c.get("arguments"))) for c in item.get("tool_calls") or [])
    answered = item.get("tool_call_id") if item["role"] == "tool" else None
    return item["role"], _comparable(_content(item.get("content"))), asked, answered


def _content(content: Any) -> Any:
    if isinstance(content, list) and all(isinstance(p, dict) and p.get("type") == "text" for p in content):
        return "\n".join(p["text"] for p in content)
    return "" if content is None else content


def _comparable(value: Any) -> str:
    """JSON by value, text without the space around it."""
    value = opened(value)
    return value.strip() if isinstance(value, str) else json.dumps(value, sort_keys=True)
