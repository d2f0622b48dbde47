"""What the read functions of the store answer with."""

from __future__ import annotations

from typing import Any

import msgspec

from otelmon.vocabulary.catalogue import Effect, Repeat
from otelmon.vocabulary.event import Run, ToolCall
from otelmon.vocabulary.finding import Family, Finding, Incident, IncidentLabel, IncidentState, Severity
from otelmon.vocabulary.reading import RequestedCall


class IncidentFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which incidents: any of `states` (empty: all), `severity` or graver, and equal fields. `since`
    is the earliest last-seen time in nanoseconds."""

    states: tuple[IncidentState, ...] = ()
    severity: Severity = "info"
    family: Family | None = None
    agent: str | None = None
    tool: str | None = None
    environment: str | None = None
    label: IncidentLabel | None = None
    since: int | None = None


class IncidentPage(msgspec.Struct, frozen=True):
    """A page of incidents, active and newest first; `total` counts all that match."""

    incidents: tuple[Incident, ...]
    total: int


class ArgumentOrigin(msgspec.Struct, frozen=True):
    """Where one argument of a call came from (fields as in ArgumentLineage). `from_tool` is the tool whose call
    had the value first, None when no call had."""

    path: str
    role: str
    source: str
    anchor: str
    transformation: str
    sure: bool
    from_tool: str | None = None


class CallDetail(msgspec.Struct, frozen=True, tag_field="type", tag="call"):
    """A call in full, what it does as judged with the catalogue in force, and where its arguments came from (once
    its run is over)."""

    call: ToolCall
    effect: Effect
    repeat: Repeat
    lineage: tuple[ArgumentOrigin, ...] = ()


class FindingDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A finding, when it was first seen and retracted, its incident, and the calls it points at, oldest first."""

    finding: Finding
    first_seen_unix_nano: int
    retracted_unix_nano: int | None
    incident_id: str | None
    calls: tuple[CallDetail, ...] = ()


class HistoryEntry(msgspec.Struct, frozen=True):
    """One thing that happened to an incident. `who` is "otelmon" for what happened by itself."""

    action: str
    who: str
    note: str
    time_unix_nano: int


class IncidentDetail(msgspec.Struct, frozen=True, kw_only=True):
    """An incident with its findings (the open and oldest first, at most `limit`) and its history."""

    incident: Incident
    findings: tuple[FindingDetail, ...]
    history: tuple[HistoryEntry, ...]


class MessageDetail(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="message"):
    """A message in full. `role`: system, user, assistant or context."""

    position: int
    role: str
    turn: int | None
    final: bool | None
    agent_name: str | None
    span_id: str
    run_id: str
    start_time_unix_nano: int
    end_time_unix_nano: int
    text: str
    requests: tuple[RequestedCall, ...] = ()


class RunDetail(msgspec.Struct, frozen=True, kw_only=True):
    """One run: messages and calls in causal order, findings, and the rules that could not be evaluated."""

    run: Run
    timeline: tuple[MessageDetail | CallDetail, ...]
    findings: tuple[FindingDetail, ...]
    not_evaluable: dict[str, str]


class ConversationDetail(msgspec.Struct, frozen=True, kw_only=True):
    """All runs of a conversation, its messages and calls in causal order, and its findings."""

    conversation_id: str
    runs: tuple[Run, ...]
    timeline: tuple[MessageDetail | CallDetail, ...]
    findings: tuple[FindingDetail, ...]


class RunFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs: equal fields, `since` the earliest start in nanoseconds, `with_findings` only those with open ones."""

    agent: str | None = None
    service: str | None = None
    environment: str | None = None
    conversation: str | None = None
    trace: str | None = None
    since: int | None = None
    with_findings: bool = False


class RunSummary(msgspec.Struct, frozen=True):
    """A run with the number of its calls and open findings."""

    run: Run
    calls: int
    findings: int


class Found(msgspec.Struct, frozen=True):
    """Something whose id starts as asked. `kind`: incident, finding, run, conversation or trace."""

    kind: str
    id: str
    label: str


class ToolVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A distinct definition of a tool, where and when it was seen (event times)."""

    service_name: str
    environment: str
    server: str
    tool_name: str
    definition_hash: str
    schema_hash: str
    description: str
    input_schema: dict[str, Any] | None
    annotations: dict[str, Any] | None
    first_seen_unix_nano: int
    last_seen_unix_nano: int


class Payload(msgspec.Struct, frozen=True, kw_only=True):
    """A message of the spans topic as it came. `encoding`: otlp_proto or otlp_json."""

    topic: str
    partition: int
    offset: int
    received_unix_nano: int
    encoding: str
    value: bytes


class FindingCount(msgspec.Struct, frozen=True):
    """Findings by rule, severity and status."""

    rule_id: str
    family: str
    severity: str
    status: str
    amount: int


class IncidentCount(msgspec.Struct, frozen=True):
    """Incidents by family, severity, state and label."""

    family: str
    severity: str
    state: str
    label: str
    amount: int


class CallCount(msgspec.Struct, frozen=True):
    """Calls by tool, agent ("" unknown), effect and outcome."""

    tool_name: str
    agent_name: str
    effect: str
    outcome: str
    amount: int


class AgentRuns(msgspec.Struct, frozen=True):
    """Runs of an agent ("" unknown), those of them that are over, and the dialects they were written in."""

    agent_name: str
    runs: int
    closed: int
    dialects: tuple[str, ...]


class SuppressedCount(msgspec.Struct, frozen=True):
    """Findings that are accepted, by rule and agent ("" unknown)."""

    rule_id: str
    agent_name: str
    amount: int


class NotEvaluableCount(msgspec.Struct, frozen=True):
    """Runs in which a rule could not be evaluated, by agent ("" unknown) and reason."""

    rule_id: str
    agent_name: str
    reason: str
    amount: int
