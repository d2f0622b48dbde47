"""What the model asked for in the message that led to a call, where a message shows it."""

from __future__ import annotations

from otelmon.checks.view import View
from otelmon.vocabulary.event import AssistantMessage, ToolCall
from otelmon.vocabulary.reading import RequestedCall


def request_of(call: ToolCall, view: View) -> RequestedCall | None:
    """The latest request before the call with its call id and tool; None when no message shows one."""
    if not call.tool_call_id:
        return None
    for event in reversed(view.before(call)):
        if isinstance(event, AssistantMessage):
            for request in event.requests:
                if request.tool_call_id == call.tool_call_id and request.tool_name in (call.tool_name, call.raw_name):
                    return request
    return None
