"""Why the context of a run is not complete: reasons that keep absence rules from judging it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from otelmon.assemble.gather import MessageTable
from otelmon.assemble.order import Story
from otelmon.assemble.runs import Place, RunDraft, SpanKey
from otelmon.vocabulary.event import AssistantMessage, Event, NotEvaluable, ToolCall, UserMessage
from otelmon.vocabulary.reading import Reading

_CONTENT = ("tool", "model", "agent")


def gaps_of(
    run: RunDraft, events: Sequence[Event], table: MessageTable, story: Story, places: Mapping[SpanKey, Place]
) -> tuple[NotEvaluable, ...]:
    """The gaps of one run, in a fixed order. `events`: those of the run."""
    calls = [event for event in events if isinstance(event, ToolCall)]
    found: list[NotEvaluable] = []
    models = [r for r in run.readings if r.kind == "model" and places[(r.trace_id, r.span_id)].tool is None]
    if _content_off(models, events, calls):
        found.append("content_off")
    if any(r.content == "hashed" for r in run.readings) or _fidelity("hashed", calls):
        found.append("hashed")
    seen = _seen(run.readings, table)
    if _truncated(run, calls, table, seen):
        found.append("truncated")
    if _prior_turns_unseen(run, table, seen, run.run_id in story.unasked, story):
        found.append("prior_turns_unseen")
    if not run.root_seen or not any(isinstance(e, AssistantMessage) and e.final for e in events):
        found.append("incomplete_run")
    return tuple(found)


def _content_off(models: Iterable[Reading], events: Sequence[Event], calls: Iterable[ToolCall]) -> bool:
    """Something of the run could not be seen at all. Arguments and results that messages filled in
    are not missing. `models`: those of the run's own agents; what a sub-agent says inside a tool call
    is not part of the conversation."""
    spoken = any(isinstance(e, AssistantMessage | UserMessage) for e in events)
    if any(r.content == "off" for r in models) or not spoken:
        return True
    return any(call.arguments_fidelity == "absent" and call.result_text is None for call in calls)


def _fidelity(word: str, calls: Iterable[ToolCall]) -> bool:
    return any(word in (call.arguments_fidelity, call.result_fidelity) for call in calls)


def _truncated(run: RunDraft, calls: Iterable[ToolCall], table: MessageTable, seen: Iterable[int]) -> bool:
    cut = any(r.content == "truncated" or r.dropped > 0 for r in run.readings if r.kind in _CONTENT)
    if cut or _fidelity("truncated", calls):
        return True
    return any(message is not None and message.truncated for message in map(table.messages.__getitem__, seen))


def _prior_turns_unseen(run: RunDraft, table: MessageTable, seen: set[int], unanswered: bool, story: Story) -> bool:
    """The history does not reach the first turn: messages are missing, a result stands without its
    request, nobody is known to have asked for anything, or neither the run nor the conversation
    begins with a whole history."""
    if not story.users or unanswered or not table.missing.isdisjoint(seen):
        return True
    saw = [r for r in run.readings if r.kind == "model" and r.input]
    return bool(saw) and not story.from_start and not any(r.history_complete for r in saw)


def _seen(readings: Iterable[Reading], table: MessageTable) -> set[int]:
    seen: set[int] = set()
    for reading in readings:
        if reading.input or reading.output:
            seen.update(table.numbers(reading.input))
            seen.update(table.numbers(reading.output))
    return seen
