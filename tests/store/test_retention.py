"""Rows leave by age of arrival and by size; nothing that something else needs leaves with them."""

from __future__ import annotations

import random

import pytest

from otelmon.incidents import actions
from otelmon.incidents.grouping import Grouping
from otelmon.store import queries
from otelmon.store.accounts import conservation
from otelmon.store.database import Database
from otelmon.store.retention import AGE_EVERY, DAY, Retention, live_bytes, remove_before
from otelmon.store.writer import StoreWriter
from otelmon.vocabulary.config import IncidentsConfig, StoreConfig
from otelmon.vocabulary.messages import Account, StoreRecord
from tests.store.build import (
    T0,
    call,
    dump,
    finding,
    record,
    record_messages,
    run,
    span_request,
    spans_message,
    user,
    verdict,
)

OLD, NEW = "a" * 32, "b" * 32
LATER = T0 + 10 * DAY


@pytest.fixture
def filled(database: Database) -> Database:
    """An old trace and a new one that share a long result, each with a finding."""
    shared, own = "shared " * 100, "own " * 100
    writer = StoreWriter(database, Grouping(IncidentsConfig()))
    records: list[StoreRecord] = []
    for trace, time in ((OLD, T0), (NEW, LATER)):
        calls = (call("1" * 16, 1, trace, result_text=shared), call("2" * 16, 2, trace, result_text=own + trace))
        records += [
            record(
                *calls, trace_id=trace, epoch=1, messages=(user(trace * 10, 0, trace),),
                runs=(run(trace, last_received_unix_nano=time),), not_evaluable={run(trace).run_id: {"loop": "sampled"}},
                suppressed={run(trace).run_id: {"loop": 1}},
            ),
            verdict(finding(trace, trace_id=trace, at=time), owner=f"trace:{trace}", observed=time),
        ]  # fmt: skip
        writer.write([spans_message(0 if trace == OLD else 1, span_request([(trace, "1" * 16, "x")]), time=time)])
    writer.write(record_messages(records))
    return database


def test_age_takes_the_old_trace_whole_and_leaves_the_new_one_whole(filled: Database) -> None:
    assert Retention(filled, StoreConfig(retention_days=5))(LATER) > 0
    tables = dump(filled)
    for name in (
        "spans",
        "payloads",
        "runs",
        "messages",
        "not_evaluable",
        "suppressed",
        "findings",
        "incidents",
        "incident_findings",
    ):
        assert len(tables[name]) == 1, name
        assert NEW in tables[name][0] or name in ("payloads", "incidents"), name
    assert len(tables["tool_calls"]) == len(tables["effects"]) == 2
    assert len(tables["contents"]) == 3
    with filled.read() as cursor:
        assert cursor.execute("SELECT count(*) FROM contents").fetchone() == (3,)
        detail = queries.run(cursor, run(NEW).run_id)
        assert detail is not None
        assert len(detail.timeline) == 3
        assert [total.missing for total in conservation(cursor)] == [0, 0]


def test_nothing_old_nothing_removed(filled: Database) -> None:
    before = dump(filled)
    assert Retention(filled, StoreConfig(retention_days=30))(LATER) == 0
    assert dump(filled) == before


def test_a_labelled_incident_outlives_its_findings(filled: Database) -> None:
    with filled.read() as cursor:
        old = queries.incidents(cursor).incidents[-1]
    actions.label(filled, old.incident_id, "true_positive", "ann", "", LATER)
    remove_before(filled, LATER)
    with filled.read() as cursor:
        detail = queries.incident(cursor, old.incident_id)
    assert detail is not None
    assert detail.findings == ()
    assert [entry.action for entry in detail.history] == ["opened", "labelled true_positive"]


def test_age_is_looked_at_once_an_hour(filled: Database) -> None:
    retention = Retention(filled, StoreConfig(retention_days=5))
    assert retention(T0 + 4 * DAY) == 0
    before = dump(filled)
    retention(T0 + 4 * DAY + AGE_EVERY - 1)
    assert dump(filled) == before
    assert retention(LATER) > 0


def test_old_reports_become_their_sum(database: Database) -> None:
    def report(number: int, time: int) -> Account:
        return Account(
            id=f"r{number}", stage="receive", received=number, rejected={"too_deep": 1}, observed_unix_nano=time
        )

    StoreWriter(database).write(record_messages([report(1, T0), report(2, T0 + 1), report(4, LATER)]))
    query = "SELECT id, kind, reason, amount FROM accounts WHERE stage = 'receive' ORDER BY ALL"
    for _ in range(2):
        remove_before(database, T0 + DAY)
        with database.read() as cursor:
            assert cursor.execute(query).fetchall() == [
                ("r4", "received", "", 4), ("r4", "rejected", "too_deep", 1),
                ("receive:older", "received", "", 3), ("receive:older", "rejected", "too_deep", 2),
            ]  # fmt: skip


def test_a_database_that_is_too_big_loses_its_oldest_rows_first(database: Database) -> None:
    chance = random.Random(3)
    writer = StoreWriter(database)
    for offset in range(40):
        spans = [
            (f"{chance.getrandbits(127) + 1:032x}", f"{n + 1:016x}", chance.randbytes(200).hex()) for n in range(300)
        ]
        writer.write([spans_message(offset, span_request(spans), time=T0 + offset)])
    limit = live_bytes(database) // 2
    retention = Retention(database, StoreConfig(max_bytes=limit))
    assert retention(T0 + 100) > 0
    assert limit * 0.7 < live_bytes(database) <= limit
    assert retention(T0 + 101) == 0
    with database.read() as cursor:
        oldest, newest = cursor.execute(
            "SELECT min(received_unix_nano), max(received_unix_nano) FROM spans"
        ).fetchall()[0]
        assert cursor.execute("SELECT min(received_unix_nano) FROM payloads").fetchall() == [(oldest,)]
    assert oldest > T0
    assert newest == T0 + 39
