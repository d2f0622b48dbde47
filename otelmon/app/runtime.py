"""The monitor: bus, stages, doors and pages, started and stopped in the order that loses nothing."""

from __future__ import annotations

import logging
import shutil
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import duckdb
from duckdb import DuckDBPyConnection

from otelmon import __version__
from otelmon.app.in_force import in_force
from otelmon.app.plugins import Plugin
from otelmon.app.reload import LawSource, Loaded, Reloader
from otelmon.app.worker import Stage, Worker
from otelmon.assemble.stage import AssembleStage, outgoing
from otelmon.bus.open import open_bus
from otelmon.bus.protocol import Bus, Outgoing
from otelmon.detect.engine import Laws
from otelmon.detect.ledger_stage import LedgerStage
from otelmon.detect.stage import DetectStage
from otelmon.incidents.actions import resolve_quiet
from otelmon.incidents.grouping import Grouping
from otelmon.metrics.exporter import Exporter, Histogram, Readings
from otelmon.receive.doors import Doors
from otelmon.receive.pack import Packed
from otelmon.receive.receiver import Intake, Receiver
from otelmon.receive.tally import REQUEST_REASONS, SPAN_REASONS
from otelmon.store.database import Database
from otelmon.store.log_records import headers_of
from otelmon.store.queries import incident_counts, payloads
from otelmon.store.retention import Retention
from otelmon.store.stage import StoreStage
from otelmon.store.verdicts import Change
from otelmon.vocabulary.config import Config
from otelmon.vocabulary.finding import FAMILIES, SEVERITIES
from otelmon.vocabulary.messages import LEDGER, MEMORY, READINGS, RECORDS, SPANS, Account, encode
from otelmon.web.in_force import InForce
from otelmon.web.server import WebDoor
from otelmon.web.site import Site

log = logging.getLogger("otelmon")
STAGES = ("receive", "assemble", "detect", "store")
DATABASE = "otelmon.duckdb"
PER_STAGE = {"lag": "lag_messages", "waiting": "waiting_messages"}  # what every stage has one of
ACTIVE = ("open", "acknowledged")


