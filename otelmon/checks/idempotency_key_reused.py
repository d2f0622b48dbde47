"""One idempotency key for two different effects."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from otelmon.checks.lib.keys import key_past, only_a_key
from otelmon.checks.lib.pairs import apart, call_facts
from otelmon.checks.lib.repeats import spans
from otelmon.checks.lib.retries import same_effect
from otelmon.checks.registry import check
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import Evidence


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`similarity`: how alike (0 to 1) two free texts must be for two writes to be one effect."""

    similarity: float = 0.9


@check(on="call")
def idempotency_key_reused(call: ToolCall, view: View, params: Params) -> Iterator[Evidence]:
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
