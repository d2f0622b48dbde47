"""A tool call as a row and back, without loss: hot columns, long texts apart, the rest in `extra`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from otelmon.store.content import ARGUMENTS_PREVIEW, Contents
from otelmon.store.tables import Row
from otelmon.vocabulary.event import ToolCall

CALL_COLUMNS = (
    "call_key", "trace_id", "span_id", "run_id", "conversation_id", "position", "turn", "batch", "tool_name",
    "tool_call_id", "server", "derived", "outcome", "outcome_source", "error_type", "idempotency_key", "attempt",
    "agent_name", "agent_version", "model", "principal", "service_name", "environment", "start_time_unix_nano",
    "end_time_unix_nano", "arguments_fidelity", "arguments_hash", "tool_call_arguments", "arguments_content",
    "result_fidelity", "tool_call_result", "result_content", "extra",
)  # fmt: skip
_APART = {"arguments", "arguments_text", "result", "result_text", "key"}
_HOT = tuple(name for name in ToolCall.__struct_fields__ if name in CALL_COLUMNS and name not in _APART)
_EXTRA = tuple(name for name in ToolCall.__struct_fields__ if name not in _HOT and name not in _APART)


def call_row(call: ToolCall, trace_id: str, conversation_id: str, contents: Contents) -> Row:
    """The row of a call; its long texts go to `contents`."""
    values: dict[str, Any] = {name: getattr(call, name) for name in _HOT}
    extra = {name: getattr(call, name) for name in _EXTRA}
    extra["arguments_form"], arguments = _packed(call.arguments, call.arguments_text)
    extra["result_form"], result = _packed(call.result, call.result_text)
    values["call_key"], values["trace_id"], values["conversation_id"] = call.key, trace_id, conversation_id
    values["tool_call_arguments"], values["arguments_content"] = contents.shorten(arguments, ARGUMENTS_PREVIEW)
    values["tool_call_result"], values["result_content"] = contents.shorten(result)
    values["extra"] = msgspec.json.encode(extra).decode()
    return tuple(values[name] for name in CALL_COLUMNS)


def call_from_row(row: Sequence[Any], texts: Mapping[str, str]) -> ToolCall:
    """The call of a row of CALL_COLUMNS. `texts` are the whole texts by hash; where retention took
    one away the beginning stands in for it and the fidelity is "truncated"."""
    values = dict(zip(CALL_COLUMNS, row, strict=True))
    extra: dict[str, Any] = msgspec.json.decode(values["extra"])
    fields = {name: values[name] for name in _HOT} | {name: extra[name] for name in _EXTRA}
    for name in ("arguments", "result"):
        content = values[f"{name}_content"]
        if content and content not in texts:
            fields[name], fields[f"{name}_text"] = None, values[f"tool_call_{name}"]
            fields[f"{name}_fidelity"] = "truncated"
            continue
        text = texts[content] if content else values[f"tool_call_{name}"]
        fields[name], fields[f"{name}_text"] = _unpacked(extra[f"{name}_form"], text)
    return msgspec.convert({"type": "tool_call", "key": values["call_key"], **fields}, ToolCall)


def _packed(value: Any, text: str | None) -> tuple[str, str]:
    """(form, text to store). Forms: "none", "text" (no decoded value), "value" (no text), "both" (the
    text is followed by the value's JSON, parted by a line feed; the form says where)."""
    if value is None:
        return ("none", "") if text is None else ("text", text)
    encoded = msgspec.json.encode(value).decode()
    if text is None:
        return "value", encoded
    return ("same", text) if encoded == text else (f"both:{len(text)}", f"{text}\n{encoded}")


def _unpacked(form: str, text: str) -> tuple[Any, str | None]:
    if form == "none":
        return None, None
    if form == "text":
        return None, text
    if form == "value":
        return msgspec.json.decode(text), None
    if form == "same":
        return msgspec.json.decode(text), text
    cut = int(form.partition(":")[2])
    return msgspec.json.decode(text[cut + 1 :]), text[:cut]
