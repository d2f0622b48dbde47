"""The same additive effect landed more than once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from otelmon.checks.lib.asking import asked_again, request_text, times_asked, user_messages_between
from otelmon.checks.lib.landed import Landed, SameIntent, same_trigger
from otelmon.checks.lib.pairs import apart, call_facts, entry_facts
from otelmon.checks.lib.replay import same_creation, says_replayed
from otelmon.checks.lib.sameness import comparable
from otelmon.checks.lib.state import state_changed_between
from otelmon.checks.registry import check
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import Evidence, Severity
from otelmon.vocabulary.messages import EffectEntry

_COMPARED = 4


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`window_seconds`: how far apart equal writes of two conversations still count as one intent."""

    window_seconds: float = 900.0


@check(on="call", name="duplicate_write")
def in_conversation(call: ToolCall, view: View, params: Params) -> Iterator[Evidence]:  # noqa: ARG001
    """The same write landed twice in one conversation, and nobody asked for two.

    Why it matters: each of two equal answers looks like success, and the customer is charged, mailed or
    booked twice.
    """
    if not _lands_additively(call, view):
        return
    landed = view.landed_before(call)
    if not landed or _explained(landed, call, view):
        return
    first, last, times = landed[0], landed[-1], len(landed) + 1
    yield Evidence(
        summary=f"{call.tool_name} took effect {times} times with the same arguments, "
        f"{apart(first.start_time_unix_nano, call.start_time_unix_nano)} after the first",
        anchor=call.key,
        span_ids=tuple(dict.fromkeys((call.span_id, first.span_id, last.span_id))),
        severity=_severity(view.effect(call).effect),
        details={
            "other": call_facts(first),
            "this": call_facts(call),
            "times": times,
            "effect_key": view.effect_key(call),
            "same_request": _one_request(last, call, view),
            "idempotency_keys": [view.idempotency_key(first), view.idempotency_key(call)],
        },
    )


def _lands_additively(call: ToolCall, view: View) -> bool:
    return (
        call.outcome == "succeeded"
        and view.writes(call)
        and view.effect(call).repeat == "additive"
        and comparable(call)
        and not says_replayed(call.result)
    )


def _explained(landed: Sequence[ToolCall], call: ToolCall, view: View) -> bool:
    """True when the repeat is no second effect, or one that was wanted."""
    last, key = landed[-1], view.idempotency_key(call)
    compared = (*landed[:_COMPARED], *landed[-_COMPARED:])  # a loop of thousands stays cheap
    if key and any(view.idempotency_key(c) == key for c in compared):
        return True
    if any(same_creation(c, call) for c in compared):
        return True
    if _one_request(last, call, view) or _redelivered(last, call, view):
        return False
    return state_changed_between(last, call, view) or _wanted(landed, call, view)


def _one_request(first: ToolCall, second: ToolCall, view: View) -> bool:
    """One call id executed twice though the model asked once: a resume, a redelivery, a second worker."""
    if not first.tool_call_id or first.tool_call_id != second.tool_call_id:
        return False
    asked = view.requests_by_call_id[first.tool_call_id]
    return asked == 1 or (asked == 0 and first.batch == second.batch)


def _redelivered(first: ToolCall, second: ToolCall, view: View) -> bool:
    """One message handled by two runs: the same words, and the runs overlap, ran on two hosts or are two
    attempts of one trigger. A person who repeats himself waits for an answer."""
    one, two = view.run_of(first), view.run_of(second)
    if one.run_id == two.run_id:
        return False
    texts = [request_text(first, view), request_text(second, view)]
    if texts[0] != texts[1] or times_asked(user_messages_between(None, second, view), second, view) > 1:
        return False
    overlap = two.start_time_unix_nano < one.end_time_unix_nano
    hosts = bool(one.host and two.host) and one.host != two.host
    return overlap or hosts or (bool(one.trigger) and one.trigger == two.trigger)


def _wanted(landed: Sequence[ToolCall], call: ToolCall, view: View) -> bool:
    """What the user's words allow: a count in this turn, or the same asked again in a new turn."""
    this_turn = [c for c in landed if c.turn == call.turn]
    earlier = [c for c in landed if c.turn != call.turn]
    since = earlier[-1] if earlier else None
    if not this_turn:
        return asked_again(landed[-1], call, view)
    return len(this_turn) < times_asked(user_messages_between(since, call, view), call, view)


def _severity(effect: str) -> Severity:
    return "critical" if effect == "destructive" else "high"


@check(on="effect", name="duplicate_write")
def across_conversations(entries: Sequence[EffectEntry], params: Params) -> Iterator[Evidence]:
    """The same write landed in two runs of one trigger, or in two conversations shortly after each other."""
    landed = Landed()
    for entry in entries:
        if entry.outcome != "succeeded":
            continue
        if entry.repeat == "additive" and not entry.state_changed:
            same = landed.of_same_intent(entry, params.window_seconds)
            if same is not None and not landed.with_same_key(entry, same):
                yield _across(entry, same)
        landed.add(entry)


def _across(entry: EffectEntry, same: SameIntent) -> Evidence:
    first = same.first
    link = "one trigger" if same_trigger(first, entry) else "two conversations"
    return Evidence(
        summary=f"{entry.tool_name} took effect with the same arguments in {link}, "
        f"{apart(first.start_time_unix_nano, entry.start_time_unix_nano)} after the first",
        anchor=entry.anchor,
        key="across",
        span_ids=tuple(dict.fromkeys((entry.span_id, first.span_id, same.last.span_id))),
        severity=_severity(entry.effect),
        details={
            "other": entry_facts(first),
            "this": entry_facts(entry),
            "times": same.times + 1,
            "effect_key": entry.effect_key,
            "link": link,
            "hosts": sorted({e.host for e in (*same.some, entry) if e.host}),
        },
    )
