"""A conversation from its readings. Pure: the same set of readings gives the same timeline,
whatever the order in which they arrive and however often each comes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from otelmon.assemble.derive import Called, DerivedKeys, derived, match
from otelmon.assemble.events import RunFacts, Writer, place_of
from otelmon.assemble.gaps import gaps_of
from otelmon.assemble.gather import MessageTable, conflicts, leftovers, one_per_span
from otelmon.assemble.line import Line
from otelmon.assemble.merge import executions
from otelmon.assemble.occurrences import Item, Occurrence
from otelmon.assemble.order import Story
from otelmon.assemble.runs import Place, RunDraft, SpanKey, place_all
from otelmon.assemble.telling import tell
from otelmon.assemble.twins import join_twins
from otelmon.vocabulary.event import EndReason, Event, Run, Timeline
from otelmon.vocabulary.reading import Reading

__all__ = ["build", "conflicts"]

_NONE_CLOSED: Mapping[str, EndReason] = {}


def build(
    conversation_id: str, readings: Iterable[Reading], closed: Mapping[str, EndReason] = _NONE_CLOSED
) -> Timeline:
    """The runs of a conversation and its events in causal order. `readings`: all of them, of all
    its traces. `closed`: why a run is over, by run id."""
    held = list(readings)
    spans = one_per_span(held)
    if not spans:
        return Timeline(conversation_id, (), ())
    return _Assembly(conversation_id, spans, leftovers(held, spans), closed).timeline()


class _Assembly:
    """The work on one conversation, used once."""

    def __init__(
        self,
        conversation_id: str,
        spans: Sequence[Reading],
        others: Sequence[Reading],
        closed: Mapping[str, EndReason],
    ) -> None:
        self._conversation_id = conversation_id
        self._closed = closed
        self._places, runs = place_all(spans)
        self._runs = join_twins(runs, self._places)
        self._table = MessageTable([*spans, *others])
        self._facts = {run.run_id: RunFacts(run) for run in self._runs}
        self._story = Story(self._table.messages)
        self._early = tell(self._story, self._table, self._places, self._runs)
        shown = executions(self._places, spans, _schemas(spans))
        self._calls = [*match(shown, self._story.slots), *derived(self._story.slots)]
        self._nested = nested_calls(self._calls, self._places)

    def timeline(self) -> Timeline:
        if not self._runs:
            return Timeline(self._conversation_id, (), ())
        line = Line(self._story, self._calls, self._early, self._runs)
        events = self._write(line.entries())
        by_run: dict[str, list[Event]] = {}
        for event in events:
            by_run.setdefault(event.run_id, []).append(event)
        runs = tuple(self._run(run, by_run.get(run.run_id, [])) for run in self._runs)
        return Timeline(self._conversation_id, runs, tuple(events))

    def _write(self, entries: Sequence[Item | Called]) -> list[Event]:
        writer = Writer(self._facts)
        keys = self._keys()
        turns = _Turns()
        batches: dict[int, int] = {}
        finals = final_messages(entries)
        ends = self._ends(entries)
        for index, entry in enumerate(entries):
            if isinstance(entry, Called):
                where = id(entry.slot.group) if entry.slot else -1 - index
                batch = batches.setdefault(where, len(batches) + 1)
                nested = self._nested.get(id(entry))
                writer.call(entry, keys[id(entry)], turns.of_call(entry), batch, nested)
            else:
                writer.item(entry, turns.of_item(entry), id(entry) in finals)
            for run in ends.get(index, ()):
                self._end(writer, run)
        for run in ends.get(-1, ()):
            self._end(writer, run)
        return writer.events

    def _end(self, writer: Writer, run: RunDraft) -> None:
        writer.end(run, self._closed[run.run_id], _error_of(run))

    def _ends(self, entries: Sequence[Item | Called]) -> dict[int, list[RunDraft]]:
        """Closed runs by the index of their last entry; -1 for runs without any."""
        last: dict[str, int] = {}
        for index, entry in enumerate(entries):
            place = place_of(entry) if isinstance(entry, Called) else entry.place
            last[place.run.run_id] = index
        ends: dict[int, list[RunDraft]] = {}
        for run in self._runs:
            if run.run_id in self._closed:
                ends.setdefault(last.get(run.run_id, -1), []).append(run)
        return ends

    def _keys(self) -> dict[int, str]:
        """Identities of the calls; derived ones are numbered in the order of their requests."""
        names = DerivedKeys(self._conversation_id)
        keys: dict[int, str] = {}
        for called in self._calls:
            if called.execution is not None:
                reading = called.execution.reading
                keys[id(called)] = f"{reading.trace_id}:{reading.span_id}"
            else:
                keys[id(called)] = names.key(called, place_of(called).reading.service_name)
        return keys

    def _run(self, run: RunDraft, events: Sequence[Event]) -> Run:
        facts = self._facts[run.run_id]
        return Run(
            run_id=run.run_id,
            trace_id=run.trace_id,
            conversation_id=self._conversation_id,
            agent_name=facts.agent_name,
            agent_version=facts.agent_version,
            model=facts.model,
            service_name=facts.service_name,
            service_namespace=facts.service_namespace,
            environment=facts.environment,
            host=facts.host,
            principal=facts.principal,
            trigger=facts.trigger,
            dialects=tuple(sorted({reading.dialect for reading in run.readings})),
            start_time_unix_nano=run.start,
            end_time_unix_nano=run.end,
            last_received_unix_nano=max(reading.received_unix_nano for reading in run.readings),
            spans=len(run.readings),
            root_seen=run.root_seen,
            closed=self._closed.get(run.run_id),
            gaps=gaps_of(run, events, self._table, self._story, self._places),
            error_type=_error_of(run),
        )


class _Turns:
    """Counts user turns. A message belongs to the turn of the user message above it in its line,
    so that runs which overlap in time do not mix."""

    def __init__(self) -> None:
        self._count = 0
        self._of_run: dict[str, int] = {}

    def of_item(self, item: Item) -> int:
        if not isinstance(item, Occurrence):
            return 0
        return self._of(item)

    def of_call(self, called: Called) -> int:
        if called.slot is not None:
            return self._of(called.slot.node)
        return self._of_run.get(place_of(called).run.run_id, self._count)

    def _of(self, node: Occurrence) -> int:
        path: list[Occurrence] = []
        current: Occurrence | None = node
        while current is not None and current.turn < 0:
            path.append(current)
            current = current.parent
        above = current
        for step in reversed(path):
            step.turn = self._turn(step, above)
            above = step
        return node.turn

    def _turn(self, node: Occurrence, above: Occurrence | None) -> int:
        run_id = node.place.run.run_id
        if _is_user(node) and not node.repeated:
            if above is None or not _is_user(above):
                self._count += 1
            turn = self._count
        else:
            turn = above.turn if above is not None else self._of_run.get(run_id, self._count)
        self._of_run[run_id] = turn
        return turn


def _is_user(node: Occurrence) -> bool:
    return node.message is not None and node.message.role == "user" and not node.aside and node.place.tool is None


def final_messages(entries: Sequence[Item | Called]) -> set[int]:
    """Ids of the occurrences that end their run: the last thing its own agents said, asking for
    nothing, with no call after it. What sub-agents say inside a tool call is never the end."""
    last: dict[str, Item | Called] = {}
    for entry in entries:
        if isinstance(entry, Called):
            last[place_of(entry).run.run_id] = entry
        elif isinstance(entry, Occurrence) and _is_said(entry):
            last[entry.place.run.run_id] = entry
    return {
        id(entry)
        for entry in last.values()
        if isinstance(entry, Occurrence) and entry.message is not None and not entry.message.requests
    }


def _is_said(node: Occurrence) -> bool:
    said = node.message is not None and node.message.role == "assistant"
    return said and not node.aside and node.place.tool is None


def nested_calls(calls: Sequence[Called], places: Mapping[SpanKey, Place]) -> dict[int, int]:
    """{id of a call under which an agent ran: number of calls below it}."""
    owner = {
        (member.reading.trace_id, member.reading.span_id): called
        for called in calls
        for member in (called.execution.members if called.execution else ())
    }
    agents = [place for place in places.values() if place.reading.kind == "agent"]
    counts = {id(above): 0 for place in agents for above in _calls_above(place, owner, places)}
    for called in calls if counts else ():
        for above in _calls_above(place_of(called), owner, places):
            if above is not called and id(above) in counts:
                counts[id(above)] += 1
    return counts


def _calls_above(place: Place, owner: Mapping[SpanKey, Called], places: Mapping[SpanKey, Place]) -> list[Called]:
    found: list[Called] = []
    tool = place.tool
    while tool is not None:
        where = (tool.trace_id, tool.span_id)
        called = owner.get(where)
        if called is not None and (not found or found[-1] is not called):
            found.append(called)
        tool = places[where].tool
    return found


def _schemas(spans: Sequence[Reading]) -> dict[str, dict[str, Any]]:
    """Input schema by tool name, where all definitions of the name agree on the properties."""
    schemas: dict[str, dict[str, Any]] = {}
    clash: set[str] = set()
    for reading in spans:
        for definition in reading.definitions:
            schema = definition.input_schema
            if schema is None:
                continue
            known = schemas.setdefault(definition.name, schema)
            if known is not schema and known != schema and _properties(known) != _properties(schema):
                clash.add(definition.name)
    return {name: schema for name, schema in schemas.items() if name not in clash}


def _properties(schema: Mapping[str, Any]) -> list[str]:
    properties = schema.get("properties")
    return sorted(properties) if isinstance(properties, dict) else []


def _error_of(run: RunDraft) -> str | None:
    """The error that ended the run: its root's, or without a root its last model call's."""
    if run.root is not None:
        return run.root.error_type or ("error" if run.root.status_error else None)
    last = next((r for r in reversed(run.readings) if r.kind == "model"), None)
    if last is None:
        return None
    return last.error_type or ("error" if last.status_error else None)
