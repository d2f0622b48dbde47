"""Judge files without a server: the same tables as the live stages, fed by hand."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from otelmon.assemble.readings import names_agent_event, read_log_record, read_span
from otelmon.assemble.traces import TraceTable
from otelmon.assemble.transcripts import read_transcript
from otelmon.detect.conversations import ConversationTable
from otelmon.detect.emission import Output
from otelmon.detect.engine import Laws
from otelmon.detect.ledger import LedgerTable
from otelmon.receive import otlp
from otelmon.receive.files import World, read_worlds, with_logs
from otelmon.vocabulary.config import Config
from otelmon.vocabulary.errors import Problem
from otelmon.vocabulary.finding import Finding
from otelmon.vocabulary.messages import Handover, ReadingBatch, TraceRecord
from otelmon.vocabulary.reading import Reading
from otelmon.vocabulary.span import LogRecord, Span

RECEIVED = 1  # files carry no receive time, and nothing that is decided at the end of a file needs one


class Report(msgspec.Struct, kw_only=True):
    """What `otelmon check` found. `not_evaluable` is {rule id: {reason: runs}}; `problems` are inputs
    that could not be read (their neighbours were); `sources` is {trace id: where it came from}. `suppressed`
    counts what was found and is accepted, `undecided` conditions that could not be decided, `check_errors`
    checks that raised, each {rule id: times}; `raised` is what and where. `first_unix_nano` and
    `last_unix_nano` are the times of the runs' events, 0 without any."""

    runs: int = 0
    spans: int = 0
    tool_calls: int = 0
    findings: list[Finding] = []
    not_evaluable: dict[str, dict[str, int]] = {}
    problems: list[Problem] = []
    sources: dict[str, str] = {}
    check_errors: dict[str, int] = {}
    raised: dict[str, str] = {}
    suppressed: dict[str, int] = {}
    undecided: dict[str, int] = {}
    first_unix_nano: int = 0
    last_unix_nano: int = 0

    def merge(self, other: Report) -> None:
        """Add another world's report."""
        self.runs += other.runs
        self.spans += other.spans
        self.tool_calls += other.tool_calls
        self.findings.extend(other.findings)
        self.problems.extend(other.problems)
        self.sources.update(other.sources)
        for rule_id, reasons in other.not_evaluable.items():
            mine = self.not_evaluable.setdefault(rule_id, {})
            for reason, runs in reasons.items():
                mine[reason] = mine.get(reason, 0) + runs
        self.raised = {**other.raised, **self.raised}
        self.first_unix_nano = min(filter(None, (self.first_unix_nano, other.first_unix_nano)), default=0)
        self.last_unix_nano = max(self.last_unix_nano, other.last_unix_nano)
        for mine, theirs in (
            (self.check_errors, other.check_errors),
            (self.suppressed, other.suppressed),
            (self.undecided, other.undecided),
        ):
            for rule_id, times in theirs.items():
                mine[rule_id] = mine.get(rule_id, 0) + times


