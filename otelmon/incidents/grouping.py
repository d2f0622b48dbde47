"""Fold findings into incidents: one incident a problem, inside the store's own transaction.

A problem is family, environment, agent and tool; in the catalogue family it is what was released: family,
environment and the server (or agent) whose tools changed, however many they are. A finding joins the incident of its problem whose
time, widened by the quiet time, holds the finding's event time; otherwise it opens one. It stays in
that incident. Findings below medium, and those of rules in test, are stored but belong to no incident.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from duckdb import DuckDBPyConnection

from otelmon.incidents.records import SYSTEM, Case, load_cases, remember, write_cases
from otelmon.incidents.titles import Member, release_title, title
from otelmon.store.sqlfiles import sql
from otelmon.store.tables import append, select
from otelmon.store.verdicts import Change
from otelmon.vocabulary.canonical import short_hash
from otelmon.vocabulary.config import IncidentsConfig
from otelmon.vocabulary.finding import SEVERITIES, Family, Finding, Severity, level

NO_AGENT = "unknown agent"
NO_TOOL = "no tool"
ITS_TOOLS = "its tools"
CATALOGUE: Family = "catalogue"
LOWEST: Severity = "medium"
Key = tuple[str, str, str, str]


class Grouping:
    """The store writer's hook. `silent_rules` are ids of rules whose findings open no incident."""

    def __init__(self, config: IncidentsConfig, silent_rules: frozenset[str] = frozenset()) -> None:
        self._quiet = int(config.quiet_seconds * 1e9)
        self._silent = silent_rules

    def __call__(self, connection: DuckDBPyConnection, changes: Sequence[Change]) -> None:
        """Bring the incidents up to date with changes in the order they happened."""
        fold = _Fold(connection, changes, self._quiet)
        for change in changes:
            if change.finding.finding_id in fold.member_of:
                fold.known(change)
            elif self._speaks(change.finding):
                fold.join(change)
        fold.write(connection)

    def _speaks(self, finding: Finding) -> bool:
        grave = level(finding.severity) >= level(LOWEST)
        return finding.status == "open" and grave and finding.rule_id not in self._silent


class _Fold:
    def __init__(self, connection: DuckDBPyConnection, changes: Sequence[Change], quiet: int) -> None:
        self._quiet = quiet
        ids = {change.finding.finding_id for change in changes}
        self.member_of: dict[str, str] = dict(select(connection, sql("incidents.members"), ids))
        keys = {_key(change.finding) for change in changes}
        self._cases = load_cases(connection, self.member_of.values(), keys)
        self._touched: set[str] = set()
        self._joined: list[tuple[str, str]] = []

    def known(self, change: Change) -> None:
        """A finding that belongs to an incident changed."""
        case = self._cases[self.member_of[change.finding.finding_id]]
        if change.kind == "retracted":
            case.findings -= 1
            if case.findings <= 0 and case.state in ("open", "acknowledged"):
                case.state = "retracted"
                remember(case, "retracted", SYSTEM, "every finding was retracted", change.observed_unix_nano)
        elif change.kind == "restored":
            case.findings += 1
            self._wake(case, change)
        self._seen(case, change)

    def join(self, change: Change) -> None:
        """A finding that belongs to none yet."""
        finding = change.finding
        case = self._near(_key(finding), finding.event_time_unix_nano)
        if case is None:
            case = self._open(change)
        else:
            self._wake(case, change)
        case.findings += 1
        self.member_of[finding.finding_id] = case.incident_id
        self._joined.append((case.incident_id, finding.finding_id))
        self._seen(case, change)

    def _near(self, key: Key, time: int) -> Case | None:
        near = [
            case
            for case in self._cases.values()
            if case.key == key and case.opened_unix_nano - self._quiet <= time <= case.last_seen_unix_nano + self._quiet
        ]
        return min(near, key=lambda case: (case.opened_unix_nano, case.incident_id)) if near else None

    def _open(self, change: Change) -> Case:
        finding = change.finding
        key = _key(finding)
        time = finding.event_time_unix_nano
        case = Case(
            incident_id=short_hash(*key, finding.finding_id)[:16],
            key=key,
            opened_unix_nano=time,
            last_seen_unix_nano=time,
            observed_unix_nano=change.observed_unix_nano,
        )
        remember(case, "opened", SYSTEM, finding.summary, change.observed_unix_nano)
        self._cases[case.incident_id] = case
        return case

    def _wake(self, case: Case, change: Change) -> None:
        if case.state in ("resolved", "retracted"):
            case.state = "open"
            remember(case, "reopened", SYSTEM, change.finding.summary, change.observed_unix_nano)

    def _seen(self, case: Case, change: Change) -> None:
        time = change.finding.event_time_unix_nano
        case.opened_unix_nano = min(case.opened_unix_nano, time)
        case.last_seen_unix_nano = max(case.last_seen_unix_nano, time)
        case.observed_unix_nano = max(case.observed_unix_nano, change.observed_unix_nano)
        self._touched.add(case.incident_id)

    def write(self, connection: DuckDBPyConnection) -> None:
        """Store what changed; count, severity, rules and title follow from the stored findings."""
        append(connection, "incident_findings", self._joined)
        touched = [self._cases[id_] for id_ in sorted(self._touched)]
        members = _members(connection, self._touched)
        releases = [case.incident_id for case in touched if case.key[0] == CATALOGUE]
        tools: dict[str, list[str]] = dict(select(connection, sql("incidents.tools"), releases))
        for case in touched:
            _describe(case, members[case.incident_id], tools.get(case.incident_id, []))
        write_cases(connection, touched)


def _key(finding: Finding) -> Key:
    if finding.family == CATALOGUE:
        return finding.family, finding.environment, _released(finding), ITS_TOOLS
    return finding.family, finding.environment, finding.agent_name or NO_AGENT, finding.tool_name or NO_TOOL


def _released(finding: Finding) -> str:
    """Whose tools it is about: servers, else the agent that has them."""
    told = finding.evidence
    servers = {*_texts(told.get("servers")), *_texts(told.get("server")), *_texts(told.get("others"))}
    if servers:
        return f"server{'s' if len(servers) > 1 else ''} {' and '.join(sorted(servers))}"
    return finding.agent_name or finding.service_name or NO_AGENT


def _texts(value: object) -> list[str]:
    values = value if isinstance(value, list | tuple) else [value]
    return [text for text in values if isinstance(text, str) and text]


class _Group(msgspec.Struct):
    status: str
    member: Member


def _members(connection: DuckDBPyConnection, incidents: Iterable[str]) -> dict[str, list[_Group]]:
    members: dict[str, list[_Group]] = {}
    for incident_id, rule_id, severity, status, amount, summary, first in select(
        connection, sql("incidents.groups"), incidents
    ):
        member = Member(rule_id, level(severity), amount, summary, first)
        members.setdefault(incident_id, []).append(_Group(status, member))
    return members


def _describe(case: Case, groups: list[_Group], tools: list[str]) -> None:
    # An incident whose findings are all retracted keeps its face: a person may have seen it.
    open_ones = [group.member for group in groups if group.status == "open"]
    face = open_ones or [group.member for group in groups]
    case.findings = sum(member.amount for member in open_ones)
    case.severity = SEVERITIES[max(member.level for member in face)]
    case.rule_ids = sorted({member.rule_id for member in face})
    if tools:
        case.title = release_title(face, tools=tools, owner=case.key[2])
    else:
        case.title = title(face, tool=case.key[3], agent=case.key[2])
