"""Readings by hand, pleasantly.

span = Spans()                                   # one trace; times in seconds from the start
root = span.agent(0, 9)
hi, asked = user("refund A-1"), assistant(call("refund", "c1", order="A-1"))
span.model([hi], [asked], 0, 1, parent=root)
span.tool("refund", 1, 2, call_id="c1", order="A-1", result={"ok": True}, parent=root)
span.model([hi, asked, response({"ok": True}, "c1")], [assistant("Done.")], 2, 3, parent=root)
timeline = build("conv", span.readings)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from otelmon.vocabulary.event import AssistantMessage, Event, Timeline, ToolCall, UserMessage
from otelmon.vocabulary.reading import (
    Definition,
    HttpFields,
    Message,
    Reading,
    RequestedCall,
    ToolFields,
    ToolResponse,
)

BASE = 1_700_000_000_000_000_000
SECOND = 1_000_000_000


def ns(seconds: float) -> int:
    """Nanoseconds since the epoch, `seconds` after the start of every test."""
    return BASE + round(seconds * SECOND)


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _message(role: str, text: str = "", requests: Any = (), responses: Any = ()) -> Message:
    content = json.dumps([role, text, msgspec.to_builtins(requests), msgspec.to_builtins(responses)])
    digest = hashlib.sha256(content.encode()).hexdigest()[:32]
    return Message(role, digest, text, tuple(requests), tuple(responses))  # type: ignore[arg-type]


def system(text: str) -> Message:
    return _message("system", text)


def user(text: str) -> Message:
    return _message("user", text)


def call(name: str, call_id: str | None = None, /, **arguments: Any) -> RequestedCall:
    """A requested call: name, call id, then the arguments."""
    return RequestedCall(name, call_id, arguments)


def assistant(*parts: str | RequestedCall) -> Message:
    """What the model said: texts and requested calls."""
    texts = [part for part in parts if isinstance(part, str)]
    return _message("assistant", "\n".join(texts), [part for part in parts if isinstance(part, RequestedCall)])


def response(result: Any, call_id: str | None = None, name: str | None = None, is_error: bool | None = None) -> Message:
    """A tool message with one result."""
    return _message("tool", "", (), [ToolResponse(text_of(result), call_id, name, is_error)])


def definition(name: str, description: str = "", server: str | None = None, **properties: str) -> Definition:
    """A tool definition; properties as name="type"."""
    schema = {"type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()}}
    digest = hashlib.sha256(json.dumps([name, description, schema]).encode()).hexdigest()
    return Definition(name, description, schema, None, server, "sha256:" + digest[:8], "sha256:" + digest)


class Spans:
    """The readings of one trace. Every method adds one and returns it; `parent` is a reading or a
    span id. Keyword `more` overrides any field of the reading."""

    def __init__(self, trace: str = "t1", **common: Any) -> None:
        self.trace_id = hashlib.sha256(trace.encode()).hexdigest()[:32]
        self.readings: list[Reading] = []
        self._common: dict[str, Any] = {"service_name": "svc", "scope_name": "scope", "dialect": "genai", **common}

    def _add(
        self, kind: str, name: str, start: float, end: float, parent: Reading | str | None, **more: Any
    ) -> Reading:
        span_id = more.pop("span_id", None) or f"{len(self.readings) + 1:016x}"
        fields: dict[str, Any] = {
            **self._common,
            "trace_id": self.trace_id,
            "span_id": span_id,
            "parent_span_id": parent.span_id if isinstance(parent, Reading) else parent or "",
            "kind": kind,
            "name": name,
            "start_time_unix_nano": ns(start),
            "end_time_unix_nano": ns(end),
            "received_unix_nano": ns(end) + SECOND,
            **more,
        }
        fields.setdefault("digest", hashlib.sha256(repr(sorted(fields.items())).encode()).hexdigest()[:16])
        reading = Reading(**fields)
        self.readings.append(reading)
        return reading

    def agent(
        self,
        start: float,
        end: float,
        parent: Reading | str | None = None,
        name: str = "agent",
        saw: Sequence[Message] = (),
        said: Sequence[Message] = (),
        **more: Any,
    ) -> Reading:
        return self._add("agent", name, start, end, parent, agent_name=name, **_messages(saw, said), **more)

    def model(
        self,
        saw: Sequence[Message],
        said: Sequence[Message],
        start: float,
        end: float,
        parent: Reading | str | None = None,
        tools: Iterable[Definition] = (),
        **more: Any,
    ) -> Reading:
        more.setdefault("model", "m")
        more.setdefault("history_complete", bool(saw))
        return self._add("model", "chat", start, end, parent, definitions=tuple(tools), **_messages(saw, said), **more)

    def tool(
        self,
        tool_name: str,
        start: float,
        end: float,
        parent: Reading | str | None = None,
        call_id: str | None = None,
        result: Any = None,
        fields: dict[str, Any] | None = None,
        more: dict[str, Any] | None = None,
        **arguments: Any,
    ) -> Reading:
        """`arguments` are the tool's; none means that the span does not show any. `fields`
        overrides ToolFields, `more` the reading."""
        known: dict[str, Any] = {"name": tool_name, "raw_name": tool_name, "call_id": call_id}
        if arguments:
            known |= {"arguments": arguments, "arguments_fidelity": "exact"}
        if result is not None:
            value = None if isinstance(result, str) else result
            known |= {"result": value, "result_text": text_of(result), "result_fidelity": "exact"}
        known |= fields or {}
        return self._add("tool", tool_name, start, end, parent, tool=ToolFields(**known), **(more or {}))

    def http(self, method: str, start: float, end: float, parent: Reading | str, **fields: Any) -> Reading:
        return self._add("http", method, start, end, parent, http=HttpFields(method, **fields))

    def other(self, name: str, start: float, end: float, parent: Reading | str | None = None, **more: Any) -> Reading:
        return self._add("other", name, start, end, parent, **more)

    def setup(self, name: str, start: float, end: float, parent: Reading | str | None = None, **more: Any) -> Reading:
        return self._add("setup", name, start, end, parent, **more)


def _messages(saw: Sequence[Message], said: Sequence[Message]) -> dict[str, Any]:
    return {
        "input": tuple(m.digest for m in saw),
        "output": tuple(m.digest for m in said),
        "messages": tuple({m.digest: m for m in (*saw, *said)}.values()),
    }


# -- ready-made ----------------------------------------------------------------------------------
def finished() -> Spans:
    """A complete run: agent, request, call, answer (four readings, in this order)."""
    span = Spans()
    root = span.agent(0, 9)
    hi, ask = user("pay"), assistant(call("pay", "c1", amount=5))
    span.model([hi], [ask], 0, 1, parent=root)
    span.tool("pay", 1, 2, parent=root, call_id="c1", amount=5, result={"ok": True})
    span.model([hi, ask, response({"ok": True}, "c1")], [assistant("Paid.")], 2, 3, parent=root)
    return span


def changed(span: Spans, index: int, **fields: object) -> list[Reading]:
    """The readings, with fields of one of them replaced."""
    readings = list(span.readings)
    readings[index] = msgspec.structs.replace(readings[index], **fields)
    return readings


# -- looking at what came out ----------------------------------------------------------------------
def calls(timeline: Timeline) -> list[ToolCall]:
    return [event for event in timeline.events if isinstance(event, ToolCall)]


def said(timeline: Timeline) -> list[AssistantMessage]:
    return [event for event in timeline.events if isinstance(event, AssistantMessage)]


def asked(timeline: Timeline) -> list[UserMessage]:
    return [event for event in timeline.events if isinstance(event, UserMessage)]


def story(timeline: Timeline) -> list[str]:
    """The events in a few letters each: `user hi`, `assistant bye!` (final), `refund ok`, ..."""
    return [_short(event) for event in timeline.events]


def _short(event: Event) -> str:
    tag: str = type(event).__struct_config__.tag  # type: ignore[assignment]
    if isinstance(event, ToolCall):
        return f"call {event.tool_name} {event.outcome}"
    if isinstance(event, AssistantMessage):
        wanted = "+".join(request.tool_name for request in event.requests)
        return f"assistant {event.text or wanted}{'!' if event.final else ''}"
    if hasattr(event, "text"):
        return f"{tag} {event.text}"
    return f"{tag} {getattr(event, 'name', '')}".strip()
