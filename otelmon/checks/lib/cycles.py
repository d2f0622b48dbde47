"""Cycles in a sequence of calls: the same few calls with the same answers, over and over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from weakref import WeakKeyDictionary

import msgspec

from otelmon.checks.lib.asking import times_asked, user_messages_between
from otelmon.checks.lib.polling import may_poll, on_a_timer
from otelmon.checks.lib.repeats import ended_badly, fingerprint, stretch, what_came_back
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall


class Cycle(msgspec.Struct, frozen=True):
    """A cycle that went round often enough. `calls` are its last round, the anchor last; `first` is where it
    began; `rounds` how often it went round in all."""

    period: int
    rounds: int
    first: ToolCall
    calls: tuple[ToolCall, ...]


class Limits(msgspec.Struct, frozen=True):
    """`repeats`: rounds of a single call that make a loop; `rounds`: rounds of a longer cycle; `longest`:
    the longest cycle looked for, in calls; `timer_seconds`: reads at equal distances of at least this poll."""

    repeats: int
    rounds: int
    longest: int
    timer_seconds: float


_REMEMBERED: WeakKeyDictionary[View, tuple[Limits, dict[str, Cycle]]] = WeakKeyDictionary()


def cycle_at(call: ToolCall, view: View, limits: Limits) -> Cycle | None:
    """The cycle that becomes a loop with this call; each cycle has one such call."""
    known = _REMEMBERED.get(view)
    if known is None or known[0] != limits:
        known = _REMEMBERED[view] = (limits, _walk(view, limits))
    return known[1].get(call.key)


def _walk(view: View, limits: Limits) -> dict[str, Cycle]:
    stretches: dict[tuple[object, ...], list[ToolCall]] = {}
    for call in view.calls:
        stretches.setdefault(stretch(call), []).append(call)
    found: dict[str, Cycle] = {}
    fewest = min(limits.repeats, limits.rounds)
    for calls in stretches.values():
        if len(calls) >= fewest:
            found |= {cycle.calls[-1].key: cycle for cycle in _cycles(calls, _signs(calls, view, fewest), view, limits)}
    return found


def _signs(calls: Sequence[ToolCall], view: View, fewest: int) -> list[str | None]:
    """What must be equal for a call to be the same again; None for a call that is not repeated often enough."""
    prints = [fingerprint(call, view) for call in calls]
    times = Counter(prints)
    return [
        _sign(call, mine, view) if times[mine] >= fewest else None for call, mine in zip(calls, prints, strict=True)
    ]


def _cycles(calls: Sequence[ToolCall], signs: Sequence[str | None], view: View, limits: Limits) -> Iterator[Cycle]:
    """One pass: for each period how many calls in a row equal the call one period before."""
    if not any(signs):
        return
    runs = [0] * (limits.longest + 1)
    for place, sign in enumerate(signs):
        for period in range(1, limits.longest + 1):
            before = place - period
            same = before >= 0 and sign is not None and sign == signs[before] and _later(calls[before], calls[place])
            runs[period] = runs[period] + 1 if same else 0
        for period in range(1, limits.longest + 1):
            needed = (_rounds_needed(period, limits) - 1) * period
            if runs[period] == needed and not any(runs[p] >= period for p in range(1, period)):
                yield from _kept(calls, place, period, signs, view, limits)


def _rounds_needed(period: int, limits: Limits) -> int:
    return limits.repeats if period == 1 else limits.rounds


def _later(first: ToolCall, second: ToolCall) -> bool:
    """Calls that one message asked for at once are no rounds of a cycle."""
    return first.batch != second.batch


def _kept(
    calls: Sequence[ToolCall], place: int, period: int, signs: Sequence[str | None], view: View, limits: Limits
) -> Iterator[Cycle]:
    start = place + 1 - _rounds_needed(period, limits) * period
    seen = calls[start : place + 1]
    if _meant(seen, period, view, limits):
        return
    end = place + 1
    while end < len(calls) and signs[end] is not None and signs[end] == signs[end - period]:
        end += 1
    yield Cycle(period, (end - start) // period, calls[start], tuple(calls[place + 1 - period : place + 1]))


def _meant(seen: Sequence[ToolCall], period: int, view: View, limits: Limits) -> bool:
    """True when the repeats are wanted: the user asked for so many, or a read is made on a timer."""
    last = seen[-1]
    if period == 1 and not view.writes(last) and on_a_timer(seen, limits.timer_seconds):
        return True
    if not any(view.writes(call) for call in seen[-period:]):
        return False
    return times_asked(user_messages_between(None, last, view), last, view) >= len(seen) // period


def _sign(call: ToolCall, mine: str, view: View) -> str | None:
    """Tool, arguments and answer; None for a call that may be repeated, or whose answer can not be seen."""
    if may_poll(call, view) or _legitimate_toggle(call, view):
        return None
    hidden = call.result_fidelity in ("absent", "hashed", "truncated")
    if hidden and not ended_badly(call) and not view.writes(call):
        return None
    return f"{mine}\x1f{call.outcome}\x1f{what_came_back(call, view)}"


def _legitimate_toggle(call: ToolCall, view: View) -> bool:
    """A switch, a restart, a step: a write without arguments does something each time it works."""
    return not ended_badly(call) and not call.arguments and view.effect(call).effect != "read"
