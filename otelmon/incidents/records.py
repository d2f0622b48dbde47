"""Incidents in memory and their rows: the incident as it is now, and the history of what happened to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from duckdb import DuckDBPyConnection

from otelmon.store.sqlfiles import sql
from otelmon.store.tables import append, replace
from otelmon.vocabulary.finding import IncidentLabel, IncidentState, Severity

SYSTEM = "otelmon"


class Entry(msgspec.Struct, frozen=True):
    """One line of an incident's history."""

    sequence: int
    action: str
    who: str
    note: str
    time_unix_nano: int


class Case(msgspec.Struct, kw_only=True):
    """An incident while it changes. `key` is (family, environment, agent, tool); `opened` and
    `last_seen` are event times, `observed` is recorded time. `entries` are new lines of history."""

    incident_id: str
    key: tuple[str, str, str, str]
    opened_unix_nano: int
    last_seen_unix_nano: int
    observed_unix_nano: int
    severity: Severity = "medium"
    state: IncidentState = "open"
    label: IncidentLabel = "unreviewed"
    title: str = ""
    findings: int = 0
    rule_ids: list[str] = []
    past: int = 0
    entries: list[Entry] = []


def remember(case: Case, action: str, who: str, note: str, time_unix_nano: int) -> None:
    """Add a line to the history."""
    case.entries.append(Entry(case.past + len(case.entries), action, who, note, time_unix_nano))


def load_cases(
    connection: DuckDBPyConnection, ids: Iterable[str], keys: Iterable[tuple[str, str, str, str]] = ()
) -> dict[str, Case]:
    """The incidents with these ids or keys, by id."""
    joined = sorted({"\x1f".join(key) for key in keys})
    rows = connection.execute(sql("incidents.load"), [sorted(set(ids)), joined]).fetchall()
    return {row[0]: _case(row) for row in rows}


def _case(row: Sequence[object]) -> Case:
    incident_id, family, environment, agent, tool, *rest = row
    names = (
        "severity", "state", "label", "title", "opened_unix_nano", "last_seen_unix_nano", "observed_unix_nano",
        "findings", "rule_ids", "past",
    )  # fmt: skip
    values = dict(zip(names, rest, strict=True))
    return msgspec.convert({"incident_id": incident_id, "key": (family, environment, agent, tool), **values}, Case)


def write_cases(connection: DuckDBPyConnection, cases: Sequence[Case]) -> None:
    """Replace the rows of the incidents and append their new history."""
    rows = [
        (
            case.incident_id, *case.key, case.severity, case.state, case.label, case.title, case.opened_unix_nano,
            case.last_seen_unix_nano, case.observed_unix_nano, case.findings, case.rule_ids,
        )
        for case in cases
    ]  # fmt: skip
    replace(connection, "incidents", "incident_id", {case.incident_id for case in cases}, rows)
    history = [
        (case.incident_id, entry.sequence, entry.action, entry.who, entry.note, entry.time_unix_nano)
        for case in cases
        for entry in case.entries
    ]
    append(connection, "incident_history", history)
