"""Rows of traces from TraceRecords: runs, calls, effects, messages, not evaluable, tool versions.

Records are folded one after the other in memory, then written at once, so that a batch cut elsewhere
gives the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from duckdb import DuckDBPyConnection

from otelmon.store.call_rows import call_row
from otelmon.store.content import Contents
from otelmon.store.sqlfiles import sql
from otelmon.store.tables import (
    Row,
    append,
    delete,
    of_traces,
    replace_traces,
    select,
    short_key,
    traces_parameters,
)
from otelmon.vocabulary.event import AssistantMessage, Event, Run, SystemMessage, ToolCall, ToolDefinition, UserMessage
from otelmon.vocabulary.messages import ArgumentLineage, TraceRecord

RUN_COLUMNS = Run.__struct_fields__


def write_traces(connection: DuckDBPyConnection, records: Sequence[TraceRecord]) -> None:
    """Bring the rows of the records' traces up to date."""
    traces: dict[str, _Trace] = {}
    versions: dict[Row, _Version] = {}
    for record in records:
        traces.setdefault(record.trace_id, _Trace()).apply(record)
        _fold_versions(versions, record)
    contents = Contents()
    _write(connection, traces, contents)
    contents.write(connection)
    _write_versions(connection, versions)


class _Trace:
    """What the records of one batch say of one trace. `kept` are the calls that every record named
    and none sent: their rows stay as they are."""

    def __init__(self) -> None:
        self.runs: dict[str, Run] = {}
        self.conversation_id = ""
        self.calls: dict[str, ToolCall] = {}
        self.effects: dict[str, tuple[str, str]] = {}
        self.lineage: dict[str, tuple[ArgumentLineage, ...]] = {}
        self.kept: set[str] | None = None
        self.messages: Sequence[Event] = ()
        self.not_evaluable: dict[str, dict[str, str]] = {}
        self.suppressed: dict[str, dict[str, int]] = {}

    def apply(self, record: TraceRecord) -> None:
        named = set(record.call_keys)
        self.kept = named if self.kept is None else self.kept & named
        self.calls.update((call.key, call) for call in record.calls)
        self.calls = {key: call for key, call in self.calls.items() if key in named}
        self.effects.update(record.effects)
        self.effects = {key: effect for key, effect in self.effects.items() if key in named}
        self.lineage.update(record.lineage)
        self.runs = {run.run_id: run for run in record.runs}
        self.conversation_id = record.conversation_id
        self.messages = record.messages or self.messages
        self.not_evaluable = record.not_evaluable
        self.suppressed = record.suppressed


def _write(connection: DuckDBPyConnection, traces: dict[str, _Trace], contents: Contents) -> None:
    if not traces:
        return
    keys = {trace_id: short_key(trace_id) for trace_id in traces}
    runs = [(*_run_row(run), keys[id_]) for id_, t in traces.items() for run in t.runs.values()]
    replace_traces(connection, "runs", traces, runs)
    calls = [
        (*call_row(call, id_, t.conversation_id, contents), keys[id_])
        for id_, t in traces.items()
        for call in t.calls.values()
    ]
    _keep_only(connection, "tool_calls", {id_: (t.kept or set()) - t.calls.keys() for id_, t in traces.items()})
    append(connection, "tool_calls", calls)
    effects = [(key, id_, *effect, keys[id_]) for id_, t in traces.items() for key, effect in t.effects.items()]
    _keep_only(connection, "effects", {id_: (t.kept or set()) - t.effects.keys() for id_, t in traces.items()})
    append(connection, "effects", effects)
    _write_lineage(connection, {id_: t.lineage for id_, t in traces.items() if t.lineage}, keys)
    changed = {id_: t for id_, t in traces.items() if t.messages}
    messages = [
        (*_message_row(message, id_, t.conversation_id, contents), keys[id_])
        for id_, t in changed.items()
        for message in t.messages
    ]
    replace_traces(connection, "messages", changed, messages)
    gaps = [(*row, keys[id_]) for id_, t in traces.items() for row in _by_rule(id_, t, t.not_evaluable)]
    replace_traces(connection, "not_evaluable", traces, gaps)
    accepted = [(*row, keys[id_]) for id_, t in traces.items() for row in _by_rule(id_, t, t.suppressed)]
    replace_traces(connection, "suppressed", traces, accepted)
    _follow_conversation(connection, traces)


def _write_lineage(
    connection: DuckDBPyConnection,
    lineage: Mapping[str, Mapping[str, tuple[ArgumentLineage, ...]]],
    keys: Mapping[str, int],
) -> None:
    """Replace the rows of the calls that are named. Rows of calls that went away are seen by nobody (every read
    joins the call) and leave with retention."""
    if not lineage:
        return
    named = sorted(f"{trace_id} {key}" for trace_id, rows in lineage.items() for key in rows)
    connection.execute(
        f"DELETE FROM call_lineage WHERE {of_traces('call_lineage')}"  # noqa: S608 - names are ours
        " AND (trace_id || ' ' || call_key) IN (SELECT unnest($named::VARCHAR[]))",
        {**traces_parameters(lineage), "named": named},
    )
    append(
        connection,
        "call_lineage",
        [
            (key, trace_id, msgspec.json.encode(arguments).decode(), keys[trace_id])
            for trace_id, rows in lineage.items()
            for key, arguments in rows.items()
        ],
    )