class Monitor:
    """Stages of one process. `start` raises what is wrong from the start; `stop` finishes requests,
    then each stage in the order of the flow. `wall` gives nanoseconds since the epoch."""

    def __init__(
        self, config: Config, laws: Laws, stages: Sequence[str] = STAGES, wall: Callable[[], int] = time.time_ns
    ) -> None:
        self.config = config
        self.laws = laws
        self.stages = tuple(stages)
        self.database: Database | None = None
        self.doors: Doors | None = None
        self.web: WebDoor | None = None
        self.workers: list[Worker] = []
        self.plugins: tuple[Plugin, ...] = ()
        self.reloader: Reloader | None = None
        self._wall = wall
        self._counters: Counter[tuple[str, ...]] = Counter()
        self._delays = Histogram()
        self._bus: Bus | None = None
        self._stack = ExitStack()
        self._started = False
        self._site: Site | None = None
        self._on_trial = silent_rules(laws)
        self.exporter = Exporter(self._readings, zero_series(self.laws))

    # -- laws ------------------------------------------------------------------------------------
    def watch(self, source: LawSource, first: Loaded) -> None:
        """Judge by what the source says whenever it changes, from the start on. `first` is what it says now."""
        self.plugins = first.plugins
        self.reloader = Reloader(source, first, self._reloaded, self._count_reload, self._wall)

    def _reloaded(self, loaded: Loaded) -> None:
        self.plugins = loaded.plugins
        self.change_laws(loaded.laws)

    def _count_reload(self, result: str) -> None:
        self._counters["rules_reload", result] += 1

    def change_laws(self, laws: Laws) -> None:
        """Judge by other laws. Each stage takes the whole set between two of its steps. What a rule on
        trial found stays silent when the rule itself is gone."""
        self._on_trial = silent_rules(laws) | (self._on_trial - laws.rules.rules.keys())
        self.laws = laws
        self.exporter.expect(zero_series(laws))
        if self._site is not None:
            self._site.laws = laws
        for worker in self.workers:
            worker.change_laws(laws)

    def in_force(self) -> InForce:
        """What is judged by now, and how that stands."""
        counters: Counter[tuple[str, ...]] = Counter()
        for worker in self.workers:
            counters.update(worker.counters())
        heard = [worker.heard() for worker in self.workers]
        last = self.reloader.last if self.reloader else None
        return in_force(self.laws, self.plugins, last, self._wall(), counters, heard, "detect" in self.stages)

    # -- life ------------------------------------------------------------------------------------
    def start(self) -> None:
        """Open everything. On failure what was opened is closed again."""
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def _start(self) -> None:
        Path(self.config.data).mkdir(parents=True, exist_ok=True)
        self._bus = bus = open_bus(self.config)
        self._stack.callback(bus.close)
        if "store" in self.stages:
            self.database = Database.open(Path(self.config.data) / DATABASE, self.config.store)
            self._stack.callback(self.database.close)
        if self.config.web.listen:
            self._site = Site(
                self.config, self.laws, self.database, self.exporter.text, self.problems, self._wall, self.replay,
                self.in_force,
            )  # fmt: skip
            self.web = WebDoor(self._site)
            self._stack.callback(self.web.close)
        for name, make in self._makers(bus):
            worker = Worker(name, make)
            worker.start()
            self.workers.append(worker)
        if "receive" in self.stages:
            receiver = Receiver(self.config.receive, self._publish, lambda key: bus.partition_of(SPANS, key), self._wall, self._account)  # fmt: skip
            self.doors = Doors(receiver)
        if self.reloader is not None:
            self.reloader.start()
        self._started = True

    def _makers(self, bus: Bus) -> Iterable[tuple[str, Callable[[], Stage]]]:
        if self.database is not None:
            yield "store", lambda: self._make_store(bus)
        if "detect" in self.stages:
            yield "ledger", lambda: LedgerStage(bus, self.laws, self.config, self._wall)
            yield "detect", lambda: DetectStage(bus, self.laws, self.config, self._wall)
        if "assemble" in self.stages:
            yield "assemble", lambda: AssembleStage(bus, self.config, self._wall)

    def _make_store(self, bus: Bus) -> Stage:
        if self.database is None:
            raise RuntimeError("the store stage runs without a database")

        def hook(connection: DuckDBPyConnection, changes: Sequence[Change]) -> None:
            Grouping(self.config.incidents, self._on_trial)(connection, changes)
            self._count(changes)

        database = self.database
        chores = (
            Retention(database, self.config.store),
            lambda now: resolve_quiet(database, self.config.incidents, now),
        )
        return StoreStage(bus, database, self.config.store, self._wall, hook, chores, self.config.receive)

    def stop(self) -> None:
        """Doors first, then the stages in the order of the flow, so that what came in goes as far as
        it can; what does not is durable and is taken up at the next start."""
        if self.reloader is not None:
            self.reloader.stop()
        if self.doors is not None:
            self.doors.close()
        for worker in reversed(self.workers):
            worker.stop()
        self._stack.close()

    # -- receive ---------------------------------------------------------------------------------
    def _publish(self, messages: Sequence[Packed], received_unix_nano: int) -> None:
        if self._bus is None:
            raise RuntimeError("published before the bus was opened")
        self._bus.publish(SPANS, [outgoing(message, received_unix_nano) for message in messages])

    def replay(self, since: int, until: int | None) -> int:
        """Send stored messages received in [since, until) through the stages again, with the receive
        time they had; how many. They are recognised as known; what is judged is judged by the rules
        in force now."""
        if self._bus is None or self.database is None:
            return 0
        number = 0
        for payload in payloads(self.database, since, until):
            headers = headers_of(payload.encoding)
            message = Outgoing("", payload.value, payload.received_unix_nano, headers, payload.partition)
            self._bus.publish(SPANS, [message])
            number += 1
        return number

    def _account(self, intake: Intake) -> None:
        """Count a request. What was refused is kept durably too: counters are gone after a kill."""
        outcome = intake.refused or "accepted"
        self._counters["requests", intake.signal, outcome] += 1
        self._counters["received_bytes",] += intake.body_bytes
        received = {"traces": "spans_received", "logs": "log_records_received"}.get(intake.signal)
        if received:
            self._counters[received,] += intake.received
        for reason, number in intake.filtered.items():
            self._counters["log_records_filtered", reason] += number
        for reason, number in intake.rejected.items():
            self._counters["spans_rejected", reason] += number
        if intake.rejected and self._bus is not None:
            account = Account(
                id=f"receive:{uuid.uuid4().hex}",
                stage="receive",
                received=intake.received,
                rejected=intake.rejected,
                observed_unix_nano=intake.observed_unix_nano,
            )
            self._bus.publish(RECORDS, [Outgoing(account.id, encode(account), intake.observed_unix_nano)])

    # -- health and metrics ----------------------------------------------------------------------
    def problems(self) -> list[str]:
        """What is wrong now, a line each; empty when all is well."""
        # The pages answer first: who waits until all is ready must not meet doors that are still closed.
        found = [] if self._started else ["otelmon: starting"]
        found += [f"{w.name}: {w.error or 'stopped'}" for w in self.workers if not w.healthy]
        if self.database is not None and self.database.full:
            found.append(f"store: the disk of {self.config.data} is nearly full; intake stops until there is room")
        return found

    def _count(self, changes: Sequence[Change]) -> None:
        on_trial = self._on_trial
        for change in changes:
            finding = change.finding
            if change.kind != "updated":
                status = (
                    "retracted" if change.kind == "retracted" else "test" if finding.rule_id in on_trial else "open"
                )
                self._counters["findings", finding.rule_id, finding.family, finding.severity, status] += 1
            if change.kind == "new":
                self._delays.observe(max(0, self._wall() - change.observed_unix_nano) / 1e9)

    def _readings(self) -> Readings:
        counters: Counter[tuple[str, ...]] = self._counters.copy()
        gauges: dict[tuple[str, ...], float] = {("build_info", __version__, self.laws.rules.version): 1}
        gauges["rules_last_reload_success",] = float(self.reloader is None or self.reloader.last.ok)
        for worker in self.workers:
            counters.update(worker.counters())
            gauges["up_stage", worker.name] = float(worker.healthy)
            for name, value in worker.stats().items():
                gauges[(PER_STAGE[name], worker.name) if name in PER_STAGE else (name,)] = value
        if self.database is not None:
            gauges.update(self._store_gauges(self.database))
        return Readings(counters, gauges, self._delays)

    def _store_gauges(self, database: Database) -> dict[tuple[str, ...], float]:
        folder = Path(self.config.data)
        gauges: dict[tuple[str, ...], float] = {("disk_free_bytes",): shutil.disk_usage(folder).free}
        file = folder / DATABASE
        gauges["store_bytes",] = file.stat().st_size if file.exists() else 0
        # A store that can not be read must not hide every other metric.
        with suppress(duckdb.Error), database.read() as cursor:
            for count in incident_counts(cursor):
                if count.state in ACTIVE:
                    key = ("incidents_open", count.family, count.severity)
                    gauges[key] = gauges.get(key, 0) + count.amount
        return gauges


