"""Semantic Kernel: the GenAI conventions, tools named `plugin-function`; what the model saw is only logged."""

from __future__ import annotations

from otelmon.assemble.dialects import genai
from otelmon.assemble.dialects._shows import Shows
from otelmon.assemble.history import History
from otelmon.vocabulary.reading import Reading
from otelmon.vocabulary.span import Span

NAME = "semantic_kernel"
PRIORITY = 87
SHOWS = Shows(
    instrumentation="Semantic Kernel",
    arguments="setting",
    results="setting",
    user_text="setting",
    final_message="setting",
    conversation="no",
    setting="SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE=true, and its logs sent to /v1/logs",
    note="The user's text and the model's messages are log records, the final message is on the agent span too.",
)


def matches(span: Span) -> bool:
    return span.scope.name.startswith("semantic_kernel.") and genai.OPERATION in span.attributes


def read(span: Span, history: History) -> Reading:
    return genai.read_as(span, history, NAME)
