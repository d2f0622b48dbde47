"""A message writes a tool call down instead of making it."""

from __future__ import annotations

from collections.abc import Iterator

from otelmon.checks.lib.text_calls import TextCall, text_calls
from otelmon.checks.registry import NoParams, check
from otelmon.checks.view import View
from otelmon.vocabulary.event import AssistantMessage, Run, ToolCall, UserMessage
from otelmon.vocabulary.finding import Evidence


@check(on="run")
def call_as_text(run: Run, view: View, params: NoParams) -> Iterator[Evidence]:
    """The agent says a call of one of its tools as text, and the call is not made before the user speaks.

    Why it matters: nothing happens, the user reads raw JSON, and a later message may speak of its success.
    """
    del params
    tools = view.tools_in_force(run.run_id).tools
    for message in view.run_events(run.run_id):
        if not isinstance(message, AssistantMessage) or message.requests or not message.text:
            continue
        written = text_calls(message.text, tools)
        made = _made_after(message, view) if written else set()
        lost = [item for item in written if item.tool not in made]
        if lost:
            yield _evidence(message, lost)


def _made_after(message: AssistantMessage, view: View) -> set[str]:
    """The tools that were called after the message and before the user's next: a runtime may read calls
    from text."""
    made: set[str] = set()
    for event in view.after(message):
        if isinstance(event, UserMessage):
            break
        if isinstance(event, ToolCall):
            made |= {event.tool_name, event.raw_name}
    return made


def _evidence(message: AssistantMessage, lost: list[TextCall]) -> Evidence:
    first = lost[0]
    names = ", ".join(dict.fromkeys(item.tool for item in lost))
    return Evidence(
        summary=f"the message writes a call of {names} as text ({first.form}), and it was not made",
        anchor=message.span_id,
        key="text_call",
        span_ids=(message.span_id,),
        details={
            "calls": [{"tool": item.tool, "form": item.form} for item in lost],
            "text": message.text[first.at : first.at + 300],
        },
    )
