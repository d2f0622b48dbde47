"""The whole monitor on real traffic: what it finds live is what it finds in the files, whatever happens."""

from __future__ import annotations

import json
import random
import threading
import time
from pathlib import Path

import pytest

from otelmon.app.sender import Sender
from tests.services.kafka import KafkaServer
from tests.system.conftest import Final, Serve, shuffled, span_count
from tests.system.monitor import ServedMonitor

pytestmark = [pytest.mark.data, pytest.mark.timeout(400)]


def send(monitor: ServedMonitor, bodies: list[bytes]) -> None:
    sender = Sender(monitor.endpoint)
    for body in bodies:
        assert sender.send(body) == 0
    sender.close()


def assert_conserved(monitor: ServedMonitor, stored: int, sent: int) -> None:
    """Received = stored + again, nothing missing, and the doctor agrees."""
    accounts = [a for a in monitor.read("accounts") if a["topic"] == "otelmon.spans"]
    assert sum(a["received"] for a in accounts) == sent
    assert sum(a["stored"] for a in accounts) == stored
    assert sum(a["duplicate"] for a in accounts) == sent - stored
    assert sum(a["dead_lettered"] + a["filtered"] + a["conflict"] for a in accounts) == 0
    answer = monitor.otelmon("doctor")
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_the_spool_finds_live_what_check_finds_and_lists_it_meanwhile(
    serve: Serve, bodies: list[bytes], expected: Final
) -> None:
    monitor = serve()
    listed: list[int] = []

    def ask() -> None:
        while not listed or listed[-1] == 0:
            answer = monitor.otelmon("incidents", "list", "--json")
            assert answer.returncode == 0, answer.stderr
            listed.append(len(json.loads(answer.stdout)["incidents"]))

    asking = threading.Thread(target=ask)
    asking.start()
    send(monitor, bodies)
    monitor.wait_until_through(span_count(bodies))
    asking.join(30)
    assert listed
    assert listed[-1] > 0
    assert monitor.findings() == expected
    assert_conserved(monitor, span_count(bodies), span_count(bodies))
    assert monitor.stop() == 0


@pytest.mark.kafka
def test_kafka_finds_live_what_check_finds(
    serve: Serve, bodies: list[bytes], expected: Final, kafka_server: KafkaServer
) -> None:
    monitor = serve(bus="kafka", **{"kafka.bootstrap": kafka_server.bootstrap, "kafka.partitions": 4})
    send(monitor, bodies)
    monitor.wait_until_through(span_count(bodies))
    assert monitor.findings() == expected
    assert_conserved(monitor, span_count(bodies), span_count(bodies))


def test_twice_and_in_another_order_changes_nothing(serve: Serve, bodies: list[bytes], expected: Final) -> None:
    monitor = serve()
    total = span_count(bodies)
    send(monitor, shuffled(bodies, 7))
    monitor.wait_until_through(total)
    send(monitor, bodies)
    monitor.wait_until_through(total)
    assert monitor.findings() == expected
    assert_conserved(monitor, total, 2 * total)


def test_ten_kills_change_nothing(serve: Serve, bodies: list[bytes], expected: Final) -> None:
    """kill -9 at ten random moments while spans come in. Senders repeat what was not acknowledged."""
    monitor = serve()
    chance = random.Random(11)
    pieces = shuffled(bodies, 3)
    sending = threading.Thread(target=send, args=(monitor, pieces))
    sending.start()
    for _ in range(10):
        time.sleep(chance.uniform(0.1, 1.2))
        monitor.kill()
        monitor.start()
    sending.join(200)
    assert not sending.is_alive()
    monitor.wait_until_through(span_count(bodies))
    assert monitor.findings() == expected
    accounts = [a for a in monitor.read("accounts") if a["topic"] == "otelmon.spans"]
    assert sum(a["stored"] for a in accounts) == span_count(bodies)


@pytest.mark.kafka
def test_stages_in_processes_of_their_own_find_the_same(
    tmp_path: Path, bodies: list[bytes], expected: Final, kafka_server: KafkaServer
) -> None:
    """receive, assemble, two detectors and the store over Kafka; one detector is killed and comes back."""
    settings: dict[str, object] = {
        "bus": "kafka",
        "kafka.bootstrap": kafka_server.bootstrap,
        "kafka.session_timeout_ms": 6000,
    }
    parts = []
    for number, stage in enumerate(("store", "detect", "detect", "assemble", "receive")):
        folder = tmp_path / f"{number}-{stage}"
        folder.mkdir()
        parts.append(ServedMonitor(folder, stages=stage, **settings))
    store, killed, _, assemble, receive = parts
    try:
        for part in parts:
            part.start()
        send(receive, bodies[: len(bodies) // 2])
        killed.kill()
        send(receive, bodies[len(bodies) // 2 :])
        killed.start()
        total, end = span_count(bodies), time.monotonic() + 150
        while store.findings() != expected and time.monotonic() < end:
            time.sleep(1)
        assert store.findings() == expected
        assert sum(a["stored"] for a in store.read("accounts") if a["topic"] == "otelmon.spans") == total
        assert assemble.metrics()["otelmon_strays_total"] == 0
    finally:
        for part in parts:
            part.stop()
