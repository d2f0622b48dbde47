"""Runs that handle one request twice: what started them, when and where they ran, and what they wrote."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from otelmon.checks.lib.asking import request_text
from otelmon.checks.lib.histories import tells
from otelmon.checks.lib.pairs import call_facts, entry_facts
from otelmon.checks.lib.replay import says_replayed
from otelmon.checks.view import View
from otelmon.vocabulary.canonical import short_hash
from otelmon.vocabulary.event import Run
from otelmon.vocabulary.messages import EffectEntry

COMPARED = 50  # earlier runs that one is compared with
_LISTED = 20  # writes of a run that are shown
_SCHEDULE = 3  # runs of one trigger, one after the other; more are a schedule
_SECOND = 1_000_000_000


class Handling(msgspec.Struct, frozen=True):
    """One run that wrote: what started it (`trigger`, `words` a digest of the request), where, when (nanoseconds), how
    it ended, and its writes. `keys` are the idempotency keys of all of them, empty when one has none."""

    run_id: str
    conversation_id: str
    agent: str
    trigger: str
    words: str
    host: str
    start: int
    end: int
    failed: bool
    keys: frozenset[str]
    destructive: bool
    writes: tuple[dict[str, Any], ...]

    @property
    def span_id(self) -> str:
        """The span of the run's agent, "" when it has none."""
        return self.run_id.rpartition(":")[2]


def delivered_twice(first: Handling, second: Handling, window: float, nearby: float) -> bool:
    """True when both handle one request: one trigger within `window` seconds, or the same words at the same time, or
    on two hosts within `nearby` seconds. Two agents may work on one request, and no run repeats itself."""
    if first.agent != second.agent or first.run_id == second.run_id or first.words != second.words:
        return False
    if first.trigger or second.trigger:
        return first.trigger == second.trigger and second.start - first.end <= window * _SECOND
    if not first.words:
        return False
    hosts = bool(first.host and second.host) and first.host != second.host
    return overlap(first, second) or (hosts and second.start - first.start <= nearby * _SECOND)


def overlap(first: Handling, second: Handling) -> bool:
    """True when the second began before the first had ended."""
    return second.start < first.end


def explained(first: Handling, second: Handling) -> bool:
    """True when the second is a retry of a first that failed, or repeats its idempotency keys."""
    if first.failed and not overlap(first, second):
        return True
    return bool(second.keys) and second.keys <= first.keys


def earlier_handling(second: Handling, before: Sequence[Handling], window: float, nearby: float) -> Handling | None:
    """The first run that handled the request of this one, when nothing explains that there are two."""
    same = [h for h in before[-COMPARED:] if delivered_twice(h, second, window, nearby)]
    if not same or any(explained(first, second) for first in same):
        return None
    return next((h for h in same if overlap(h, second)), same[0])


def on_schedule(trigger: str, handlings: Iterable[Handling]) -> bool:
    """True when a trigger starts one run after the other: it names a schedule, not one delivery."""
    mine = [h for h in handlings if h.trigger == trigger]
    apart = sum(1 for one, two in pairwise(mine) if not overlap(one, two))
    return bool(trigger) and apart >= _SCHEDULE


# -- from a conversation -------------------------------------------------------------------------------
_REMEMBERED: WeakKeyDictionary[View, tuple[Handling, ...]] = WeakKeyDictionary()


def handlings(view: View) -> tuple[Handling, ...]:
    """The runs of a conversation that wrote, by their start."""
    known = _REMEMBERED.get(view)
    if known is None:
        found = (_handling(run, view) for run in view.runs)
        known = _REMEMBERED[view] = tuple(sorted((h for h in found if h), key=lambda h: (h.start, h.run_id)))
    return known


def _handling(run: Run, view: View) -> Handling | None:
    landed = ("succeeded", "unknown")
    writes = [
        c for c in view.run_calls(run.run_id) if c.outcome in landed and view.writes(c) and not says_replayed(c.result)
    ]
    if not writes:
        return None
    words = request_text(writes[0], view)
    keys = [view.idempotency_key(c) for c in writes]
    return Handling(
        run_id=run.run_id,
        conversation_id=view.conversation_id,
        agent=run.agent_name or "",
        trigger=writes[0].trigger or run.trigger or "",
        words=short_hash(words) if tells(words, named=False) else "",
        host=run.host,
        start=run.start_time_unix_nano or writes[0].start_time_unix_nano,
        end=max(run.end_time_unix_nano, writes[-1].end_time_unix_nano),
        failed=bool(run.error_type),
        keys=frozenset(k for k in keys if k) if all(keys) else frozenset(),
        destructive=any(view.effect(c).effect == "destructive" for c in writes),
        writes=tuple(call_facts(c) for c in writes[:_LISTED]),
    )


# -- from the ledger -----------------------------------------------------------------------------------
def handlings_of(entries: Sequence[EffectEntry]) -> list[Handling]:
    """The runs of a history, by their start."""
    by_run: dict[str, list[EffectEntry]] = {}
    for entry in entries:
        by_run.setdefault(entry.run_id, []).append(entry)
    return sorted((_of_entries(run) for run in by_run.values()), key=lambda h: (h.start, h.run_id))


def _of_entries(entries: Sequence[EffectEntry]) -> Handling:
    first = entries[0]
    keys = [e.idempotency_key for e in entries]
    return Handling(
        run_id=first.run_id,
        conversation_id=first.conversation_id,
        agent=first.agent_name or "",
        trigger=first.trigger or "",
        words=first.request_digest,
        host=first.host,
        start=min(first.run_start_time_unix_nano or first.start_time_unix_nano, first.start_time_unix_nano),
        end=max(e.end_time_unix_nano for e in entries),
        failed=any(e.run_failed for e in entries),
        keys=frozenset(k for k in keys if k) if all(keys) else frozenset(),
        destructive=any(e.effect == "destructive" for e in entries),
        writes=tuple(entry_facts(e) for e in entries[:_LISTED]),
    )
