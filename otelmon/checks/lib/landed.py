"""Earlier writes of one effect key that meant the same as a later one, found without comparing each with each: a
storm is thousands of equal writes within minutes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

import msgspec

from otelmon.vocabulary.messages import EffectEntry

_SECOND = 1_000_000_000
Label = tuple[str, ...]
_SHOWN = 50  # writes at either end whose hosts are named


class SameIntent(msgspec.Struct, frozen=True):
    """Earlier writes of one intent: the first and the last, how many, some of them, and where in the history
    the window of time began (`since`)."""

    first: EffectEntry
    last: EffectEntry
    times: int
    some: tuple[EffectEntry, ...]
    since: int


def same_trigger(first: EffectEntry, second: EffectEntry) -> bool:
    """True when one trigger, which is known, started both runs."""
    return bool(first.trigger) and first.trigger == second.trigger


class Landed:
    """The writes of a history that took effect, in the order they began. No question compares the writes one by
    one."""

    def __init__(self) -> None:
        self._all: list[EffectEntry] = []
        self._starts: list[int] = []
        self._places: dict[Label, list[int]] = {}  # of a label, and of a label in one conversation

    def add(self, entry: EffectEntry) -> None:
        """Take the next one. Entries come in order of their start."""
        place = len(self._all)
        self._all.append(entry)
        self._starts.append(entry.start_time_unix_nano)
        for label in _labels(entry):
            self._places.setdefault(label, []).append(place)
            self._places.setdefault((*label, entry.conversation_id), []).append(place)

    def of_same_intent(self, entry: EffectEntry, window_seconds: float) -> SameIntent | None:
        """Writes of other conversations: of the entry's trigger, and, when its arguments name a record and nobody
        asked for several, those that began within the window before it."""
        since = len(self._all)
        if entry.identifying and entry.asked < 2:
            since = bisect_left(self._starts, entry.start_time_unix_nano - int(window_seconds * _SECOND))
        near = self._others(entry, ("any", "", ""), since)
        far = self._others(entry, ("trigger", entry.trigger or "", ""), 0, since)
        ends = [place for others in (far, near) if others.times for place in (others.first, others.last)]
        if not ends:
            return None
        some = tuple(self._all[place] for place in (*far.some(), *near.some()))
        return SameIntent(self._all[min(ends)], self._all[max(ends)], far.times + near.times, some, since)

    def with_same_key(self, entry: EffectEntry, same: SameIntent) -> bool:
        """True when one of these carried the idempotency key of the entry."""
        key, trigger = entry.idempotency_key or "", entry.trigger or ""
        if not key:
            return False
        triggered = bool(trigger) and self._others(entry, ("key", key, trigger), 0, same.since).times > 0
        return triggered or self._others(entry, ("key", key, ""), same.since).times > 0

    def _others(self, entry: EffectEntry, label: Label, start: int, stop: int | None = None) -> _Others:
        """The places of a label from `start` on and before `stop`, and which of them are the entry's own."""
        places = self._places.get(label, [])
        places = places[bisect_left(places, start) : None if stop is None else bisect_left(places, stop)]
        return _Others(places, self._places.get((*label, entry.conversation_id), []))


def _labels(entry: EffectEntry) -> Iterator[Label]:
    trigger, key = entry.trigger or "", entry.idempotency_key or ""
    yield "any", "", ""
    if trigger:
        yield "trigger", trigger, ""
    if key:
        yield "key", key, ""
    if key and trigger:
        yield "key", key, trigger


class _Others:
    """The places of a rising sequence that are not among one's own, which rise too."""

    def __init__(self, places: Sequence[int], own: Sequence[int]) -> None:
        self._places, self._own = places, own
        self._from = bisect_left(own, places[0]) if places else 0
        self._mine = (bisect_right(own, places[-1]) - self._from) if places else 0
        self.times = len(places) - self._mine

    @property
    def first(self) -> int:
        """The first place that is not one's own; there must be one."""
        return self._places[self._leading()]

    @property
    def last(self) -> int:
        """The last place that is not one's own; there must be one."""
        return self._places[-1 - self._trailing()]

    def some(self) -> Iterator[int]:
        """Those near either end, without one's own."""
        head, tail = self._leading(), len(self._places) - self._trailing()
        own = set(self._own[self._from : self._from + _SHOWN]) | set(self._own[-_SHOWN:])
        near = (*self._places[head : min(head + _SHOWN, tail)], *self._places[max(head, tail - _SHOWN) : tail])
        yield from (place for place in near if place not in own)

    def _leading(self) -> int:
        """How many of the first places are one's own."""
        own, places, start = self._own, self._places, self._from
        return bisect_left(range(self._mine), 1, key=lambda n: int(own[start + n] != places[n]))

    def _trailing(self) -> int:
        """How many of the last places are one's own."""
        own, places, end = self._own, self._places, self._from + self._mine
        return bisect_left(range(self._mine), 1, key=lambda n: int(own[end - 1 - n] != places[-1 - n]))
