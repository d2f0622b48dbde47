"""A tool call as a row and back, without loss: hot columns, long texts apart, the rest in `extra`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
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
# What the call has no attribute for is filled in after; "key" only keeps its place.
_row_values = attrgetter(*(name if name in _HOT else "key" for name in CALL_COLUMNS))
_extra_values = attrgetter(*_EXTRA)
_DEFAULTS = dict(zip(reversed(ToolCall.__struct_fields__), reversed(ToolCall.__struct_defaults__), strict=False))
_extra_defaults = tuple(_DEFAULTS.get(name, msgspec.NODEFAULT) for name in _EXTRA)
_AT = {name: place for place, name in enumerate(CALL_COLUMNS)}
_TRACE, _CONVERSATION, _REST = _AT["trace_id"], _AT["conversation_id"], _AT["extra"]
_ARGUMENTS, _RESULT = _AT["tool_call_arguments"], _AT["tool_call_result"]  # the content's hash is the next column
_encoder = msgspec.json.Encoder()


def call_row(call: ToolCall, trace_id: str, conversation_id: str, contents: Contents) -> Row:
    """The row of a call; its long texts go to `contents`. `extra` holds only what differs from the default."""
    values = list(_row_values(call))
    extra = {
        name: value
        for name, value, default in zip(_EXTRA, _extra_values(call), _extra_defaults, strict=True)
        if value != default
    }
    extra["arguments_form"], arguments = _packed(call.arguments, call.arguments_text)
    extra["result_form"], result = _packed(call.result, call.result_text)
    values[_TRACE], values[_CONVERSATION] = trace_id, conversation_id
    values[_ARGUMENTS : _ARGUMENTS + 2] = contents.shorten(arguments, ARGUMENTS_PREVIEW)
    values[_RESULT : _RESULT + 2] = contents.shorten(result)
    values[_REST] = _encoder.encode(extra).decode()
    return tuple(values)


def call_from_row(row: Sequence[Any], texts: Mapping[str, str]) -> ToolCall:
    """The call of a row of CALL_COLUMNS. `texts` are the whole texts by hash; where retention took
    one away the beginning stands in for it and the fidelity is "truncated"."""
    values = dict(zip(CALL_COLUMNS, row, strict=True))
    extra: dict[str, Any] = msgspec.json.decode(values["extra"])
    fields = {name: values[name] for name in _HOT} | {name: extra[name] for name in _EXTRA if name in extra}
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
    encoded = _encoder.encode(value).decode()
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