def silent_rules(laws: Laws) -> frozenset[str]:
    """Rules on trial: their findings are kept, and nobody is told."""
    return frozenset(rule.id for rule in laws.rules.rules.values() if rule.status in ("test", "draft"))


def zero_series(laws: Laws) -> dict[str, list[tuple[str, ...]]]:
    """Label sets that exist from the start: an alert on an increase must see the first one."""
    rules, on_trial = sorted(laws.rules.rules), silent_rules(laws)
    return {
        "findings": [
            (rule.id, rule.family, severity, "test" if rule.id in on_trial else status)
            for rule in laws.rules.rules.values()
            for severity in SEVERITIES
            for status in ("open", "retracted")
        ],
        "check_errors": [(rule,) for rule in rules],
        "conditions_undecided": [(rule,) for rule in rules],
        "findings_suppressed": [(rule,) for rule in rules],
        "incidents_open": [(family, severity) for family in FAMILIES for severity in SEVERITIES],
        "runs_closed": [(reason,) for reason in ("root", "idle", "evicted")],
        "traces_closed": [(reason,) for reason in ("root", "idle", "span_limit", "evicted")],
        "stage_restarts": [(stage,) for stage in ("assemble", "detect", "ledger", "store")],
        "rules_reload": [("success",), ("failure",)],
        "requests": [("traces", outcome) for outcome in ("accepted", *REQUEST_REASONS)],
        "log_records_filtered": [("no_trace_context",)],
        "spans_rejected": [(reason,) for reason in (*SPAN_REASONS, "unsupported_signal")],
        "dead_letters": [(topic,) for topic in (SPANS, READINGS, LEDGER, MEMORY)],
    }