def _keep_only(connection: DuckDBPyConnection, table: str, kept: dict[str, set[str]]) -> None:
    """Delete the rows of the traces whose call is not kept."""
    keys = sorted(f"{trace_id} {key}" for trace_id, keys in kept.items() for key in keys)
    connection.execute(
        f"DELETE FROM {table} WHERE {of_traces(table)}"  # noqa: S608 - names are ours
        " AND (trace_id || ' ' || call_key) NOT IN (SELECT unnest($kept::VARCHAR[]))",
        {**traces_parameters(kept), "kept": keys},
    )


def _follow_conversation(connection: DuckDBPyConnection, traces: dict[str, _Trace]) -> None:
    """Rows that stayed as they were move with their trace when its conversation becomes known."""
    for table in ("tool_calls", "messages"):
        rows = connection.execute(
            f"SELECT DISTINCT trace_id, conversation_id FROM {table} WHERE {of_traces(table)}",  # noqa: S608
            traces_parameters(traces),
        ).fetchall()
        # Looked for first: it is rare, and an UPDATE that changes nothing costs ten times the look.
        for trace_id in sorted({id_ for id_, stored in rows if stored != traces[id_].conversation_id}):
            connection.execute(
                f"UPDATE {table} SET conversation_id = $conversation WHERE {of_traces(table)}",  # noqa: S608
                {**traces_parameters([trace_id]), "conversation": traces[trace_id].conversation_id},
            )


def _run_row(run: Run) -> Row:
    values = [getattr(run, name) for name in RUN_COLUMNS]
    return tuple(list(v) if isinstance(v, tuple) else v for v in values)


def _message_row(event: Any, trace_id: str, conversation_id: str, contents: Contents) -> Row:
    text, content = contents.shorten(event.text)
    requests = event.requests if isinstance(event, AssistantMessage) else ()
    return (
        trace_id, event.span_id, event.run_id, conversation_id, event.position, _role(event),
        event.turn if isinstance(event, UserMessage) else None,
        event.final if isinstance(event, AssistantMessage) else None,
        event.agent_name, event.start_time_unix_nano, event.end_time_unix_nano,
        text, content, msgspec.json.encode(requests).decode(),
    )  # fmt: skip


def _role(event: Event) -> str:
    if isinstance(event, SystemMessage):
        return "system"
    if isinstance(event, UserMessage):
        return "user"
    return "assistant" if isinstance(event, AssistantMessage) else "context"


def _by_rule(trace_id: str, trace: _Trace, found: Mapping[str, Mapping[str, object]]) -> list[Row]:
    """Rows of what is said of rules in the runs of a trace: {run id: {rule id: what}}."""
    rows: list[Row] = []
    for run_id, by_rule in found.items():
        run = trace.runs.get(run_id)
        agent, time = (run.agent_name, run.last_received_unix_nano) if run else (None, 0)
        rows += [(trace_id, run_id, agent, rule_id, what, time) for rule_id, what in sorted(by_rule.items())]
    return rows


class _Version(msgspec.Struct):
    definition: ToolDefinition
    first: int
    last: int


def _fold_versions(versions: dict[Row, _Version], record: TraceRecord) -> None:
    runs = {run.run_id: run for run in record.runs}
    for definition in record.definitions:
        run = runs.get(definition.run_id)
        service, environment = (run.service_name, run.environment) if run else ("", "")
        key = (service, environment, definition.server or "", definition.name, definition.definition_hash)
        seen = definition.start_time_unix_nano
        known = versions.setdefault(key, _Version(definition, seen, seen))
        known.first, known.last = min(known.first, seen), max(known.last, seen)


def _write_versions(connection: DuckDBPyConnection, versions: dict[Row, _Version]) -> None:
    """Upsert: first seen goes down, last seen goes up."""
    known = select(connection, sql("writer.versions"), (key[4] for key in versions))
    stored = {row[:5]: (row[5], row[6]) for row in known}
    changed: dict[Row, _Version] = {}
    for key, version in versions.items():
        first, last = stored.get(key, (version.first, version.last))
        version.first, version.last = min(first, version.first), max(last, version.last)
        if key not in stored or stored[key] != (version.first, version.last):
            changed[key] = version
    _drop_versions(connection, changed)
    append(connection, "tool_versions", [_version_row(key, version) for key, version in sorted(changed.items())])


def _drop_versions(connection: DuckDBPyConnection, versions: dict[Row, _Version]) -> None:
    names = ["\x1f".join(key) for key in versions]
    delete(
        connection,
        "tool_versions",
        "concat_ws(chr(31), service_name, environment, server, tool_name, definition_hash)",
        names,
    )


def _version_row(key: Row, version: _Version) -> Row:
    definition = version.definition
    return (
        *key, definition.schema_hash, definition.description,
        _json(definition.input_schema), _json(definition.annotations), version.first, version.last,
    )  # fmt: skip


def _json(value: Any) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()
