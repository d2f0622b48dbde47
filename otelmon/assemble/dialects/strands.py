"""Strands Agents: the GenAI conventions, with the content in span events unless the newest form is on."""

from __future__ import annotations

from otelmon.assemble.dialects import genai
from otelmon.assemble.dialects._shows import Shows
from otelmon.assemble.history import History
from otelmon.vocabulary.reading import Reading
from otelmon.vocabulary.span import Span

NAME = "strands"
PRIORITY = 86
SHOWS = Shows(
    instrumentation="Strands Agents",
    definitions="partly",
    conversation="setting",
    setting="Agent(trace_attributes={'session.id': ..., 'user.id': ...}); "
    "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental,gen_ai_tool_definitions for the tools that were "
    "not called",
    note="The schema of a tool is on its own spans.",
)

_SCOPE = "strands.telemetry.tracer"
_SYSTEM = "strands-agents"


def matches(span: Span) -> bool:
    attributes = span.attributes
    ours = span.scope.name == _SCOPE or _SYSTEM in (attributes.get("gen_ai.system"), attributes.get("gen_ai.provider.name"))  # fmt: skip
    return ours and genai.OPERATION in attributes


def read(span: Span, history: History) -> Reading:
    return genai.read_as(span, history, NAME)