class Checker:
    """One world: everything added belongs together and is judged when it is finished."""

    def __init__(self, laws: Laws, config: Config) -> None:
        self._traces = TraceTable(config.assemble)
        self._conversations = ConversationTable(laws, config.detect, config.assemble)
        self._ledger = LedgerTable(laws, config.detect)
        self._findings: dict[str, tuple[Finding, ...]] = {}
        self._records: dict[str, TraceRecord] = {}
        self._spans: set[tuple[str, str, str]] = set()
        self._sources: dict[str, str] = {}

    def add(self, world: World) -> None:
        """Add a world's spans, transcript or log records."""
        if world.transcript is not None:
            self._feed(read_transcript(world.transcript, RECEIVED), world.source)
        if world.request is not None:
            self.add_spans(otlp.spans(world.request, RECEIVED), world.source)
        if world.logs is not None:
            self.add_log_records(otlp.log_records(world.logs, RECEIVED), world.source)

    def add_spans(self, spans: Iterable[Span], source: str = "") -> None:
        """Add spans, in any order."""
        readings = []
        for span in spans:
            self._spans.add((span.trace_id, span.span_id, span.digest))
            readings.append(read_span(span, self._traces.history(span.trace_id)))
        self._feed(readings, source)

    def add_log_records(self, records: Iterable[LogRecord], source: str = "") -> None:
        """Add what log records say of spans, before or after these; the other records say nothing here."""
        read = (read_log_record(r, self._traces.history(r.trace_id)) for r in records if names_agent_event(r))
        self._feed([reading for reading in read if reading is not None], source)

    def _feed(self, readings: Sequence[Reading], source: str) -> None:
        for trace_id in {reading.trace_id for reading in readings}:
            self._sources.setdefault(trace_id, source)
        for message in self._traces.feed(readings, 0, RECEIVED):
            self._take(message)

    def _take(self, message: ReadingBatch | Handover) -> None:
        self._conversations.feed(message, 0, 0)

    @property
    def trace_ids(self) -> set[str]:
        """The traces that were added."""
        return set(self._sources)

    def finish(self) -> Report:
        """Judge everything as a whole."""
        self._collect(self._conversations.close_all("end_of_file"))
        for verdict in self._ledger.judge_dirty():
            self._findings[verdict.owner] = verdict.findings
        records = self._records.values()
        not_evaluable: dict[str, Counter[str]] = defaultdict(Counter)
        for record in records:
            for reasons in record.not_evaluable.values():
                for rule_id, reason in reasons.items():
                    not_evaluable[rule_id][reason] += 1
        found = [finding for findings in self._findings.values() for finding in findings]
        counters = self._conversations.counters + self._ledger.counters
        suppressed = Counter({k[1]: n for k, n in self._ledger.counters.items() if k[0] == "findings_suppressed"})
        for record in records:
            for by_rule in record.suppressed.values():
                suppressed.update(by_rule)
        runs = [run for record in records for run in record.runs]
        return Report(
            first_unix_nano=min((run.start_time_unix_nano for run in runs), default=0),
            last_unix_nano=max((run.end_time_unix_nano for run in runs), default=0),
            runs=sum(len(record.runs) for record in records),
            spans=len(self._spans),
            tool_calls=sum(len(record.call_keys) for record in records),
            findings=sorted(found, key=lambda f: (f.event_time_unix_nano, f.rule_id, f.finding_id)),
            not_evaluable={rule_id: dict(sorted(n.items())) for rule_id, n in sorted(not_evaluable.items())},
            sources=self._sources,
            check_errors=_by_rule(counters, "check_errors"),
            raised={**self._ledger.heard.raised, **self._conversations.heard.raised},
            suppressed=dict(sorted(suppressed.items())),
            undecided=_by_rule(counters, "conditions_undecided"),
        )

    def records(self) -> list[TraceRecord]:
        """Rows of every trace, once finished, in the order of their ids."""
        return [self._records[trace_id] for trace_id in sorted(self._records)]

    def _collect(self, output: Output) -> None:
        for record in output.records:
            if isinstance(record, TraceRecord):
                self._records[record.trace_id] = record
            else:
                self._findings[record.owner] = record.findings
        for batch in output.effects:
            self._ledger.feed(batch, 0)


def _by_rule(counters: Counter[tuple[str, ...]], metric: str) -> dict[str, int]:
    return {key[1]: times for key, times in sorted(counters.items()) if key[0] == metric}


def check_paths(paths: Sequence[Path], laws: Laws, config: Config, together: bool = False) -> Report:
    """Judge files. Each file, and each line of a JSON-lines file, is a world of its own unless
    `together` joins them; a file of log records belongs to the file of traces it is named after. What can
    not be read is in `problems`. Raises UserError for a path that can not be opened."""
    report = Report()
    if together:
        joined = Checker(laws, config)
        for path in paths:
            for world in _worlds(path, report):
                joined.add(world)
        report.merge(joined.finish())
        return report
    for path, log_files in with_logs(paths):
        records = _records(log_files, report)
        for world in _worlds(path, report):
            if world.logs is not None:
                wrong = "holds log records, which are judged with the spans they name"
                report.problems.append(Problem(world.source, wrong, "x.otlp.json beside x.logs.otlp.json", "name both"))
                continue
            checker = Checker(laws, config)
            checker.add(world)
            for trace_id in sorted(checker.trace_ids & records.keys()):
                checker.add_log_records(records[trace_id])
            report.merge(checker.finish())
    return report


def _worlds(path: Path, report: Report) -> Iterator[World]:
    """The worlds of a file; what is wrong with it goes to the report."""
    for world in read_worlds(path, lambda _, problem: report.problems.append(problem)):
        if world.message:
            report.problems.append(Problem(world.source, world.message))
        yield world


def _records(paths: Iterable[Path], report: Report) -> dict[str, list[LogRecord]]:
    """The log records of files by trace."""
    found: dict[str, list[LogRecord]] = defaultdict(list)
    for path in paths:
        for world in _worlds(path, report):
            if world.logs is None:
                report.problems.append(Problem(world.source, "is named as a file of log records and holds none"))
                continue
            for record in otlp.log_records(world.logs, RECEIVED):
                found[record.trace_id].append(record)
    return found
