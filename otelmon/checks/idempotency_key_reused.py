"""One idempotency key for two different effects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from otelmon.checks.lib.keys import key_past, only_a_key
from otelmon.checks.lib.pairs import apart, call_facts, entry_facts
from otelmon.checks.lib.repeats import spans
from otelmon.checks.lib.retries import alike, same_effect
from otelmon.checks.registry import check
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import Evidence
from otelmon.vocabulary.messages import EffectEntry

_COMPARED = 50  # earlier writes with the key that one is compared with
_SECOND = 1_000_000_000


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`similarity`: how alike (0 to 1) two free texts must be for two writes to be one effect; `window_seconds`: how
    long another conversation's key is taken to be remembered by the server."""

    similarity: float = 0.9
    window_seconds: float = 86_400.0


@check(on="call", name="idempotency_key_reused")
def in_conversation(call: ToolCall, view: View, params: Params) -> Iterator[Evidence]:
    """A write carries the idempotency key of an earlier write with other arguments, or of another tool.

    Why it matters: the server answers from memory, with the first result: the second effect never happens
    and looks as if it had. A stricter server refuses it.
    """
    if call.outcome == "denied":
        return
    other = next((c for c in key_past(call, view).same_key if _another_effect(c, call, view, params)), None)
    if other is None:
        return
    yield Evidence(
        summary=f"{call.tool_name} was sent with the idempotency key of {_other_one(other, call)}, "
        f"{apart(other.start_time_unix_nano, call.start_time_unix_nano)} earlier",
        anchor=call.key,
        span_ids=spans(call, other),
        details={
            "other": call_facts(other),
            "this": call_facts(call),
            "idempotency_key": view.idempotency_key(call),
            "differs": _differs(other, call, view),
        },
    )


def _another_effect(other: ToolCall, call: ToolCall, view: View, params: Params) -> bool:
    if other.outcome in ("failed", "denied"):
        return False  # nothing happened under the key: it is free for the corrected call
    if other.tool_name != call.tool_name:
        return only_a_key(other, view) and only_a_key(call, view)
    if not view.business_arguments(other) or not view.business_arguments(call):
        return False  # what was asked for can not be told
    return not same_effect(other, call, view, params.similarity)


def _other_one(other: ToolCall, call: ToolCall) -> str:
    return f"another {other.tool_name}" if other.tool_name == call.tool_name else other.tool_name


def _differs(other: ToolCall, call: ToolCall, view: View) -> list[str]:
    one, two = view.business_arguments(other), view.business_arguments(call)
    return sorted(name for name in one.keys() | two.keys() if one.get(name) != two.get(name))[:20]


@check(on="key", name="idempotency_key_reused")
def across_conversations(entries: Sequence[EffectEntry], params: Params) -> Iterator[Evidence]:
    """A write carries the key of a write of another conversation that wanted something else."""
    for place, entry in enumerate(entries):
        earlier = entries[max(0, place - _COMPARED) : place]
        other = next((e for e in earlier if _of_another(e, entry, params)), None)
        if other is None:
            continue
        what = f"another {other.tool_name}" if other.tool_name == entry.tool_name else other.tool_name
        yield Evidence(
            summary=f"{entry.tool_name} was sent with the idempotency key of {what} of another conversation, "
            f"{apart(other.start_time_unix_nano, entry.start_time_unix_nano)} earlier",
            anchor=entry.anchor,
            key="across",
            span_ids=tuple(dict.fromkeys((entry.span_id, other.span_id))),
            details={"other": entry_facts(other), "this": entry_facts(entry), "idempotency_key": entry.idempotency_key},
        )


def _of_another(other: EffectEntry, entry: EffectEntry, params: Params) -> bool:
    if other.conversation_id == entry.conversation_id or other.effect_key == entry.effect_key:
        return False
    if entry.start_time_unix_nano - other.start_time_unix_nano > params.window_seconds * _SECOND:
        return False
    if other.tool_name != entry.tool_name:
        return True
    if not isinstance(other.arguments, dict) or not isinstance(entry.arguments, dict):
        return False  # what was asked for can not be told
    told = bool(other.arguments) and bool(entry.arguments)
    return told and not alike(other.arguments, entry.arguments, params.similarity)
