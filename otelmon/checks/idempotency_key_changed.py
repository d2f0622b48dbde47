"""One effect, sent again with a fresh idempotency key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from otelmon.checks.lib.asking import asked_again, times_asked, user_messages_between
from otelmon.checks.lib.keys import key_past
from otelmon.checks.lib.pairs import apart, call_facts, entry_facts
from otelmon.checks.lib.repeats import sent_at_once, spans
from otelmon.checks.lib.state import state_changed_between
from otelmon.checks.registry import NoParams, check
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import Evidence
from otelmon.vocabulary.messages import EffectEntry


@check(on="call", name="idempotency_key_changed")
def in_conversation(call: ToolCall, view: View, params: NoParams) -> Iterator[Evidence]:  # noqa: ARG001
    """A write whose first attempt landed, or may have landed, is sent again under another idempotency key.

    Why it matters: the key is what lets the server see one effect; with a fresh one it does the work twice.
    """
    yield from _inside(call)
    if call.outcome == "denied":
        return
    first = next((c for c in reversed(key_past(call, view).same_effect) if _may_have_landed(c)), None)
    if first is None or not _is_retry(first, call, view):
        return
    keys = [view.idempotency_key(first), view.idempotency_key(call)]
    if keys[0] == keys[1]:
        return
    yield Evidence(
        summary=f"{call.tool_name} was sent again {apart(first.end_time_unix_nano, call.start_time_unix_nano)} after "
        f"the first attempt ({first.outcome}) with another idempotency key",
        anchor=call.key,
        span_ids=spans(call, first),
        details={"other": call_facts(first), "this": call_facts(call), "idempotency_keys": keys},
    )


def _may_have_landed(call: ToolCall) -> bool:
    return call.outcome in ("succeeded", "unknown", "pending")


def _is_retry(first: ToolCall, call: ToolCall, view: View) -> bool:
    """True when nobody wanted the effect twice."""
    if call.retry_of and call.retry_of == first.tool_call_id:
        return True
    if sent_at_once(first, call) or state_changed_between(first, call, view):
        return False
    if first.turn != call.turn:
        return not asked_again(first, call, view)
    return times_asked(user_messages_between(None, call, view), call, view) < 2


def _inside(call: ToolCall) -> Iterator[Evidence]:
    """Two requests of one call under two keys: the HTTP client made a new one for its retry."""
    sent = [r for r in call.http if r.idempotency_key and r.method.upper() in ("POST", "PATCH")]
    for first, second in pairwise(sent):
        if (first.method, first.url) != (second.method, second.url) or first.idempotency_key == second.idempotency_key:
            continue
        if not second.resend_count and first.status_code is not None and first.status_code < 500:
            continue  # the first was answered: the second is a request of its own
        yield Evidence(
            summary=f"inside one {call.tool_name} call {first.method} was sent again with another idempotency key",
            anchor=call.key,
            key="http",
            span_ids=(call.span_id,),
            details={"this": call_facts(call), "idempotency_keys": [first.idempotency_key, second.idempotency_key]},
        )
        return


@check(on="effect", name="idempotency_key_changed")
def across_runs(entries: Sequence[EffectEntry], params: NoParams) -> Iterator[Evidence]:  # noqa: ARG001
    """Another run of the same trigger sends the effect under another key."""
    first_of: dict[str, EffectEntry] = {}
    for entry in entries:
        if not entry.trigger or not entry.idempotency_key:
            continue
        first = first_of.setdefault(entry.trigger, entry)
        if first.conversation_id == entry.conversation_id or first.idempotency_key == entry.idempotency_key:
            continue
        if entry.state_changed:
            continue
        yield Evidence(
            summary=f"{entry.tool_name} was sent by two runs of one trigger under two idempotency keys",
            anchor=entry.anchor,
            key="across",
            span_ids=(entry.span_id, first.span_id),
            details={
                "other": entry_facts(first),
                "this": entry_facts(entry),
                "idempotency_keys": [first.idempotency_key, entry.idempotency_key],
            },
        )
