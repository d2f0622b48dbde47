"""Which run, agent and tool call every span belongs to.

The root of a run is the topmost agent span of its trace: what is above it does not matter. A trace
without agent spans is one run of its own, unless it lies wholly inside the only agent run of the
conversation that was open at the time (context propagation broke: it belongs to that run). A trace in
which agents are only set up is no run: what it defines belongs to the run that follows.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from otelmon.vocabulary.reading import Reading

SpanKey = tuple[str, str]
NEAREST = 32


@dataclass(slots=True, eq=False)
class RunDraft:
    """A run while it is put together. `root` is the topmost agent reading, None without agents."""

    run_id: str
    trace_id: str
    root: Reading | None
    readings: list[Reading] = field(default_factory=list)
    root_seen: bool = False
    start: int = 0
    end: int = 0


@dataclass(slots=True, eq=False)
class Place:
    """Where a reading stands: `agent` the nearest agent reading (itself when it is one), `tool` the
    nearest tool reading above it inside its run, `between` the kinds found on the way up to it."""

    reading: Reading
    run: RunDraft
    agent: Reading | None
    tool: Reading | None
    direct: bool = True


@dataclass(slots=True, eq=False)
class _Context:
    """What a span hands down to its children."""

    top: Reading | None = None
    agent: Reading | None = None
    tool: Reading | None = None
    direct: bool = True
    orphan: bool = False


def span_order(reading: Reading) -> tuple[int, int, str, str]:
    """Clock order with ties broken by ids."""
    return (reading.start_time_unix_nano, reading.end_time_unix_nano, reading.trace_id, reading.span_id)


def place_all(readings: Sequence[Reading]) -> tuple[dict[SpanKey, Place], list[RunDraft]]:
    """The place of every reading and the runs, ordered by start. One reading per (trace, span)."""
    by_trace: dict[str, list[Reading]] = {}
    for reading in readings:
        by_trace.setdefault(reading.trace_id, []).append(reading)
    places: dict[SpanKey, Place] = {}
    runs: list[RunDraft] = []
    for trace_id, members in by_trace.items():
        runs.extend(_place_trace(trace_id, members, places))
    runs = _join_split_traces(runs, places)
    for run in runs:
        run.start = run.root.start_time_unix_nano if run.root else min(map(_start, run.readings))
        run.end = run.root.end_time_unix_nano if run.root else max(map(_end, run.readings))
    runs = _join_setups(runs, places)
    runs.sort(key=lambda run: (run.start, run.trace_id, run.run_id))
    return places, runs


_start = attrgetter("start_time_unix_nano")
_end = attrgetter("end_time_unix_nano")


def _place_trace(trace_id: str, members: list[Reading], places: dict[SpanKey, Place]) -> list[RunDraft]:
    members.sort(key=span_order)
    by_id = {reading.span_id: reading for reading in members}
    contexts: dict[str, _Context] = {}
    for reading in members:
        _climb(reading, by_id, contexts)
    runs = _runs_of_trace(trace_id, members, contexts)
    outside = False
    for reading in members:
        above = contexts.get(reading.parent_span_id) or _outside(reading)
        own = contexts[reading.span_id]
        run = runs.get(own.top.span_id) if own.top else None
        if run is None:
            run = _by_time(reading, runs)
            outside = outside or (own.orphan and reading.kind in ("tool", "model"))
        run.readings.append(reading)
        tool = above.tool if own.top is not reading else None
        places[(trace_id, reading.span_id)] = Place(reading, run, own.agent, tool, above.direct)
    for run in runs.values():
        run.root_seen = _root_seen(run, contexts, outside)
    return [run for run in runs.values() if run.readings]


def _climb(reading: Reading, by_id: Mapping[str, Reading], contexts: dict[str, _Context]) -> None:
    """Contexts from the topmost known ancestor down to the reading; a cycle ends at its first span."""
    path: list[Reading] = []
    on_path: set[str] = set()
    current: Reading | None = reading
    while current is not None and current.span_id not in contexts and current.span_id not in on_path:
        path.append(current)
        on_path.add(current.span_id)
        current = by_id.get(current.parent_span_id)
    for span in reversed(path):
        above = contexts.get(span.parent_span_id) or _outside(span)
        contexts[span.span_id] = _inside(span, above)


def _outside(reading: Reading) -> _Context:
    return _Context(orphan=bool(reading.parent_span_id))


def _inside(span: Reading, above: _Context) -> _Context:
    if span.kind == "agent":
        if above.top is None:
            return _Context(span, span, None, True, above.orphan)
        return _Context(above.top, span, above.tool, False, above.orphan)
    if span.kind == "tool":
        return _Context(above.top, above.agent, span, True, above.orphan)
    direct = above.direct and span.kind != "model"
    return _Context(above.top, above.agent, above.tool, direct, above.orphan)


def _runs_of_trace(trace_id: str, members: Sequence[Reading], contexts: Mapping[str, _Context]) -> dict[str, RunDraft]:
    tops = [r for r in members if r.kind == "agent" and contexts[r.span_id].top is r]
    if not tops:
        return {"": RunDraft(f"{trace_id}:", trace_id, None)}
    return {top.span_id: RunDraft(f"{trace_id}:{top.span_id}", trace_id, top) for top in tops}


def _by_time(reading: Reading, runs: Mapping[str, RunDraft]) -> RunDraft:
    """For a span under no agent: the newest run that had begun, else the first."""
    drafts = list(runs.values())
    chosen = drafts[0]
    for draft in drafts[1:]:
        if draft.root is None or draft.root.start_time_unix_nano > reading.start_time_unix_nano:
            break
        chosen = draft
    return chosen


def _root_seen(run: RunDraft, contexts: Mapping[str, _Context], outside: bool) -> bool:
    """With agents: the root span is here, and no tool or model span hangs under another span that
    never came (then the agent we have may be a sub-agent). Without: some span has no parent."""
    if run.root is None:
        return any(not reading.parent_span_id for reading in run.readings)
    return not (contexts[run.root.span_id].orphan and outside)


def _join_split_traces(runs: list[RunDraft], places: Mapping[SpanKey, Place]) -> list[RunDraft]:
    with_agent = sorted((run for run in runs if run.root is not None), key=_root_start)
    if not with_agent or len(with_agent) == len(runs):
        return runs
    starts = [_root_start(run) for run in with_agent]
    kept = list(with_agent)
    for run in runs:
        if run.root is not None:
            continue
        home = _home_of(run, with_agent, starts)
        if home is None:
            kept.append(run)
            continue
        home.readings.extend(run.readings)
        for reading in run.readings:
            places[(reading.trace_id, reading.span_id)].run = home
    return kept


def _join_setups(runs: list[RunDraft], places: Mapping[SpanKey, Place]) -> list[RunDraft]:
    """Without the drafts that only set up: their spans go to the run that begins next, else the last."""
    setups = [run for run in runs if _is_setup(run)]
    if not setups:
        return runs
    kept = sorted((run for run in runs if not _is_setup(run)), key=lambda run: (run.start, run.run_id))
    starts = [run.start for run in kept]
    for run in setups if kept else ():
        home = kept[min(bisect_left(starts, run.start), len(kept) - 1)]
        home.readings.extend(run.readings)
        for reading in run.readings:
            places[(reading.trace_id, reading.span_id)].run = home
    return kept


def _is_setup(run: RunDraft) -> bool:
    kinds = {reading.kind for reading in run.readings}
    return "setup" in kinds and kinds <= {"setup", "http", "other"}


def _root_start(run: RunDraft) -> tuple[int, str]:
    return (run.root.start_time_unix_nano if run.root else 0, run.run_id)


def _home_of(run: RunDraft, candidates: Sequence[RunDraft], starts: Sequence[tuple[int, str]]) -> RunDraft | None:
    """The one run with an agent that was open all the time; None when there is none or a choice."""
    start, end = min(map(_start, run.readings)), max(map(_end, run.readings))
    service = run.readings[0].service_name
    before = bisect_right(starts, (start, "\uffff"))
    around = [
        other
        for other in candidates[max(0, before - NEAREST) : before]
        if other.root is not None and end <= other.root.end_time_unix_nano and other.root.service_name == service
    ]
    return around[0] if len(around) == 1 else None
