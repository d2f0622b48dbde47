"""What every dialect shares: attribute values read with care, and the fields any span has."""

from __future__ import annotations

import re
from typing import Any

from otelmon.assemble.dialects import _resource
from otelmon.assemble.dialects._errors import error_type
from otelmon.assemble.values import TooDeepError, is_round, looks_cut, parse_json, plain, shallow
from otelmon.vocabulary.reading import HttpFields, Kind, Reading, ToolFields
from otelmon.vocabulary.span import Attributes, Span

CONVERSATION = ("gen_ai.conversation.id", "session.id")
USER = ("user.id", "enduser.id")
AGENT_NAME = ("gen_ai.agent.name", "agent.name")
AGENT_VERSION = ("gen_ai.agent.version", "agent.version")
MODEL = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
RESPONSE_ID = ("gen_ai.response.id", "ai.response.id")
SMALLEST_LIMIT = 64
NO_ID = "<not specified>"

_WHOLE = re.compile(r"-?[0-9]{1,18}")
_MCP_NAME = re.compile(r"^mcp__(.+?)__(.+)$", re.DOTALL)
CLIENT = 3  # OTLP span kinds: 0 unspecified, 1 internal, 2 server, 3 client


def text_of(value: Any) -> str | None:
    """Non-empty text, or a number as text; None for anything else."""
    if isinstance(value, str):
        return value or None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return None


def first_text(attributes: Attributes, *keys: str) -> str | None:
    """The first of the attributes that holds non-empty text."""
    for key in keys:
        value = attributes.get(key)
        if value is not None:
            text = text_of(value)
            if text is not None:
                return text
    return None


def whole_number(value: Any) -> int | None:
    """An integer, also when sent as text or as a whole float."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return int(value) if isinstance(value, str) and _WHOLE.fullmatch(value) else None


def structured(value: Any) -> Any:
    """A structured value as it is, JSON text decoded; None when it is neither."""
    if isinstance(value, str):
        try:
            return parse_json(value)
        except TooDeepError:
            return shallow(value)
        except ValueError:
            return None
    return plain(value) if isinstance(value, dict | list | tuple) else None


def call_id_of(value: Any) -> str | None:
    """A tool call id; placeholders count as none."""
    text = text_of(value)
    return None if text == NO_ID else text


def canonical_name(raw: str) -> tuple[str, str | None]:
    """(name, server) of a tool name as sent: `mcp__server__tool` taken apart."""
    if raw.startswith("mcp__"):
        match = _MCP_NAME.match(raw)
        if match:
            return match[2], match[1]
    return raw, None


def was_cut(span: Span, text: str) -> bool:
    """Whether a telemetry limit cut this attribute text of the span."""
    sizes = [len(v) for v in span.attributes.values() if isinstance(v, str)]
    return looks_cut(text, sizes, span.dropped_attributes_count)


def value_limit(span: Span) -> int | None:
    """The length at which a telemetry limit cut values of the span, when it shows: two texts (no ids
    or hashes) end at one round length that no other text exceeds."""
    texts = [v for v in span.attributes.values() if isinstance(v, str)]
    longest = max(map(len, texts), default=0)
    if longest < SMALLEST_LIMIT or not is_round(longest):
        return None
    cut = [text for text in texts if len(text) == longest and not text.isalnum()]
    return longest if len(cut) > 1 else None


def content_of(seen: bool, span: Span, truncated: bool) -> str:
    """Reading.content: what the span could show of its content."""
    if truncated or (not seen and span.dropped_attributes_count > 0):
        return "truncated"
    return "full" if seen else "off"


def tool_content(fields: ToolFields) -> str:
    """Reading.content of a tool span, from the fidelity of its parts."""
    marks = (fields.arguments_fidelity, fields.result_fidelity)
    for word in ("hashed", "redacted", "truncated"):
        if word in marks:
            return word
    return "off" if fields.arguments_fidelity == "absent" else "full"


def reading(
    span: Span,
    dialect: str,
    kind: Kind,
    *,
    conversation: str | None = None,
    principal: str | None = None,
    agent_name: str | None = None,
    model: str | None = None,
    content: str = "full",
    tool: ToolFields | None = None,
    http: HttpFields | None = None,
) -> Reading:
    """The reading with the fields any span has; dialects give what only they know."""
    attributes = span.attributes
    where = _resource.read(span.resource)
    return Reading(
        trace_id=span.trace_id,
        span_id=span.span_id,
        parent_span_id=span.parent_span_id,
        digest=span.digest,
        kind=kind,
        name=span.name,
        dialect=dialect,
        start_time_unix_nano=span.start_time_unix_nano,
        end_time_unix_nano=span.end_time_unix_nano,
        received_unix_nano=span.received_unix_nano,
        status_error=span.status_code == 2,
        error_type=error_type(span) if tool is None else tool.error_type,
        content=content,
        conversation_id=conversation or first_text(attributes, *CONVERSATION),
        agent_name=agent_name or first_text(attributes, *AGENT_NAME),
        agent_version=first_text(attributes, *AGENT_VERSION) or where.version,
        model=model or first_text(attributes, *MODEL),
        principal=principal or first_text(attributes, *USER),
        service_name=where.name,
        service_namespace=where.namespace,
        environment=where.environment,
        host=where.host,
        trigger=_resource.trigger_of(attributes) or where.trigger,
        tool=tool,
        http=http,
        response_id=first_text(attributes, *RESPONSE_ID),
        scope_name=span.scope.name,
        dropped=span.dropped_attributes_count + span.dropped_events_count,
    )
