"""Log records on the bus: read with their spans, sent on from a foreign partition, dead when they can not be read."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from otelmon.assemble.stage import AssembleStage, outgoing, shape_of
from otelmon.bus.protocol import Bus, Delivered, Outgoing
from otelmon.receive import otlp
from otelmon.vocabulary.config import Config
from otelmon.vocabulary.messages import DEAD, READINGS, SIGNAL, SPANS, decode_detect_input
from tests.bus.places import SpoolPlace
from tests.store.build import T0, TRACE, span_request
from tests.store.test_log_records import NOISE, SAID, log_request

HEADERS = ((SIGNAL, b"logs"),)
PATIENCE_S = 20.0


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    place = SpoolPlace(tmp_path / "spool")
    yield place.open()
    place.close()


def all_of(bus: Bus, topic: str, wanted: int) -> list[Delivered]:
    """The first messages of a topic, so many."""
    consumer = bus.consumer([topic], f"test-{topic}", lambda *_: 0, lambda *_: None)
    found: list[Delivered] = []
    end = time.monotonic() + PATIENCE_S
    while len(found) < wanted and time.monotonic() < end:
        found += consumer.poll(0.1)
    consumer.close()
    return found


def run(bus: Bus, *counted: tuple[str, ...]) -> AssembleStage:
    """A stage that has counted one of each of these."""
    stage = AssembleStage(bus, Config(), time.time_ns)
    end = time.monotonic() + PATIENCE_S
    while not all(stage.counters[key] for key in counted) and time.monotonic() < end:
        stage.step(0.1)
    stage.close()
    return stage


def test_log_records_become_readings_of_their_trace(bus: Bus) -> None:
    body = log_request([(TRACE, "1" * 16, SAID, "hi"), (TRACE, "1" * 16, NOISE, "x")])
    parsed = otlp.read(body, otlp.PROTOBUF, Config().receive, otlp.LOGS)
    packed = otlp.messages(parsed.request, lambda key: bus.partition_of(SPANS, key), 10_000, None, otlp.LOGS)
    bus.publish(SPANS, [outgoing(message, T0) for message in packed])
    bus.publish(SPANS, [Outgoing(TRACE, span_request([(TRACE, "1" * 16, "a")]), T0)])
    stage = run(bus, ("log_records_read",), ("spans_read", "other"))
    batches = [decode_detect_input(message.value) for message in all_of(bus, READINGS, 2)]
    readings = [reading for batch in batches for reading in getattr(batch, "readings", ())]
    assert sorted((r.span_id, r.supplement, len(r.messages)) for r in readings) == [
        ("1" * 16, False, 0),
        ("1" * 16, True, 1),
    ]
    assert stage.counters["log_records_read",] == 1


def test_log_records_of_another_partition_are_sent_on_as_log_records(bus: Bus) -> None:
    home = bus.partition_of(SPANS, TRACE)
    wrong = (home + 1) % bus.partitions(SPANS)
    assert wrong != home
    body = log_request([(TRACE, "1" * 16, SAID, "hi")])
    bus.publish(SPANS, [Outgoing("", body, T0, HEADERS, wrong)])
    stage = run(bus, ("strays",), ("log_records_read",))
    assert (stage.counters["strays",], stage.counters["log_records_read",]) == (1, 1)
    [_, sent_on] = sorted(all_of(bus, SPANS, 2), key=lambda m: m.partition == home)
    assert (sent_on.partition, sent_on.value, shape_of(sent_on)) == (home, body, otlp.LOGS)


def test_a_request_of_log_records_that_can_not_be_read_is_dead_with_its_signal(bus: Bus) -> None:
    bus.publish(SPANS, [Outgoing(TRACE, b"\xff", T0, HEADERS)])
    run(bus, ("dead_letters", SPANS))
    [dead] = all_of(bus, DEAD, 1)
    assert dict(dead.headers) == {"topic": b"otelmon.spans", "reason": b"invalid_protobuf", SIGNAL: b"logs"}
