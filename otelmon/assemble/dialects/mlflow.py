"""MLflow tracing: `mlflow.spanType` and the like. Every attribute is JSON, plain text included."""

from __future__ import annotations

from typing import Any

import msgspec

from otelmon.assemble.dialects import _payloads, _tools, genai
from otelmon.assemble.dialects._definitions import definitions
from otelmon.assemble.dialects._fields import content_of, first_text, reading, structured, text_of, tool_content
from otelmon.assemble.dialects._shows import Shows
from otelmon.assemble.dialects._wrappers import unwrap
from otelmon.assemble.history import History
from otelmon.vocabulary.reading import Reading
from otelmon.vocabulary.span import Attributes, Span

NAME = "mlflow"
PRIORITY = 40
SHOWS = Shows(
    instrumentation="MLflow tracing",
    definitions="partly",
    conversation="partly",
    setting="mlflow.openai.autolog() (or the autolog of the framework) for messages and definitions",
    note="Session and user stay in the trace's metadata and do not reach OTLP, unless LangChain's metadata names them; "
    "otherwise a trace is its own conversation. "
    "A trace is exported when its root ends.",
)

TYPE = "mlflow.spanType"
_INPUTS, _OUTPUTS, _FUNCTION = "mlflow.spanInputs", "mlflow.spanOutputs", "mlflow.spanFunctionName"
_MODELS = ("CHAT_MODEL", "LLM")
_RUNS = ("AGENT", "WORKFLOW")
_WRAPPERS = ("CHAIN", "UNKNOWN", "TASK")
_SESSION = ("session_id", "conversation_id", "thread_id")  # of the run's metadata, where a framework keeps one


def matches(span: Span) -> bool:
    return TYPE in span.attributes


def read(span: Span, history: History) -> Reading:
    """A span by its type. A chain is a wrapper, except at the root, where it is the run."""
    kind = _text(span.attributes, TYPE)
    if kind == "TOOL":
        return _read_tool(span)
    if kind in _MODELS:
        return _read_model(span, history)
    if kind in _RUNS or (kind in _WRAPPERS and not span.parent_span_id):
        return _read_agent(span, history)
    return _base(span, "other")


def _text(attributes: Attributes, key: str) -> str | None:
    """The text in an attribute, without its quotes."""
    value = attributes.get(key)
    return text_of(structured(value) if isinstance(value, str) and value[:1] == '"' else value)


def _base(span: Span, kind: Any, **fields: Any) -> Reading:
    attributes = span.attributes
    found = structured(attributes.get("metadata"))
    metadata = found if isinstance(found, dict) else {}
    return reading(
        span,
        NAME,
        kind,
        conversation=_text(attributes, "mlflow.trace.session") or first_text(metadata, *_SESSION),
        principal=_text(attributes, "mlflow.trace.user") or first_text(metadata, "user_id"),
        agent_name=span.name if kind == "agent" else None,
        model=_text(attributes, "mlflow.llm.model"),
        **fields,
    )


def _read_tool(span: Span) -> Reading:
    attributes = span.attributes
    called, call_id = unwrap(_tools.arguments(span, _inner(attributes.get(_INPUTS)), scalar=True))
    tool = _tools.fields(
        span,
        _text(attributes, _FUNCTION) or span.name,
        call_id=call_id,
        called=called,
        returned=_tools.result(span, attributes.get(_OUTPUTS)),
    )
    return _base(span, "tool", tool=tool, content=tool_content(tool))


def _inner(value: Any) -> Any:
    """Without the JSON around text: the layer is MLflow's, not the model's."""
    found = structured(value) if isinstance(value, str) and value[:1] == '"' else None
    return found if isinstance(found, str) else value


def _read_model(span: Span, history: History) -> Reading:
    attributes = span.attributes
    asked, said = structured(attributes.get(_INPUTS)), structured(attributes.get(_OUTPUTS))
    entered = genai.send_items(history, _payloads.entered(asked))
    left = genai.send_items(history, _payloads.left(said))
    seen = bool(entered.digests or left.digests)
    cut = (asked is None and _INPUTS in attributes) or (said is None and _OUTPUTS in attributes)
    return msgspec.structs.replace(
        _base(span, "model", content=content_of(seen, span, cut)),
        input=entered.digests,
        output=left.digests,
        messages=entered.messages + left.messages,
        definitions=definitions(attributes.get("mlflow.chat.tools") or _payloads.tools(asked)),
        history_complete=bool(entered.digests) and not cut,
    )


def _read_agent(span: Span, history: History) -> Reading:
    entered = history.send(_payloads.question(structured(span.attributes.get(_INPUTS))))
    left = history.send(_payloads.answer(_inner(span.attributes.get(_OUTPUTS))))
    return msgspec.structs.replace(
        _base(span, "agent"),
        input=entered.digests,
        output=left.digests,
        messages=entered.messages + left.messages,
    )
