"""Typed reads of the store, for the commands, the pages, the exporter and the golden tasks.

Every function takes a cursor of `Database.read()`: several calls on one cursor see one state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from duckdb import DuckDBPyConnection

from otelmon.store.call_rows import CALL_COLUMNS, call_from_row
from otelmon.store.content import expand, load
from otelmon.store.database import Database
from otelmon.store.results import (
    AgentRuns,
    ArgumentOrigin,
    CallCount,
    CallDetail,
    ConversationDetail,
    FindingCount,
    FindingDetail,
    Found,
    HistoryEntry,
    IncidentCount,
    IncidentDetail,
    IncidentFilter,
    IncidentPage,
    MessageDetail,
    NotEvaluableCount,
    Payload,
    RunDetail,
    RunFilter,
    RunSummary,
    SuppressedCount,
    ToolVersion,
)
from otelmon.store.sqlfiles import sql
from otelmon.store.traces import RUN_COLUMNS
from otelmon.store.verdicts import FINDING_COLUMNS, finding_from
from otelmon.vocabulary.event import Run
from otelmon.vocabulary.finding import Incident
from otelmon.vocabulary.messages import ArgumentLineage

T = TypeVar("T")
MANY = 1000
PAYLOADS_AT_ONCE = 50
_INCIDENT_COLUMNS = Incident.__struct_fields__
_lineage = msgspec.json.Decoder(tuple[ArgumentLineage, ...])


def incidents(
    cursor: DuckDBPyConnection, wanted: IncidentFilter | None = None, limit: int = 50, offset: int = 0
) -> IncidentPage:
    """Incidents that match, the active ones first, then the last seen."""
    parameters = msgspec.structs.asdict(wanted or IncidentFilter())
    parameters["states"] = list(parameters["states"])
    rows = cursor.execute(sql("read.incidents"), {**parameters, "limit": limit, "offset": offset}).fetchall()
    total = rows[0][-1] if rows else 0
    return IncidentPage(tuple(_incident(row[:-1]) for row in rows), total)


def incident(cursor: DuckDBPyConnection, incident_id: str, limit: int = 100) -> IncidentDetail | None:
    """An incident with its findings, the calls they point at, and its history; None when there is none."""
    row = cursor.execute(sql("read.incident"), [incident_id]).fetchone()
    if row is None:
        return None
    history = cursor.execute(sql("read.history"), [incident_id]).fetchall()
    return IncidentDetail(
        incident=_incident(row),
        findings=findings(cursor, incident=incident_id, limit=limit),
        history=tuple(HistoryEntry(*entry) for entry in history),
    )


def findings(
    cursor: DuckDBPyConnection,
    *,
    incident: str | None = None,
    run: str | None = None,
    finding: str | None = None,
    conversation: str | None = None,
    rule: str | None = None,
    status: str | None = None,
    since: int | None = None,
    limit: int = MANY,
    offset: int = 0,
) -> tuple[FindingDetail, ...]:
    """Findings whose fields are equal to what is given, the open and oldest first, each with the
    calls it points at. `since` is the earliest event time in nanoseconds."""
    parameters = {
        "incident": incident, "run": run, "finding": finding, "conversation": conversation,
        "rule": rule, "status": status, "since": since, "limit": limit, "offset": offset,
    }  # fmt: skip
    details = [_finding(row) for row in cursor.execute(sql("read.findings"), parameters).fetchall()]
    spans = sorted({span_id for detail in details for span_id in detail.finding.span_ids})
    by_span: dict[str, list[CallDetail]] = {}
    for item in _calls(cursor, cursor.execute(sql("read.calls_of_spans"), [spans]).fetchall()) if spans else ():
        by_span.setdefault(item.call.span_id, []).append(item)
    return tuple(msgspec.structs.replace(detail, calls=_calls_of(detail, by_span)) for detail in details)


def run(cursor: DuckDBPyConnection, run_id: str) -> RunDetail | None:
    """One run in full; None when there is none."""
    row = cursor.execute(sql("read.run"), [run_id]).fetchone()
    if row is None:
        return None
    gaps = cursor.execute(sql("read.not_evaluable_of_run"), [run_id]).fetchall()
    return RunDetail(
        run=_run(row),
        timeline=_timeline(cursor, "run", run_id),
        findings=findings(cursor, run=run_id),
        not_evaluable=dict(gaps),
    )


def conversation(cursor: DuckDBPyConnection, conversation_id: str) -> ConversationDetail | None:
    """All runs of a conversation in full; None when there is none."""
    rows = cursor.execute(sql("read.runs_of_conversation"), [conversation_id]).fetchall()
    if not rows:
        return None
    return ConversationDetail(
        conversation_id=conversation_id,
        runs=tuple(_run(row) for row in rows),
        timeline=_timeline(cursor, "conversation", conversation_id),
        findings=findings(cursor, conversation=conversation_id),
    )


def runs(
    cursor: DuckDBPyConnection, wanted: RunFilter | None = None, limit: int = 50, offset: int = 0
) -> tuple[RunSummary, ...]:
    """Runs that match, newest first."""
    parameters = msgspec.structs.asdict(wanted or RunFilter())
    rows = cursor.execute(sql("read.runs"), {**parameters, "limit": limit, "offset": offset}).fetchall()
    return tuple(RunSummary(_run(row[:-2]), row[-2], row[-1]) for row in rows)


def find(cursor: DuckDBPyConnection, prefix: str, limit: int = 20) -> tuple[Found, ...]:
    """Incidents, findings, runs, conversations and traces whose id starts so, in this order."""
    rows = cursor.execute(sql("read.find"), {"prefix": prefix, "limit": limit}).fetchall()
    return tuple(Found(kind, id_, label) for _, kind, id_, label in rows)


def tool_versions(cursor: DuckDBPyConnection, tool: str | None = None) -> tuple[ToolVersion, ...]:
    """Distinct definitions seen in traffic, by place and tool, oldest first."""
    rows = cursor.execute(sql("read.versions"), {"tool": tool}).fetchall()
    return tuple(_version(row) for row in rows)


def finding_counts(cursor: DuckDBPyConnection) -> tuple[FindingCount, ...]:
    """Findings by rule, severity and status."""
    return _records(cursor, "read.finding_counts", FindingCount)


def incident_counts(cursor: DuckDBPyConnection) -> tuple[IncidentCount, ...]:
    """Incidents by family, severity, state and label."""
    return _records(cursor, "read.incident_counts", IncidentCount)


def call_counts(cursor: DuckDBPyConnection, since: int | None = None) -> tuple[CallCount, ...]:
    """Calls by tool, agent, effect and outcome; `since` is the earliest start in nanoseconds."""
    rows = cursor.execute(sql("read.call_counts"), {"since": since}).fetchall()
    return tuple(CallCount(*row) for row in rows)


def not_evaluable_counts(cursor: DuckDBPyConnection) -> tuple[NotEvaluableCount, ...]:
    """Runs in which a rule could not be evaluated, by agent and reason."""
    return _records(cursor, "read.not_evaluable_counts", NotEvaluableCount)


def suppressed_counts(cursor: DuckDBPyConnection) -> tuple[SuppressedCount, ...]:
    """Findings that the configuration accepted, by rule and agent."""
    return _records(cursor, "read.suppressed_counts", SuppressedCount)


def agents(cursor: DuckDBPyConnection) -> tuple[AgentRuns, ...]:
    """Agents by name, with their runs and dialects."""
    rows = cursor.execute(sql("read.agents")).fetchall()
    return tuple(AgentRuns(name, runs, closed, tuple(dialects)) for name, runs, closed, dialects in rows)


def sizes(cursor: DuckDBPyConnection) -> dict[str, int]:
    """Rows: spans, runs, tool_calls, findings, incidents."""
    row = cursor.execute(sql("read.sizes")).fetchone() or ()
    return dict(zip(("spans", "runs", "tool_calls", "findings", "incidents"), row, strict=True))


def payloads(
    database: Database, since: int | None = None, until: int | None = None, trace_id: str | None = None
) -> Iterator[Payload]:
    """Messages of the spans topic as they came, in the order they were received (nanoseconds, `until`
    excluded), or only those that hold spans of a trace. Few are in memory at once; what retention
    takes meanwhile is left out."""
    with database.read() as cursor:
        places = cursor.execute(
            sql("read.payload_places"), {"since": since, "until": until, "trace": trace_id}
        ).fetchall()
    for start in range(0, len(places), PAYLOADS_AT_ONCE):
        keys = ["/".join(map(str, place)) for place in places[start : start + PAYLOADS_AT_ONCE]]
        with database.read() as cursor:
            rows = cursor.execute(sql("read.payloads"), [keys]).fetchall()
        for topic, partition, offset, received, encoding, data in rows:
            yield Payload(
                topic=topic, partition=partition, offset=offset, received_unix_nano=received,
                encoding=encoding, value=expand(data),
            )  # fmt: skip


def _records(cursor: DuckDBPyConnection, name: str, type_: type[T]) -> tuple[T, ...]:
    return tuple(type_(*row) for row in cursor.execute(sql(name)).fetchall())


def _incident(row: Sequence[Any]) -> Incident:
    return msgspec.convert(dict(zip(_INCIDENT_COLUMNS, row, strict=True)), Incident)


def _run(row: Sequence[Any]) -> Run:
    return msgspec.convert(dict(zip(RUN_COLUMNS, row, strict=True)), Run)


def _finding(row: Sequence[Any]) -> FindingDetail:
    first_seen, retracted, incident_id = row[len(FINDING_COLUMNS) :]
    return FindingDetail(
        finding=finding_from(row[: len(FINDING_COLUMNS)]),
        first_seen_unix_nano=first_seen,
        retracted_unix_nano=retracted,
        incident_id=incident_id,
    )


def _calls_of(detail: FindingDetail, by_span: Mapping[str, Sequence[CallDetail]]) -> tuple[CallDetail, ...]:
    """The calls a finding points at. Span ids are unique within a trace only, so a call of another
    trace counts when the evidence names it, or when it is the same act (tool and arguments) as one that counts.
    Calls that only message history shows share the message's span: of these, the tool's own."""
    found = detail.finding
    named = {part.get("anchor") for part in found.evidence.values() if isinstance(part, dict)}
    pointed = [
        item
        for span_id in dict.fromkeys(found.span_ids)
        for item in by_span.get(span_id, ())
        if not (item.call.derived and item.call.tool_name != found.tool_name)
    ]
    acts = [_act(item) for item in pointed if item.call.trace_id == found.trace_id or item.call.key in named]
    counted = [item for item in pointed if _act(item) in acts]
    return tuple(sorted(counted, key=lambda item: (item.call.start_time_unix_nano, item.call.position, item.call.key)))


def _act(item: CallDetail) -> tuple[str, Any]:
    return item.call.tool_name, item.call.arguments


def _calls(cursor: DuckDBPyConnection, rows: Sequence[Sequence[Any]]) -> list[CallDetail]:
    width = len(CALL_COLUMNS)
    places = (CALL_COLUMNS.index("arguments_content"), CALL_COLUMNS.index("result_content"))
    texts = load(cursor, (row[place] for row in rows for place in places))
    origins = _origins(cursor, [row[-1] for row in rows])
    return [
        CallDetail(call_from_row(row[:width], texts), row[width], row[width + 1], lineage)
        for row, lineage in zip(rows, origins, strict=True)
    ]


def _origins(cursor: DuckDBPyConnection, stored: Sequence[str]) -> list[tuple[ArgumentOrigin, ...]]:
    """Where the arguments of calls came from, by what the store keeps of them, with the tools that are named."""
    found = [_lineage.decode(text) for text in stored]
    anchors = sorted({one.anchor for lineage in found for one in lineage if one.anchor})
    tools = dict(cursor.execute(sql("read.tools_of_calls"), [anchors]).fetchall()) if anchors else {}
    return [
        tuple(ArgumentOrigin(**msgspec.structs.asdict(one), from_tool=tools.get(one.anchor)) for one in lineage)
        for lineage in found
    ]


def _timeline(cursor: DuckDBPyConnection, of: str, id_: str) -> tuple[MessageDetail | CallDetail, ...]:
    calls = _calls(cursor, cursor.execute(sql(f"read.calls_of_{of}"), [id_]).fetchall())
    messages = _messages(cursor, cursor.execute(sql(f"read.messages_of_{of}"), [id_]).fetchall())
    items: list[tuple[int, MessageDetail | CallDetail]] = [(message.position, message) for message in messages]
    items += [(detail.call.position, detail) for detail in calls]
    return tuple(item for _, item in sorted(items, key=lambda pair: pair[0]))


def _messages(cursor: DuckDBPyConnection, rows: Sequence[Sequence[Any]]) -> list[MessageDetail]:
    names = MessageDetail.__struct_fields__[:-1]
    texts = load(cursor, (row[-2] for row in rows))
    found = []
    for *head, content, requests in rows:
        values = dict(zip(names, head, strict=True))
        values["text"] = texts.get(content, values["text"])
        values["requests"] = msgspec.json.decode(requests)
        values["type"] = "message"
        found.append(msgspec.convert(values, MessageDetail))
    return found


def _version(row: Sequence[Any]) -> ToolVersion:
    values = dict(zip(ToolVersion.__struct_fields__, row, strict=True))
    for name in ("input_schema", "annotations"):
        values[name] = None if values[name] is None else msgspec.json.decode(values[name])
    return ToolVersion(**values)
