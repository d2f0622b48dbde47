"""Logfire's pending copies: a span announced before it ends, under an id of its own.

The span itself follows, in whatever dialect; the copy must not be a second call.
"""

from __future__ import annotations

from otelmon.assemble.dialects._fields import reading
from otelmon.assemble.dialects._shows import Shows
from otelmon.assemble.history import History
from otelmon.vocabulary.reading import Reading
from otelmon.vocabulary.span import Span

NAME = "logfire"
PRIORITY = 5
SHOWS = Shows(
    instrumentation="Logfire's pending copies",
    arguments="no",
    results="no",
    definitions="no",
    user_text="no",
    final_message="no",
    conversation="no",
    errors="no",
    timeouts="no",
    note="Announcements of spans that follow: never counted.",
)


def matches(span: Span) -> bool:
    return span.attributes.get("logfire.span_type") == "pending_span"


def read(span: Span, history: History) -> Reading:  # noqa: ARG001 - every dialect has this form; a copy adds no messages
    return reading(span, NAME, "other")
