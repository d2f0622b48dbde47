"""Evidence, findings and incidents."""

from __future__ import annotations

import hashlib
from typing import Any, Literal

import msgspec

Severity = Literal["info", "low", "medium", "high", "critical"]
SEVERITIES: tuple[Severity, ...] = ("info", "low", "medium", "high", "critical")
Family = Literal["validity", "effect", "progress", "source", "policy", "truth", "catalogue", "attack"]
FAMILIES: tuple[Family, ...] = (
    "validity", "effect", "progress", "source", "policy", "truth", "catalogue", "attack",
)  # fmt: skip
Status = Literal["open", "retracted"]


def level(severity: Severity) -> int:
    """0 for info to 4 for critical."""
    return SEVERITIES.index(severity)


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What a check saw. It never knows which rule runs it.

    `anchor` is the key of the call (ToolCall.key), the span id of the message, the id of the run, or
    "tool:<name>" of the definition it points at; `key` tells several pieces of evidence at one
    anchor apart (an argument name, a cycle). `severity` is the check's own weighing; the rule and
    the effect of the call bound it. `details` is JSON data for people and for golden tasks:
    what was seen, where each value came from, the other call of a pair under "other". `tool_name` is the tool
    it is about when the anchor is no call: incidents are grouped by it.
    """

    summary: str
    anchor: str
    key: str = ""
    span_ids: tuple[str, ...] = ()
    severity: Severity | None = None
    details: dict[str, Any] = {}
    tool_name: str | None = None


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Evidence + rule. `span_ids`: the anchor first. Times in nanoseconds since the epoch."""

    finding_id: str
    rule_id: str
    rule_version: str
    family: Family
    severity: Severity
    status: Status
    trace_id: str
    conversation_id: str
    run_id: str
    span_ids: tuple[str, ...]
    tool_call_id: str | None
    tool_name: str | None
    agent_name: str | None
    environment: str
    service_name: str
    summary: str
    evidence: dict[str, Any]
    event_time_unix_nano: int


def finding_id(rule_id: str, anchor: str, key: str) -> str:
    """16 hex characters of sha256 over rule, anchor and key: never the conversation, so replay and
    late joins upsert the same finding."""
    return hashlib.sha256("\x1f".join((rule_id, anchor, key)).encode()).hexdigest()[:16]


IncidentState = Literal["open", "acknowledged", "resolved", "retracted"]
IncidentLabel = Literal["unreviewed", "true_positive", "false_positive"]


class Incident(msgspec.Struct, frozen=True, kw_only=True):
    """Findings of one problem grouped for a person. Key: family, environment, agent, tool."""

    incident_id: str
    family: Family
    environment: str
    agent_name: str
    tool_name: str
    severity: Severity
    state: IncidentState
    label: IncidentLabel
    title: str
    opened_unix_nano: int
    last_seen_unix_nano: int
    findings: int
    rule_ids: tuple[str, ...] = ()
