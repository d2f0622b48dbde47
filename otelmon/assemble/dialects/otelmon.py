"""otelmon's own shim: GenAI conventions plus `otelmon.*`.

Spans of other dialects may carry `otelmon.*` too; what they say is laid over any reading.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from otelmon.assemble.dialects import genai
from otelmon.assemble.dialects._definitions import annotations_of
from otelmon.assemble.dialects._fields import first_text, whole_number
from otelmon.assemble.dialects._shows import Shows
from otelmon.assemble.history import History
from otelmon.assemble.outcome import SHIM_OUTCOMES
from otelmon.vocabulary.reading import Approval, Reading, ToolFields
from otelmon.vocabulary.span import Attributes, Span

NAME = "otelmon"
PRIORITY = 10
SHOWS = Shows(
    instrumentation="otelmon's own shim (otelmon.instrument)",
    conversation="setting",
    setting='otelmon.instrument.configure(capture="full"), and the conversation id given to the run',
)

_PREFIX = "otelmon."
_DECISIONS = {
    "approved": "approved",
    "accept": "approved",
    "rejected": "rejected",
    "reject": "rejected",
    "auto": "auto",
}
_FIDELITIES = ("exact", "decoded", "repaired", "redacted", "hashed", "truncated", "absent")
_CAPTURE = {"none": "off", "hash": "hashed", "redacted": "redacted"}
_EFFECTS = ("read", "write", "destructive", "external_send", "unknown")


def matches(span: Span) -> bool:
    return "otelmon.shim.version" in span.attributes


def read(span: Span, history: History) -> Reading:
    return genai.read_as(span, history, NAME)


def overlay(span: Span, reading: Reading) -> Reading:
    """The reading with what the span's `otelmon.*` attributes say."""
    attributes = span.attributes
    if not any(key.startswith(_PREFIX) for key in attributes):
        return reading
    principal = first_text(attributes, "otelmon.caller.on_behalf_of", "otelmon.caller.principal")
    capture = attributes.get("otelmon.content.capture")
    return msgspec.structs.replace(
        reading,
        principal=reading.principal or principal,
        content=_CAPTURE.get(capture, reading.content) if isinstance(capture, str) else reading.content,
        trigger=reading.trigger or first_text(attributes, "otelmon.run.trigger"),
        tool=None if reading.tool is None else _tool(attributes, reading.tool),
    )


def _tool(attributes: Attributes, tool: ToolFields) -> ToolFields:
    outcome = _word(attributes, "otelmon.call.outcome", SHIM_OUTCOMES)
    approval = _approval(attributes)
    marks = set(tool.signals)
    if outcome == "denied":  # a rejected call may have been carried out: outcome.py looks at what came of it
        marks.add("denied")
    fidelity: Any = attributes.get("otelmon.call.args_fidelity")
    effect = attributes.get("otelmon.tool.effect")
    stated = fidelity in _FIDELITIES and fidelity != "exact"
    return msgspec.structs.replace(
        tool,
        arguments_fidelity=fidelity if stated else tool.arguments_fidelity,
        arguments_hash=first_text(attributes, "otelmon.call.args_hash") or tool.arguments_hash,
        signals=tuple(sorted(marks)),
        outcome_hint=outcome or tool.outcome_hint,
        outcome_source=first_text(attributes, "otelmon.call.outcome_source") or tool.outcome_source,
        server=first_text(attributes, "otelmon.mcp.server") or tool.server,
        idempotency_key=first_text(attributes, "otelmon.call.idempotency_key") or tool.idempotency_key,
        attempt=whole_number(attributes.get("otelmon.call.attempt")),
        retry_of=first_text(attributes, "otelmon.call.retry_of"),
        approval=approval,
        effect_hint=effect if effect in _EFFECTS else tool.effect_hint,
        annotations=annotations_of(attributes.get("otelmon.tool.annotations")) or tool.annotations,
    )


def _approval(attributes: Attributes) -> Approval | None:
    decision = _word(attributes, "otelmon.approval.decision", _DECISIONS)
    if decision is None:
        return None
    return Approval(
        decision=decision,
        source=first_text(attributes, "otelmon.approval.source") or "",
        by=first_text(attributes, "otelmon.approval.by") or "",
        id=first_text(attributes, "otelmon.approval.id") or "",
        arguments_hash=first_text(attributes, "otelmon.approval.args_hash") or "",
        expires_unix_nano=whole_number(attributes.get("otelmon.approval.expires_unix_nano")),
    )


def _word(attributes: Attributes, key: str, words: Mapping[str, str]) -> str | None:
    value = attributes.get(key)
    return words.get(value) if isinstance(value, str) else None
