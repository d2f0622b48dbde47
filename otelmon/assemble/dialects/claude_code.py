"""Claude Code's own spans: `claude_code.tool` is the call; the spans below it say who allowed it and how
it ended, and are no calls themselves."""

from __future__ import annotations

from typing import Any

import msgspec

from otelmon.assemble.dialects import _tools
from otelmon.assemble.dialects._fields import call_id_of, first_text, reading, tool_content
from otelmon.assemble.dialects._messages import make
from otelmon.assemble.dialects._shows import Shows
from otelmon.assemble.history import History
from otelmon.assemble.values import Decoded, hidden
from otelmon.vocabulary.reading import Approval, Reading
from otelmon.vocabulary.span import Span

NAME = "claude_code"
PRIORITY = 82
SHOWS = Shows(
    instrumentation="Claude Code (CLAUDE_CODE_ENABLE_TELEMETRY=1 CLAUDE_CODE_ENHANCED_TELEMETRY_BETA=1)",
    arguments="setting",
    results="setting",
    definitions="no",
    user_text="setting",
    final_message="no",
    setting="OTEL_LOG_USER_PROMPTS=1 OTEL_LOG_TOOL_DETAILS=1 OTEL_LOG_TOOL_CONTENT=1, and its logs sent to /v1/logs",
    note="Arguments and results are cut at 60 KB on spans and 512 characters in logs. Approvals are shown.",
)

_PREFIX = "claude_code."
_TYPE = "span.type"
_OUTPUT = "tool.output"
_AUTOMATIC = ("config", "policy", "auto")


def matches(span: Span) -> bool:
    return span.name.startswith(_PREFIX) and (_TYPE in span.attributes or "claude_code" in span.scope.name)


def read(span: Span, history: History) -> Reading:
    """A span by its type."""
    kind = first_text(span.attributes, _TYPE) or span.name.removeprefix(_PREFIX)
    if kind == "interaction":
        return _read_interaction(span, history)
    if kind == "llm_request":
        return _base(span, "model", content="off", model=first_text(span.attributes, "model"))
    if kind == "tool":
        return _read_tool(span)
    if kind == "tool.execution":
        return _read_execution(span)
    if kind == "tool.blocked_on_user":
        return _read_decision(span)
    return _base(span, "other")


def _base(span: Span, kind: Any, **fields: Any) -> Reading:
    return reading(span, NAME, kind, **fields)


def _read_interaction(span: Span, history: History) -> Reading:
    """A turn of the user: the run. Its prompt may be hidden."""
    prompt = first_text(span.attributes, "user_prompt")
    shown = prompt is not None and hidden(prompt) is None
    entered = history.send([make("user", prompt)] if shown and prompt else [])
    content = "full" if shown else "redacted" if prompt else "off"
    found = _base(span, "agent", agent_name=NAME, content=content)
    return msgspec.structs.replace(found, input=entered.digests, messages=entered.messages)


def _read_tool(span: Span) -> Reading:
    attributes = span.attributes
    raw_name = first_text(attributes, "tool_name", "gen_ai.tool.name")
    if raw_name is None:
        return _base(span, "other")
    told = next((e.attributes for e in span.events if e.name == _OUTPUT), {})
    given = told.get("input", attributes.get("tool_input"))
    returned = told.get("output")
    tool = _tools.fields(
        span,
        raw_name,
        call_id=_call_id(span),
        called=_tools.arguments(span, given),
        returned=_tools.result(span, returned if returned != "" else None),
    )
    return _base(span, "tool", tool=tool, content=tool_content(tool))


def _call_id(span: Span) -> str | None:
    return call_id_of(first_text(span.attributes, "gen_ai.tool.call.id", "tool_use_id"))


def _read_execution(span: Span) -> Reading:
    """How the call above ended: only this span has the error."""
    failure = first_text(span.attributes, "error")
    if failure and not first_text(span.attributes, "error.type"):
        span = msgspec.structs.replace(span, attributes={**span.attributes, "error.type": failure})
    failed = span.attributes.get("success") in (False, "false")
    return _part(span, ("is_error",) if failed else ())


def _read_decision(span: Span) -> Reading:
    """Whether the call above was allowed, and by whom."""
    decision = first_text(span.attributes, "decision")
    source = first_text(span.attributes, "source") or ""
    if decision is None:
        return _base(span, "other")
    refused = decision.startswith("reject")
    word = "rejected" if refused else "auto" if source in _AUTOMATIC else "approved"
    by = "user" if source.startswith("user") else ""
    return _part(span, ("denied",) if refused else (), Approval(word, source=source, by=by))


def _part(span: Span, extra: tuple[str, ...], approval: Approval | None = None) -> Reading:
    """What a span says of the call above it."""
    fields = _tools.fields(span, "", call_id=_call_id(span), called=Decoded(), returned=_tools.Result(), extra=extra)
    return _base(span, "other", tool=msgspec.structs.replace(fields, approval=approval))
