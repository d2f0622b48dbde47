"""Reads the messages of all spans into the story, step by step in clock order: what a span saw when
it starts, what it said when it ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from otelmon.assemble.gather import Line, MessageTable
from otelmon.assemble.occurrences import ContextText, DefinitionSeen, Occurrence, SystemText
from otelmon.assemble.order import Story
from otelmon.assemble.runs import Place, RunDraft, SpanKey
from otelmon.vocabulary.reading import Definition, Reading

Early = dict[str, list[DefinitionSeen]]
_SAID, _SAW = 0, 1


@dataclass(slots=True, eq=False)
class _View:
    """What is used of a span's messages, without system messages."""

    reading: Reading
    place: Place
    saw: Line
    said: Line
    system: tuple[int, ...]
    node: Occurrence | None = None
    entered: bool = False


@dataclass(slots=True, eq=False)
class _RunState:
    system: set[int] = field(default_factory=set)
    definitions: set[tuple[str, ...]] = field(default_factory=set)
    names: set[str] = field(default_factory=set)


def tell(story: Story, table: MessageTable, places: Mapping[SpanKey, Place], runs: Sequence[RunDraft]) -> Early:
    """Fill the story. Returns the definitions that only tool spans show, by run: they belong before
    anything else of it."""
    views = [view for run in runs for view in _views_of(run, table, places)]
    steps = [(v.reading.start_time_unix_nano, _SAW, v.reading.trace_id, v.reading.span_id, v) for v in views]
    steps += [(_end(v.reading), _SAID, v.reading.trace_id, v.reading.span_id, v) for v in views if v.said.exact]
    steps.sort(key=lambda step: step[:4])
    first = next((v.reading for *_, v in steps if v.reading.kind == "model" and v.reading.input), None)
    story.from_start = first is not None and first.history_complete
    teller = _Teller(story, table)
    for _, phase, _, _, view in steps:
        if phase == _SAW:
            teller.saw(view)
        else:
            teller.said(view)
    return _early(runs, teller.states)


def _end(reading: Reading) -> int:
    return max(reading.start_time_unix_nano, reading.end_time_unix_nano)


def _views_of(run: RunDraft, table: MessageTable, places: Mapping[SpanKey, Place]) -> Iterable[_View]:
    """Model spans, and agent spans for what no model span of the run shows: all input, all output,
    or the answer."""
    models = [reading for reading in run.readings if reading.kind == "model"]
    need_saw = not any(reading.input for reading in models)
    need_said = not any(reading.output for reading in models)
    need_answer = not need_said and _stopped_at_a_request(models, table)
    for reading in run.readings:
        place = places[(reading.trace_id, reading.span_id)]
        if reading.kind == "agent":
            saw, said = need_saw, need_said or (need_answer and reading is run.root)
        else:
            saw = said = True
        if (saw and reading.input) or (said and reading.output) or reading.definitions:
            yield _view(reading, place, table, saw, said)


def _stopped_at_a_request(models: Sequence[Reading], table: MessageTable) -> bool:
    """The last that the model spans show is a request: the answer is on the root, if anywhere."""
    last = max((reading for reading in models if reading.output), key=lambda r: (_end(r), r.span_id))
    message = table.messages[table.numbers(last.output)[-1]]
    return message is not None and bool(message.requests)


def _view(reading: Reading, place: Place, table: MessageTable, saw: bool, said: bool) -> _View:
    seen = table.numbers(reading.input) if saw else ()
    spoken = table.numbers(reading.output) if said else ()
    system: tuple[int, ...] = ()
    if not table.system.isdisjoint(seen):
        system = tuple(dict.fromkeys(key for key in seen if key in table.system))
        seen = tuple([key for key in seen if key not in table.system])
    return _View(reading, place, table.line(seen), table.line(spoken), system)


class _Teller:
    def __init__(self, story: Story, table: MessageTable) -> None:
        self._story = story
        self._table = table
        self.states: dict[str, _RunState] = {}

    def saw(self, view: _View) -> None:
        view.entered = True
        reading, place = view.reading, view.place
        time = reading.start_time_unix_nano
        state = self.states.setdefault(place.run.run_id, _RunState())
        if reading.kind != "tool":
            for definition in reading.definitions:
                if _new(definition, state):
                    self._story.items.append(DefinitionSeen(definition, place, time))
        for key in view.system:
            message = self._table.messages[key]
            if key not in state.system and message is not None:
                state.system.add(key)
                self._story.items.append(SystemText(message.text, place, time))
        if reading.kind in ("model", "agent"):
            view.node = self._story.enter(view.saw, place, time)
        else:
            self._beside(view, view.saw.exact + view.said.exact, time)

    def said(self, view: _View) -> None:
        if not view.entered:
            self.saw(view)
        if view.reading.kind in ("model", "agent"):
            echo = view.reading.kind == "agent"
            self._story.leave(view.node, view.said, view.saw, view.place, echo)

    def _beside(self, view: _View, keys: Iterable[int], time: int) -> None:
        for key in keys:
            message = self._table.messages[key]
            if message is not None and message.role != "system":
                self._story.items.append(ContextText(message.text, view.place, time))


def _new(definition: Definition, state: _RunState) -> bool:
    mark = _mark(definition)
    if mark in state.definitions:
        return False
    state.definitions.add(mark)
    state.names.add(definition.name)
    return True


def _mark(definition: Definition) -> tuple[str, ...]:
    if definition.definition_hash:
        return (definition.definition_hash, definition.name, definition.server or "")
    return (definition.name, definition.server or "", definition.schema_hash, definition.description)


def _early(runs: Sequence[RunDraft], states: Mapping[str, _RunState]) -> Early:
    early: Early = {}
    for run in runs:
        state = states.get(run.run_id)
        if state is None:
            continue
        known = set(state.names)
        for reading in run.readings:
            for definition in reading.definitions if reading.kind == "tool" else ():
                if definition.name not in known and _new(definition, state):
                    place = Place(reading, run, None, None)
                    early.setdefault(run.run_id, []).append(
                        DefinitionSeen(definition, place, reading.start_time_unix_nano)
                    )
    return early
