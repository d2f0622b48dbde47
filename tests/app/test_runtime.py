"""The monitor put together: started whole or not at all, stopped without loss, its accounts durable."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from otelmon.app.laws import load_laws
from otelmon.app.runtime import DATABASE, Monitor
from otelmon.bus.spool import SpoolBus
from otelmon.store.database import Database
from otelmon.vocabulary.config import AssembleConfig, Config, ReceiveConfig, SpoolConfig, WebConfig
from otelmon.vocabulary.errors import OtelmonError, UnreachableError
from otelmon.web.reads import answer
from tests.receive.build import NOW, a_group, a_span, as_protobuf
from tests.system.monitor import free_port

PATIENCE_S = 40.0


def config(folder: Path, **receive: Any) -> Config:
    return Config(
        data=str(folder),
        receive=ReceiveConfig(grpc="", http=f"127.0.0.1:{free_port()}", **receive),
        web=WebConfig(listen=f"127.0.0.1:{free_port()}"),
        spool=SpoolConfig(min_free_bytes=0),
        assemble=AssembleConfig(settle_seconds=0.5, idle_seconds=1),
    )


def monitor_of(wanted: Config) -> Monitor:
    return Monitor(wanted, load_laws(wanted))


@pytest.fixture
def monitor(tmp_path: Path) -> Iterator[Monitor]:
    made = monitor_of(config(tmp_path / "data", max_span_bytes=2000))
    made.start()
    yield made
    made.stop()


def send(monitor: Monitor, *spans: dict[str, Any]) -> httpx.Response:
    body = as_protobuf([a_group(*spans)])
    headers = {"content-type": "application/x-protobuf"}
    return httpx.post(f"http://{monitor.config.receive.http}/v1/traces", content=body, headers=headers, trust_env=False)


def until(true: Any) -> None:
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end, "did not happen"
        time.sleep(0.05)


def stored(folder: Path) -> tuple[int, list[Any]]:
    """Spans and accounts in a database that nobody has open."""
    with Database.open(folder / DATABASE, Config().store) as database:
        return answer(database, "sizes", {}).rows["spans"], answer(database, "accounts", {})


@pytest.mark.parametrize("door", ["web", "receive"])
def test_a_port_that_is_taken_stops_the_start_and_leaves_nothing_open(tmp_path: Path, door: str) -> None:
    wanted = config(tmp_path / "data")
    address = wanted.web.listen if door == "web" else wanted.receive.http
    host, _, port = address.rpartition(":")
    threads = {thread.name for thread in threading.enumerate()}
    with socket.socket() as taken:
        taken.bind((host, int(port)))
        taken.listen()
        with pytest.raises(UnreachableError, match=address):
            monitor_of(wanted).start()
    until(lambda: not {t.name for t in threading.enumerate() if t.name.startswith("otelmon-")} - threads)
    again = monitor_of(wanted)  # the spool and the database are free again
    again.start()
    assert again.problems() == []
    again.stop()


def test_a_second_monitor_on_the_same_data_is_refused(monitor: Monitor, tmp_path: Path) -> None:
    second = monitor_of(config(tmp_path / "data"))
    with pytest.raises(UnreachableError, match="data"):
        second.start()
    assert send(monitor, a_span()).is_success


def test_what_was_accepted_before_a_stop_is_stored_by_it_or_the_next_start(tmp_path: Path) -> None:
    wanted = config(tmp_path / "data")
    first = monitor_of(wanted)
    first.start()
    for n in range(20):
        assert send(first, a_span(span=n.to_bytes(7, "big") + b"\x01")).is_success
    first.stop()
    with pytest.raises(httpx.TransportError):
        send(first, a_span())
    assert [worker.healthy for worker in first.workers] == [False] * 4
    second = monitor_of(wanted)
    second.start()
    database = second.database
    assert database is not None
    until(lambda: answer(database, "sizes", {}).rows["spans"] == 20)
    second.stop()
    spans, accounts = stored(tmp_path / "data")
    assert spans == 20
    assert [account.missing for account in accounts] == [0] * len(accounts)


def test_refused_spans_are_accounted_for_over_a_restart(tmp_path: Path) -> None:
    wanted = config(tmp_path / "data", max_span_bytes=2000)
    first = monitor_of(wanted)
    first.start()
    response = send(first, a_span(), a_span(span=b"\x02" * 8, attributes={"text": "x" * 5000}))
    assert response.is_success
    database = first.database
    assert database is not None
    until(lambda: refused(database))
    first.stop()
    with Database.open(tmp_path / "data" / DATABASE, Config().store) as again:
        assert refused(again) == [("span_too_large", 1)]
    spans, accounts = stored(tmp_path / "data")
    assert spans == 1
    assert all(account.missing == 0 for account in accounts)


def refused(database: Database) -> list[Any]:
    """What the doors refused, by reason."""
    with database.read() as cursor:
        query = "SELECT reason, sum(amount)::INT FROM accounts WHERE stage = 'receive' AND kind = 'rejected' GROUP BY reason"
        return cursor.execute(query).fetchall()


def test_a_stage_that_fails_is_a_problem_until_it_works_again(monitor: Monitor) -> None:
    assert monitor.problems() == []
    worker = monitor.workers[0]
    worker.error = "the disk is on fire"
    assert monitor.problems() == [f"{worker.name}: the disk is on fire"]
    until(lambda: monitor.problems() == [])
    ready = httpx.get(f"http://{monitor.config.web.listen}/readyz", trust_env=False)
    assert ready.is_success


def test_a_record_beyond_the_largest_message_is_refused_by_name(tmp_path: Path) -> None:
    from otelmon.bus import spool
    from otelmon.bus.protocol import Outgoing
    from otelmon.vocabulary.messages import RECORDS

    bus = SpoolBus(tmp_path / "spool", SpoolConfig(min_free_bytes=0))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(spool, "_LARGEST", 1000)
        with pytest.raises(OtelmonError, match=RECORDS):
            bus.publish(RECORDS, [Outgoing("k", b"x" * 1001, NOW)])
        bus.publish(RECORDS, [Outgoing("k", b"x" * 1000, NOW)])
    bus.close()


def test_stored_spans_are_judged_again(monitor: Monitor) -> None:
    assert send(monitor, a_span()).is_success
    database = monitor.database
    assert database is not None
    until(lambda: answer(database, "sizes", {}).rows["spans"] == 1)
    assert monitor.replay(0, None) == 1
    assert monitor.replay(time.time_ns() + 10**12, None) == 0
    until(lambda: sum(account.duplicate for account in answer(database, "accounts", {})) == 1)
    assert answer(database, "sizes", {}).rows["spans"] == 1
