"""Microsoft Agent Framework: the GenAI conventions, the arguments in its messages as JSON text."""

from __future__ import annotations

from otelmon.assemble.dialects import genai
from otelmon.assemble.dialects._shows import Shows
from otelmon.assemble.history import History
from otelmon.vocabulary.reading import Reading
from otelmon.vocabulary.span import Span

NAME = "agent_framework"
PRIORITY = 89
SHOWS = Shows(
    instrumentation="Microsoft Agent Framework",
    arguments="setting",
    results="setting",
    user_text="setting",
    final_message="setting",
    conversation="partly",
    setting="ENABLE_SENSITIVE_DATA=true",
    note="The conversation id is there when the service keeps the thread.",
)


def matches(span: Span) -> bool:
    return span.scope.name == "agent_framework" and genai.OPERATION in span.attributes


def read(span: Span, history: History) -> Reading:
    return genai.read_as(span, history, NAME)
