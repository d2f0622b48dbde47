"""What the user was left with: the messages that end a user turn."""

from __future__ import annotations

from otelmon.checks.view import View
from otelmon.vocabulary.event import AssistantMessage, ContextMessage, Run, ToolCall, UserMessage


def last_words(run: Run, view: View, every_turn: bool) -> list[AssistantMessage]:
    """The messages that end a user turn of the run; only the one that ends the run unless `every_turn`."""
    ends: list[AssistantMessage] = []
    last: AssistantMessage | None = None
    for event in view.run_events(run.run_id):
        if isinstance(event, AssistantMessage):
            last = event if event.text.strip() and not event.requests else None
        elif isinstance(event, ToolCall):
            last = None
        elif isinstance(event, (UserMessage, ContextMessage)) and last:
            ends.append(last)
            last = None
    if last:
        ends.append(last)
    return ends if every_turn else [message for message in ends if message.final]
