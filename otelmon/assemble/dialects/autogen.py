"""AutoGen: the GenAI conventions without any content; agents are created in traces of their own."""

from __future__ import annotations

from otelmon.assemble.dialects import genai
from otelmon.assemble.dialects._shows import Shows
from otelmon.assemble.history import History
from otelmon.vocabulary.reading import Reading
from otelmon.vocabulary.span import Span

NAME = "autogen"
PRIORITY = 91
SHOWS = Shows(
    instrumentation="AutoGen (autogen-core)",
    arguments="no",
    results="no",
    definitions="no",
    user_text="no",
    final_message="no",
    conversation="no",
    note="Names, call ids, errors and timeouts only. An instrumentation of the model client beside it "
    "(opentelemetry-instrumentation-genai-openai with content on) shows the rest.",
)


def matches(span: Span) -> bool:
    ours = span.scope.name.startswith("autogen") or span.attributes.get("gen_ai.system") == "autogen"
    return ours and genai.OPERATION in span.attributes


def read(span: Span, history: History) -> Reading:
    return genai.read_as(span, history, NAME)
