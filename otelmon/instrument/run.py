"""A run: one handling of one request by an agent, as an `invoke_agent` span around its tool calls."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from opentelemetry import trace

from otelmon import __version__
from otelmon.instrument import attributes as key
from otelmon.instrument.capture import plain, text
from otelmon.instrument.setup import settings, tracer
from otelmon.instrument.tool import definitions


class Run:
    """The run under way. What the user said and what the agent answered are recorded on it."""

    def __init__(self, run_id: str, agent: str, conversation_id: str | None, user: str | None) -> None:
        self.run_id, self.agent, self.conversation_id, self.user = run_id, agent, conversation_id, user
        self._input: list[dict[str, Any]] = []
        self._answers: list[str] = []
        self._system: list[str] = []

    def system(self, content: str) -> None:
        """Instructions the agent works under."""
        self._system.append(content)

    def user_text(self, content: str) -> None:
        """Something the user said."""
        self._input.append({"role": "user", "parts": [{"type": "text", "content": content}]})

    def answer(self, content: str) -> None:
        """What the agent told the user; the last one is the run's final message."""
        self._answers.append(content)

    def finish(self, span: trace.Span) -> None:
        """Write the messages on the run's span."""
        if settings.capture.level != "full":
            span.set_attribute(key.CONTENT_CAPTURE, settings.capture.level)
            return
        if self._system:
            span.set_attribute(key.SYSTEM_INSTRUCTIONS, text([{"type": "text", "content": t} for t in self._system]))
        if self._input:
            span.set_attribute(key.INPUT_MESSAGES, text(plain(self._input)))
        if self._answers:
            parts = [{"type": "text", "content": answer} for answer in self._answers]
            span.set_attribute(key.OUTPUT_MESSAGES, text([{"role": "assistant", "parts": parts}]))


_current: ContextVar[Run | None] = ContextVar("otelmon_run", default=None)


def current_run() -> Run | None:
    """The run this code runs in, None outside of one."""
    return _current.get()


@contextmanager
def run(
    *,
    agent: str | None = None,
    conversation_id: str | None = None,
    user: str | None = None,
    user_text: str | None = None,
    system: str | None = None,
) -> Iterator[Run]:
    """Mark one handling of one request. Tool calls made inside belong to it.

    `conversation_id` joins the runs of one conversation: what was said, seen and done in earlier
    runs is then known. `user` is the id of the person served.
    """
    name = agent or settings.agent or "agent"
    current = Run(uuid.uuid4().hex, name, conversation_id, user)
    if system:
        current.system(system)
    if user_text:
        current.user_text(user_text)
    start = {
        key.SHIM_VERSION: __version__,
        key.OPERATION: "invoke_agent",
        key.AGENT_NAME: name,
        key.AGENT_VERSION: settings.agent_version,
        key.CONVERSATION: conversation_id,
        key.USER: user,
        key.RUN_ID: current.run_id,
        key.TOOL_DEFINITIONS: text(definitions()) if definitions() else None,
    }
    token = _current.set(current)
    with tracer().start_as_current_span(
        f"invoke_agent {name}", attributes={k: v for k, v in start.items() if v is not None}
    ) as span:
        try:
            yield current
        except BaseException as error:
            span.set_attribute(key.ERROR_TYPE, type(error).__name__)
            raise
        finally:
            current.finish(span)
            _current.reset(token)
