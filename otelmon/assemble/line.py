"""The one line of a conversation: messages in story order, calls between them.

A call belongs after the message that asked for it and before the message that shows its response.
Calls that nobody was seen to ask for are placed by their start time among the messages of their
run. Clocks decide nothing that messages say.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from otelmon.assemble.derive import Called
from otelmon.assemble.events import place_of
from otelmon.assemble.occurrences import Item, Occurrence
from otelmon.assemble.order import Story
from otelmon.assemble.runs import RunDraft
from otelmon.assemble.telling import Early

_Rank = tuple[int, int, int, tuple[int, int, str, str]]


class _Ruler:
    """Times of a run's items, made monotone, with their indexes."""

    def __init__(self) -> None:
        self.times: list[int] = []
        self.indexes: list[int] = []
        self.lead = -1
        self._leading = True

    def add(self, index: int, item: Item) -> None:
        assistant = isinstance(item, Occurrence) and item.message is not None and item.message.role == "assistant"
        self._leading = self._leading and not assistant
        if self._leading:
            self.lead = index
        self.times.append(max(item.time, self.times[-1] if self.times else item.time))
        self.indexes.append(index)

    def after(self, time: int) -> int:
        """Index of the last item at or before this time; never before what starts the run."""
        found = bisect_right(self.times, time)
        index = self.indexes[found - 1] if found else -1
        return max(index, self.lead)


class Line:
    """Puts calls and items in one order."""

    def __init__(self, story: Story, calls: Sequence[Called], early: Early, runs: Sequence[RunDraft]) -> None:
        self._items = story.items
        self._early = early
        self._runs = runs
        self._rulers: dict[str, _Ruler] = {}
        self._all = _Ruler()
        for index, item in enumerate(self._items):
            if isinstance(item, Occurrence):
                item.index = index
            self._rulers.setdefault(item.place.run.run_id, _Ruler()).add(index, item)
            self._all.add(index, item)
        self._all.lead = -1
        self._after: dict[int, list[tuple[_Rank, Called]]] = {}
        for called in calls:
            index, rank = self._place(called)
            self._after.setdefault(index, []).append((rank, called))

    def entries(self) -> list[Item | Called]:
        """Everything in order."""
        entries: list[Item | Called] = []
        opened: set[str] = set()
        self._add_calls(-1, entries, opened)
        for index, item in enumerate(self._items):
            self._open(item.place.run.run_id, entries, opened)
            entries.append(item)
            self._add_calls(index, entries, opened)
        for run in self._runs:
            self._open(run.run_id, entries, opened)
        return entries

    def _add_calls(self, index: int, entries: list[Item | Called], opened: set[str]) -> None:
        for _, called in sorted(self._after.get(index, ()), key=lambda pair: pair[0]):
            self._open(place_of(called).run.run_id, entries, opened)
            entries.append(called)

    def _open(self, run_id: str, entries: list[Item | Called], opened: set[str]) -> None:
        if run_id not in opened:
            opened.add(run_id)
            entries.extend(self._early.get(run_id, ()))

    def _place(self, called: Called) -> tuple[int, _Rank]:
        execution, slot = called.execution, called.slot
        order = execution.order if execution else (0, 0, "", "")
        if slot is None:
            return self._by_time(called), (1, 0, 0, order)
        asked = slot.group.last.index
        rank = (0, called.ordinal, slot.number, order)
        answer = slot.answer
        elsewhere = execution is not None and execution.reading.trace_id != slot.node.place.reading.trace_id
        if elsewhere and answer is not None and answer.index > asked:
            return max(asked, answer.index - 1), rank
        return asked, rank

    def _by_time(self, called: Called) -> int:
        place = place_of(called)
        start = called.execution.start if called.execution else place.reading.start_time_unix_nano
        ruler = self._rulers.get(place.run.run_id)
        return (ruler or self._all).after(start)
