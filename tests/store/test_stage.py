"""The store stage on the real spool: what is published is stored, and survives a new start."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from otelmon.bus import open_bus
from otelmon.bus.protocol import Bus, Outgoing
from otelmon.store.accounts import conservation
from otelmon.store.database import Database, DiskFullError
from otelmon.store.stage import CHORE_EVERY, StoreStage
from otelmon.vocabulary.config import Config, StoreConfig
from otelmon.vocabulary.errors import UnreachableError
from otelmon.vocabulary.messages import RECORDS, SPANS, encode
from tests.store.build import T0, finding, span_request, verdict

TRACE = "a" * 32


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    opened = open_bus(Config(data=str(tmp_path)))
    yield opened
    opened.close()


def publish(bus: Bus, first: int, count: int) -> None:
    requests = [span_request([(TRACE, f"{n + 1:016x}", "x")]) for n in range(first, first + count)]
    bus.publish(SPANS, [Outgoing(TRACE, request, T0) for request in requests])
    records = [verdict(finding(f"f{n}"), owner=f"trace:{n}") for n in range(first, first + count)]
    bus.publish(RECORDS, [Outgoing(one.owner, encode(one), T0) for one in records])


def counts(database: Database) -> tuple[int, int]:
    with database.read() as cursor:
        assert all(total.missing == 0 for total in conservation(cursor))
        spans, findings = cursor.execute(
            "SELECT (SELECT count(*) FROM spans), (SELECT count(*) FROM findings)"
        ).fetchall()[0]
    return spans, findings


def step_often(stage: StoreStage) -> None:
    for _ in range(100):
        stage.step(0.05)


def run_until(stage: StoreStage, database: Database, wanted: tuple[int, int]) -> None:
    for _ in range(200):
        stage.step(0.05)
        if counts(database) == wanted and not stage.stats()["waiting"]:
            return
    assert counts(database) == wanted


def test_what_is_published_is_stored_once_over_restarts(bus: Bus, database: Database) -> None:
    publish(bus, 0, 10)
    stage = StoreStage(bus, database, StoreConfig(batch_seconds=0), time.time_ns)
    run_until(stage, database, (10, 10))
    assert stage.counters["store_messages", SPANS] == 10
    assert stage.stats()["lag"] == 0
    stage.close()
    publish(bus, 5, 10)
    again = StoreStage(bus, database, StoreConfig(batch_seconds=0), time.time_ns)
    run_until(again, database, (15, 15))
    again.close()


def test_a_batch_waits_and_closing_writes_what_is_in_hand(bus: Bus, database: Database) -> None:
    publish(bus, 0, 3)
    now = [T0]
    stage = StoreStage(bus, database, StoreConfig(batch_seconds=5), lambda: now[0])
    while not stage.stats()["waiting"]:
        stage.step(0.05)
    assert counts(database) == (0, 0)
    stage.close()
    assert sum(counts(database)) > 0


def test_a_full_disk_loses_nothing(bus: Bus, database: Database) -> None:
    publish(bus, 0, 3)
    database.min_free_bytes = 2**62
    stage = StoreStage(bus, database, StoreConfig(batch_seconds=0), time.time_ns)
    with pytest.raises(DiskFullError):
        step_often(stage)
    stage.close()
    database.min_free_bytes = 0
    again = StoreStage(bus, database, StoreConfig(batch_seconds=0), time.time_ns)
    run_until(again, database, (3, 3))
    again.close()


def test_chores_are_done_once_a_minute(bus: Bus, database: Database) -> None:
    now, done = [T0], list[int]()
    stage = StoreStage(bus, database, StoreConfig(), lambda: now[0], chores=[done.append])
    stage.step(0.01)
    now[0] += CHORE_EVERY
    stage.step(0.01)
    stage.step(0.01)
    stage.close()
    assert done == [T0 + CHORE_EVERY]


def test_a_replaced_bus_is_said_and_nothing_is_taken_for_stored(tmp_path: Path, database: Database) -> None:
    with closing(open_bus(Config(data=str(tmp_path / "old")))) as old:
        publish(old, 0, 5)
        stage = StoreStage(old, database, StoreConfig(), time.time_ns)
        step_often(stage)
        stage.close()
    with closing(open_bus(Config(data=str(tmp_path / "new")))) as new:
        publish(new, 100, 2)
        stage = StoreStage(new, database, StoreConfig(), time.time_ns)
        with pytest.raises(UnreachableError, match="the topic was deleted or replaced"):
            step_often(stage)
        stage.close()
    assert counts(database) == (5, 5)
