"""The reads of the API, by name: the same for the web, for the commands beside a running server, and
for the commands on a database nobody serves."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args

import msgspec

from otelmon.golden.model import GoldenTask
from otelmon.golden.tasks import stored_tasks
from otelmon.store import queries, results
from otelmon.store.accounts import Refused, Totals, conservation, refusals
from otelmon.store.database import Database
from otelmon.store.snapshot import snapshot
from otelmon.vocabulary.errors import Problem, UserError
from otelmon.vocabulary.finding import Family, IncidentLabel, IncidentState, Severity

MOST = 100_000
Amount = Annotated[int, msgspec.Meta(ge=1, le=MOST)]
Offset = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Nanoseconds = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class _Params(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Incidents(_Params, frozen=True, kw_only=True):
    """`states` separated by commas; empty: all."""

    states: str = ""
    severity: Severity = "info"
    family: Family | None = None
    agent: str | None = None
    tool: str | None = None
    environment: str | None = None
    label: IncidentLabel | None = None
    since: Nanoseconds | None = None
    limit: Amount = 50
    offset: Offset = 0


class One(_Params, frozen=True, kw_only=True):
    """The id of one thing."""

    id: str


class Runs(_Params, frozen=True, kw_only=True):
    """Which runs."""

    agent: str | None = None
    service: str | None = None
    environment: str | None = None
    conversation: str | None = None
    trace: str | None = None
    since: Nanoseconds | None = None
    with_findings: bool = False
    limit: Amount = 50
    offset: Offset = 0


class Findings(_Params, frozen=True, kw_only=True):
    """Which findings."""

    incident: str | None = None
    run: str | None = None
    finding: str | None = None
    conversation: str | None = None
    rule: str | None = None
    status: str | None = None
    since: Nanoseconds | None = None
    limit: Amount = 1000
    offset: Offset = 0


class Tool(_Params, frozen=True, kw_only=True):
    """One tool, or all."""

    tool: str | None = None


class Nothing(_Params, frozen=True, kw_only=True):
    """No parameters."""


class Place(msgspec.Struct, frozen=True):
    """A file on the machine of the server."""

    path: str


class Sizes(msgspec.Struct, frozen=True):
    """Rows of the main tables, and free bytes on the disk."""

    rows: dict[str, int]
    disk_free_bytes: int


class Read(msgspec.Struct, frozen=True):
    """One read: its parameters, what answers it, the type of the answer (None: not found), and what it
    gives in words. `works`: it writes files, so a foreign page must not be able to ask for it."""

    params: type[_Params]
    answer: Callable[[Database, Any], Any]
    result: Any
    doc: str
    works: bool = False


def _incidents(database: Database, p: Incidents) -> results.IncidentPage:
    states = _states(p.states)
    wanted = results.IncidentFilter(
        states=states, severity=p.severity, family=p.family, agent=p.agent, tool=p.tool,
        environment=p.environment, label=p.label, since=p.since,
    )  # fmt: skip
    with database.read() as cursor:
        return queries.incidents(cursor, wanted, p.limit, p.offset)


def _states(text: str) -> tuple[IncidentState, ...]:
    try:
        return msgspec.convert([s for s in text.split(",") if s], tuple[IncidentState, ...])
    except msgspec.ValidationError:
        known = ", ".join(get_args(IncidentState))
        raise UserError(
            Problem("read incidents", f"states {text!r} is not known", f"some of {known}, with commas")
        ) from None


def _runs(database: Database, p: Runs) -> tuple[results.RunSummary, ...]:
    fields = {name: getattr(p, name) for name in results.RunFilter.__struct_fields__}
    with database.read() as cursor:
        return queries.runs(cursor, results.RunFilter(**fields), p.limit, p.offset)


def _findings(database: Database, p: Findings) -> tuple[results.FindingDetail, ...]:
    with database.read() as cursor:
        return queries.findings(cursor, **msgspec.structs.asdict(p))


def _one(function: Callable[..., Any]) -> Callable[[Database, One], Any]:
    def answer(database: Database, p: One) -> Any:
        with database.read() as cursor:
            return function(cursor, p.id)

    return answer


def _tools(database: Database, p: Tool) -> tuple[results.ToolVersion, ...]:
    with database.read() as cursor:
        return queries.tool_versions(cursor, p.tool)


def _accounts(database: Database, _: Nothing) -> list[Totals]:
    with database.read() as cursor:
        return conservation(cursor)


def _refused(database: Database, _: Nothing) -> list[Refused]:
    with database.read() as cursor:
        return refusals(cursor)


def _not_evaluable(database: Database, _: Nothing) -> tuple[results.NotEvaluableCount, ...]:
    with database.read() as cursor:
        return queries.not_evaluable_counts(cursor)


def _suppressed(database: Database, _: Nothing) -> tuple[results.SuppressedCount, ...]:
    with database.read() as cursor:
        return queries.suppressed_counts(cursor)


def _agents(database: Database, _: Nothing) -> tuple[results.AgentRuns, ...]:
    with database.read() as cursor:
        return queries.agents(cursor)


def _sizes(database: Database, _: Nothing) -> Sizes:
    with database.read() as cursor:
        return Sizes(queries.sizes(cursor), shutil.disk_usage(database.path.parent).free)


READS: dict[str, Read] = {
    "incidents": Read(Incidents, _incidents, results.IncidentPage, "Incidents, active ones first, then the last seen, and how many match."),
    "incident": Read(One, _one(queries.incident), results.IncidentDetail | None, "One incident with its findings, their calls and its history."),
    "runs": Read(Runs, _runs, tuple[results.RunSummary, ...], "Runs, newest first, with their numbers of calls and open findings."),
    "run": Read(One, _one(queries.run), results.RunDetail | None, "One run: messages and calls in causal order, findings, rules that could not decide."),
    "conversation": Read(One, _one(queries.conversation), results.ConversationDetail | None, "One conversation: all its runs, messages, calls and findings."),
    "find": Read(One, _one(queries.find), tuple[results.Found, ...], "Incidents, findings, runs, conversations and traces whose id starts with `id`."),
    "findings": Read(Findings, _findings, tuple[results.FindingDetail, ...], "Findings, the open and oldest first, with the calls they point at."),
    "tools": Read(Tool, _tools, tuple[results.ToolVersion, ...], "Every definition of a tool that was seen in traffic."),
    "accounts": Read(Nothing, _accounts, list[Totals], "What became of everything received, by topic and partition."),
    "refused": Read(Nothing, _refused, list[Refused], "What the doors refused, by reason, and when last."),
    "not_evaluable": Read(Nothing, _not_evaluable, tuple[results.NotEvaluableCount, ...], "Runs in which a rule could not decide, by rule, agent and reason."),
    "suppressed": Read(Nothing, _suppressed, tuple[results.SuppressedCount, ...], "Findings that the configuration accepted, by rule and agent; those across runs are only in the metric."),
    "agents": Read(Nothing, _agents, tuple[results.AgentRuns, ...], "Agents with their runs and the dialects these were written in."),
    "sizes": Read(Nothing, _sizes, Sizes, "Rows of the main tables and free bytes on the disk."),
    "golden_tasks": Read(Nothing, lambda database, _: stored_tasks(database), list[GoldenTask], "Golden tasks mined so far."),
    "snapshot": Read(Nothing, lambda database, _: Place(str(snapshot(database))), Place, "Path, on the server's machine, of a copy of the tables for SQL.", works=True),
}  # fmt: skip


def params_of(name: str, given: Mapping[str, object]) -> _Params:
    """The typed parameters of a read. Raises UserError for an unknown read or parameter."""
    if name not in READS:
        raise UserError(Problem(f"read {name}", "there is no such read", f"one of {', '.join(READS)}"))
    try:
        return msgspec.convert(dict(given), READS[name].params, strict=False)
    except msgspec.ValidationError as error:
        known = ", ".join(READS[name].params.__struct_fields__) or "no parameters"
        raise UserError(Problem(f"read {name}", str(error), f"parameters are {known}")) from None


def answer(database: Database, name: str, given: Mapping[str, object]) -> Any:
    """Answer a read from a database."""
    return READS[name].answer(database, params_of(name, given))
