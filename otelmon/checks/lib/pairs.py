"""How a pair of calls is shown side by side in evidence."""

from __future__ import annotations

from typing import Any

from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.messages import EffectEntry

_SECOND = 1_000_000_000


_SHOWN = 4096  # characters of arguments that evidence and ledger keep


def bounded(arguments: Any) -> Any:
    """Arguments as they are, or the beginning of their text when they are long."""
    text = arguments if isinstance(arguments, str) else repr(arguments)
    return arguments if len(text) <= _SHOWN else {"shortened": text[:_SHOWN]}


def call_facts(call: ToolCall) -> dict[str, Any]:
    """What a person needs to compare one call with another."""
    return {
        "anchor": call.key,
        "span_id": call.span_id,
        "trace_id": call.trace_id,
        "tool_call_id": call.tool_call_id,
        "tool_name": call.tool_name,
        "arguments": bounded(call.arguments if call.arguments is not None else call.arguments_text),
        "outcome": call.outcome,
        "result": call.result_text[:500] if call.result_text else None,
        "start_time_unix_nano": call.start_time_unix_nano,
        "host": call.host,
    }


def entry_facts(entry: EffectEntry) -> dict[str, Any]:
    """The same of a ledger entry."""
    return {
        "anchor": entry.anchor,
        "span_id": entry.span_id,
        "trace_id": entry.trace_id,
        "tool_call_id": entry.tool_call_id,
        "tool_name": entry.tool_name,
        "conversation_id": entry.conversation_id,
        "arguments": entry.arguments,
        "outcome": entry.outcome,
        "trigger": entry.trigger,
        "start_time_unix_nano": entry.start_time_unix_nano,
        "host": entry.host,
    }


def apart(first: int, second: int) -> str:
    """The time between two instants (nanoseconds), for people."""
    seconds = abs(second - first) / _SECOND
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
