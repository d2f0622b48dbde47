"""Tool spans that kept nothing but their name: attributes lost to a limit, or an unknown instrumentation
that names its spans as others do. Read with low confidence, and counted under this name."""

from __future__ import annotations

import re

from otelmon.assemble.dialects import genai
from otelmon.assemble.dialects._shows import Shows
from otelmon.assemble.history import History
from otelmon.vocabulary.reading import Reading
from otelmon.vocabulary.span import Span

NAME = "name_only"
PRIORITY = 990
SHOWS = Shows(
    instrumentation="Tool spans known by their name only",
    arguments="partly",
    results="partly",
    definitions="no",
    user_text="no",
    final_message="no",
    conversation="partly",
    errors="partly",
    timeouts="partly",
    setting="OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=1024 OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT unset",
    note="The Python SDK drops the oldest attributes first, and those name the operation.",
)

_TOOL_NAME = re.compile(r"^execute_tool \S")


def matches(span: Span) -> bool:
    return _TOOL_NAME.match(span.name) is not None


def read(span: Span, history: History) -> Reading:  # noqa: ARG001 - every dialect has this form: no messages here
    return genai.read_tool(span, NAME)
