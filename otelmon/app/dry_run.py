"""What rules would do: stored runs judged twice, by the rules in force and by others, and the difference."""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from duckdb import DuckDBPyConnection

from otelmon.app.offline import Checker, Report, check_paths
from otelmon.assemble.stage import content_type, shape_of
from otelmon.bus.protocol import Delivered
from otelmon.detect.engine import Laws
from otelmon.incidents.grouping import Grouping
from otelmon.receive import otlp
from otelmon.rules.model import Rule, RuleSet
from otelmon.store.database import Database
from otelmon.store.log_records import headers_of
from otelmon.store.queries import MANY, incidents
from otelmon.store.results import Payload
from otelmon.store.verdicts import write_verdicts
from otelmon.vocabulary.canonical import sha256
from otelmon.vocabulary.config import Config, IncidentsConfig
from otelmon.vocabulary.errors import InputError
from otelmon.vocabulary.finding import SEVERITIES, Finding, Incident, level
from otelmon.vocabulary.messages import Verdict

DAY = 86_400 * 1_000_000_000
SHORTEST = DAY // 24  # data of less time says nothing about a day
PAGED = frozenset(("effect", "policy", "truth"))  # families whose grave findings page, from stable rules
Kind = Literal["new", "gone", "changed", "same"]


class Example(msgspec.Struct, frozen=True):
    """One finding, and what becomes of it: "new", "gone", "changed" or "same"."""

    kind: Kind
    finding: Finding


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule would do. `severities` counts its findings; `incidents` those it would be part of, `alone`
    those that no other rule would open; `pages` incidents grave enough to call a person. `per_day` is None where the data
    span too little time. `gone` and the rest compare with the rules in force."""

    rule_id: str
    title: str
    version: str
    status: str
    severity: str
    family: str
    origin: str
    findings: int
    runs: int
    severities: dict[str, int]
    incidents: int
    alone: int
    pages: int
    findings_per_day: float | None
    pages_per_day: float | None
    new: int
    gone: int
    changed: int
    not_evaluable: dict[str, int]
    suppressed: int
    undecided: int
    check_errors: int
    raised: str
    examples: tuple[Example, ...]


class DryRun(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer. Times in nanoseconds since the epoch, of the runs' events; `left_out_from`: what was
    received since then was not read, because it is too much for one go (0: all was read). `compared`: the laws that
    were tried are others than those in force."""

    source: str
    runs: int
    spans: int
    tool_calls: int
    first_unix_nano: int
    last_unix_nano: int
    days: float
    left_out_from: int
    compared: bool
    rules: tuple[Forecast, ...]


def with_tried(in_force: Laws, tried: Iterable[Rule]) -> Laws:
    """The laws with these rules in them, in the place of those of the same id. They count as stable: what is asked
    is what they would do if they were in force."""
    rules = dict(in_force.rules.rules)
    for rule in tried:
        rules[rule.id] = msgspec.structs.replace(rule, status="stable") if rule.status in ("draft", "test") else rule
    ordered = {key: rules[key] for key in sorted(rules)}
    version = sha256([rule.version for rule in ordered.values()])[7:19]
    return msgspec.structs.replace(in_force, rules=RuleSet(ordered, version))


class Stored:
    """Judges what payloads hold, by as many laws as are given, each in one world: all that is stored belongs
    together. `most` bytes are read."""

    def __init__(self, laws: Sequence[Laws], config: Config, most: int) -> None:
        self._checkers = [Checker(one, config) for one in laws]
        self._config = config
        self._left = most
        self.left_out_from = 0

    def read(self, payloads: Iterable[Payload]) -> None:
        """Take payloads in the order they were received, until it is too much."""
        for payload in payloads:
            self._left -= len(payload.value)
            if self._left < 0:
                self.left_out_from = payload.received_unix_nano
                return
            self._take(payload)

    def _take(self, payload: Payload) -> None:
        headers = headers_of(payload.encoding)
        message = Delivered(payload.topic, payload.partition, payload.offset, "", payload.value, payload.received_unix_nano, headers)  # fmt: skip
        shape = shape_of(message)
        try:
            parsed = otlp.read(message.value, content_type(message), self._config.receive, shape)
        except InputError:
            return  # the store counted it as unreadable when it came
        for checker in self._checkers:
            if shape is otlp.LOGS:
                checker.add_log_records(otlp.log_records(parsed.request, message.time_unix_nano))
            else:
                checker.add_spans(otlp.spans(parsed.request, message.time_unix_nano))

    def finish(self) -> list[Report]:
        """A report for each of the laws."""
        return [checker.finish() for checker in self._checkers]


def dry_run_stored(
    payloads: Iterable[Payload], laws: Sequence[Laws], config: Config, most: int
) -> tuple[list[Report], int]:
    """Reports over stored messages, one for each of the laws; and since when what was received is left out."""
    stored = Stored(laws, config, most)
    stored.read(payloads)
    return stored.finish(), stored.left_out_from


def dry_run_files(paths: Sequence[Path], laws: Sequence[Laws], config: Config, together: bool) -> list[Report]:
    """Reports over files, one for each of the laws. Raises UserError for a path that can not be opened."""
    return [check_paths(paths, one, config, together) for one in laws]


