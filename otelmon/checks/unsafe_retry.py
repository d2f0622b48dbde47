"""A write sent again though nobody knows whether the first one took effect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from otelmon.checks.lib.asking import user_messages_between
from otelmon.checks.lib.pairs import apart, call_facts, entry_facts
from otelmon.checks.lib.retries import earlier_attempts
from otelmon.checks.lib.state import read_between, state_changed_between
from otelmon.checks.lib.wording import says
from otelmon.checks.registry import check
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import Evidence
from otelmon.vocabulary.messages import EffectEntry
from otelmon.vocabulary.reading import HttpFields


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`similarity`: how alike (0 to 1) two free texts must be for two writes to be one effect."""

    similarity: float = 0.9


@check(on="call", name="unsafe_retry")
def in_conversation(call: ToolCall, view: View, params: Params) -> Iterator[Evidence]:
    """A write is repeated after an ambiguous outcome, without its idempotency key and without a look first.

    Why it matters: a time-out says nothing about the effect; the first request may have landed and the
    second then lands as well.
    """
    if not view.writes(call) or view.effect(call).repeat != "additive":
        return
    yield from _inside(call, view)
    if call.outcome in ("denied", "pending"):
        return
    first = _ambiguous_before(call, view, params)
    if first is None or _safe(first, call, view):
        return
    yield Evidence(
        summary=f"{call.tool_name} was sent again {apart(first.end_time_unix_nano, call.start_time_unix_nano)} after "
        "an attempt with unknown outcome, without its idempotency key and without reading state first",
        anchor=call.key,
        span_ids=(call.span_id, first.span_id),
        details={
            "other": call_facts(first),
            "this": call_facts(call),
            "same_arguments": view.effect_key(first) == view.effect_key(call),
            "idempotency_keys": [view.idempotency_key(first), view.idempotency_key(call)],
        },
    )


def _ambiguous_before(call: ToolCall, view: View, params: Params) -> ToolCall | None:
    """The latest attempt at this effect with unknown outcome, unless a later one is known to have landed."""
    if not any(c.outcome == "unknown" for c in view.same_tool_before(call)):
        return None
    for earlier in earlier_attempts(call, view, params.similarity):
        if earlier.outcome == "succeeded":
            return None
        if earlier.outcome == "unknown":
            at_once = earlier.batch == call.batch and call.start_time_unix_nano < earlier.end_time_unix_nano
            return None if at_once and earlier.tool_call_id != call.tool_call_id else earlier
    return None


def _safe(first: ToolCall, call: ToolCall, view: View) -> bool:
    key = view.idempotency_key(call)
    if key and key == view.idempotency_key(first):
        return True
    if any(says("again", m.text) or says("more", m.text) for m in user_messages_between(first, call, view)):
        return True
    return read_between(first, call, view) or state_changed_between(first, call, view)


def _inside(call: ToolCall, view: View) -> Iterator[Evidence]:
    """Two HTTP requests under one call: the client's own retry of a request that is not repeatable."""
    for first, second in zip(call.http, call.http[1:], strict=False):
        if not _same_request(first, second) or not _ambiguous(first):
            continue
        if view.idempotency_key(call) or (first.idempotency_key and first.idempotency_key == second.idempotency_key):
            continue
        yield Evidence(
            summary=f"inside one {call.tool_name} call {first.method} was sent again after "
            f"{first.error_type or first.status_code or 'no answer'}, without an idempotency key",
            anchor=call.key,
            key="http",
            span_ids=(call.span_id,),
            details={"this": call_facts(call), "requests": [_request_facts(r) for r in call.http]},
        )
        return


def _same_request(first: HttpFields, second: HttpFields) -> bool:
    return first.method.upper() in ("POST", "PATCH") and (first.method, first.url) == (second.method, second.url)


def _ambiguous(request: HttpFields) -> bool:
    """No answer, or one that does not say whether the work was done."""
    if request.status_code is None:
        return True
    return request.status_code == 408 or request.status_code >= 500


def _request_facts(request: HttpFields) -> dict[str, object]:
    return {
        "method": request.method,
        "url": request.url.partition("?")[0],
        "status_code": request.status_code,
        "error_type": request.error_type,
        "resend_count": request.resend_count,
    }


@check(on="effect", name="unsafe_retry")
def across_runs(entries: Sequence[EffectEntry], params: Params) -> Iterator[Evidence]:  # noqa: ARG001
    """Another run of the same trigger sends a write again whose first outcome is unknown."""
    for i, entry in enumerate(entries):
        if entry.repeat != "additive" or entry.state_changed or not entry.trigger:
            continue
        same = [e for e in entries[:i] if e.trigger == entry.trigger and e.conversation_id != entry.conversation_id]
        if not same or same[-1].outcome != "unknown":
            continue
        first = same[-1]
        if first.idempotency_key and first.idempotency_key == entry.idempotency_key:
            continue
        yield Evidence(
            summary=f"{entry.tool_name} was sent again by another run of the same trigger, though the outcome of the "
            "first is unknown",
            anchor=entry.anchor,
            key="across",
            span_ids=(entry.span_id, first.span_id),
            details={"other": entry_facts(first), "this": entry_facts(entry)},
        )
