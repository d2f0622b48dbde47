"""Runs seen twice: two instrumentations of one process may each make a trace of their own of the same run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from otelmon.assemble.runs import Place, RunDraft, SpanKey
from otelmon.vocabulary.reading import Reading

NEAREST = 8  # runs looked at, of those that began before
_OWN = ("agent", "model", "tool")
_SAME_TIME = 0.8  # of the longer one, inside the other
_SHORT_NANOS = 5_000_000


def join_twins(runs: Sequence[RunDraft], places: Mapping[SpanKey, Place]) -> list[RunDraft]:
    """The runs, ordered by start, without second views: those are part of the run that began first.

    Two runs are views of one when they are of two traces and of one process, no instrumentation made spans
    of both, they lie over each other in time, and a message or a call id is in both.
    """
    if len({run.trace_id for run in runs if run.root is not None}) < 2:
        return list(runs)
    kept: list[RunDraft] = []
    views: list[_View] = []
    for run in runs:
        view = _View(run) if run.root is not None else None
        twin = next((v for v in reversed(views[-NEAREST:]) if view and v.same_run(view)), None)
        if view is None or twin is None:
            kept.append(run)
            views += [view] if view else []
        else:
            twin.take(view, places)
    return kept


class _View:
    """A run with what tells whether another one is the same. What is costly is found when first asked for."""

    def __init__(self, run: RunDraft) -> None:
        self.run = run
        self.scopes = {reading.scope_name for reading in run.readings if reading.kind in _OWN}
        self._marks: set[str] | None = None

    @property
    def marks(self) -> set[str]:
        if self._marks is None:
            self._marks = {mark for reading in self.run.readings for mark in _marks_of(reading)}
        return self._marks

    def same_run(self, other: _View) -> bool:
        one, two = self.run.readings[0], other.run.readings[0]
        return (
            self.run.trace_id != other.run.trace_id
            and (one.service_name, one.host) == (two.service_name, two.host)
            and self.scopes.isdisjoint(other.scopes)
            and _same_time(self.run, other.run)
            and not self.marks.isdisjoint(other.marks)
        )

    def take(self, other: _View, places: Mapping[SpanKey, Place]) -> None:
        """Make the other run's spans part of this one."""
        self.run.readings.extend(other.run.readings)
        for reading in other.run.readings:
            places[(reading.trace_id, reading.span_id)].run = self.run
        self.scopes |= other.scopes
        self.marks.update(other.marks)


def _marks_of(reading: Reading) -> list[str]:
    own = [*reading.input, *reading.output] if reading.kind in ("agent", "model") else []
    call_id = reading.tool.call_id if reading.tool is not None else None
    return [*own, f"call:{call_id}"] if call_id else own


def _same_time(one: RunDraft, other: RunDraft) -> bool:
    shared = min(one.end, other.end) - max(one.start, other.start)
    longer = max(one.end - one.start, other.end - other.start)
    if longer <= _SHORT_NANOS:
        return abs(one.start - other.start) <= _SHORT_NANOS
    return shared > _SAME_TIME * longer