def forecast(
    before: Report,
    after: Report,
    laws: Laws,
    config: Config,
    wanted: Sequence[str],
    show: int,
    source: str,
    left_out_from: int = 0,
) -> DryRun:
    """What the wanted rules (or all, when none is named) would do. `before` is the report by the rules in force,
    `after` the one by `laws`; `show` examples of each rule are kept."""
    opened = would_open(after.findings, laws, config.incidents)
    whole = DryRun(
        source=source, runs=after.runs, spans=after.spans, tool_calls=after.tool_calls,
        first_unix_nano=after.first_unix_nano, last_unix_nano=after.last_unix_nano,
        days=(after.last_unix_nano - after.first_unix_nano) / DAY, left_out_from=left_out_from,
        compared=before is not after, rules=(),
    )  # fmt: skip
    were, are = _by_rule(before.findings), _by_rule(after.findings)
    ids = list(wanted) or list(laws.rules.rules)
    rules = (_of_rule(laws.rules.rules[id_], were[id_], are[id_], after, opened, whole.days, show) for id_ in ids)
    return msgspec.structs.replace(whole, rules=tuple(rules))


def _by_rule(findings: Iterable[Finding]) -> Mapping[str, dict[str, Finding]]:
    found: dict[str, dict[str, Finding]] = defaultdict(dict)
    for finding in findings:
        found[finding.rule_id][finding.finding_id] = finding
    return found


def _of_rule(
    rule: Rule,
    were: dict[str, Finding],
    are: dict[str, Finding],
    report: Report,
    opened: Sequence[Incident],
    days: float,
    show: int,
) -> Forecast:
    told = _compared(were, are)
    kinds = Counter(example.kind for example in told)
    mine = [incident for incident in opened if rule.id in incident.rule_ids]
    pages = [one for one in mine if one.family in PAGED and level(one.severity) >= level("high")]
    per_day = _rate(days)
    severities = Counter(finding.severity for finding in are.values())
    return Forecast(
        rule_id=rule.id, title=rule.title, version=rule.version, status=rule.status, severity=rule.severity,
        family=rule.family, origin=rule.origin, findings=len(are), runs=len({f.run_id for f in are.values()}),
        severities={one: severities[one] for one in reversed(SEVERITIES) if severities[one]},
        incidents=len(mine), alone=sum(one.rule_ids == (rule.id,) for one in mine), pages=len(pages),
        findings_per_day=per_day(len(are)), pages_per_day=per_day(len(pages)),
        new=kinds["new"], gone=kinds["gone"], changed=kinds["changed"],
        not_evaluable=report.not_evaluable.get(rule.id, {}), suppressed=report.suppressed.get(rule.id, 0),
        undecided=report.undecided.get(rule.id, 0), check_errors=report.check_errors.get(rule.id, 0),
        raised=report.raised.get(rule.id, ""), examples=tuple(told[:show]),
    )  # fmt: skip


def _compared(were: dict[str, Finding], are: dict[str, Finding]) -> list[Example]:
    """Every finding with what becomes of it: what differs first, then by time."""
    order: dict[Kind, int] = {"new": 0, "changed": 1, "gone": 2, "same": 3}
    told = [Example(_kind(were.get(id_), finding), finding) for id_, finding in are.items()]
    told += [Example("gone", finding) for id_, finding in were.items() if id_ not in are]
    return sorted(told, key=lambda e: (order[e.kind], e.finding.event_time_unix_nano, e.finding.finding_id))


def _kind(was: Finding | None, now: Finding) -> Kind:
    if was is None:
        return "new"
    return "same" if msgspec.structs.replace(was, rule_version=now.rule_version) == now else "changed"


def _rate(days: float) -> Callable[[int], float | None]:
    if days * DAY < SHORTEST:
        return lambda _: None
    return lambda number: round(number / days, 2)


def would_open(findings: Sequence[Finding], laws: Laws, config: IncidentsConfig) -> list[Incident]:
    """The incidents that these findings would open in an empty store: the store's own code, on a store that is
    thrown away."""
    silent = frozenset(rule.id for rule in laws.rules.rules.values() if rule.status in ("draft", "test"))
    verdict = Verdict(owner="dry-run", epoch=1, findings=tuple(findings), observed_unix_nano=1)
    with tempfile.TemporaryDirectory(prefix="otelmon-dry-run-") as folder:
        database = Database.open(Path(folder) / "dry.duckdb", min_free_bytes=0)
        with database, database.write() as connection:
            changes = write_verdicts(connection, [verdict])
            changes.sort(key=lambda change: (change.finding.event_time_unix_nano, change.finding.finding_id))
            Grouping(config, silent)(connection, changes)
            return _all_incidents(connection)


def _all_incidents(connection: DuckDBPyConnection) -> list[Incident]:
    found: list[Incident] = []
    while True:
        page = incidents(connection, limit=MANY, offset=len(found))
        found += page.incidents
        if not page.incidents or len(found) >= page.total:
            return found
