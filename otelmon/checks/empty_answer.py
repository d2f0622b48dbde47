"""The user wrote, and the agent neither answered nor did anything."""

from __future__ import annotations

from collections.abc import Iterator

from otelmon.checks.registry import NoParams, check
from otelmon.checks.view import View
from otelmon.vocabulary.event import AssistantMessage, Run, ToolCall, UserMessage
from otelmon.vocabulary.finding import Evidence


@check(on="run")
def empty_answer(run: Run, view: View, params: NoParams) -> Iterator[Evidence]:
    """The model came back with an empty message, without a call, to what the user said.

    Why it matters: the conversation is dead, and nothing in the spans says error.
    """
    del params
    asked: UserMessage | None = None
    empty: AssistantMessage | None = None
    for event in view.run_events(run.run_id):
        if isinstance(event, UserMessage):
            asked, empty = event, None
        elif isinstance(event, ToolCall):
            asked = None
        elif isinstance(event, AssistantMessage):
            said = event.text.strip() or event.requests
            asked, empty = (None, None) if said else (asked, event)
    if asked is not None and empty is not None and asked.text.strip():
        yield Evidence(
            summary="the user wrote, and got an empty message without any call",
            anchor=empty.span_id,
            key="empty",
            span_ids=(empty.span_id, asked.span_id),
            details={"asked": asked.text[:300]},
        )
