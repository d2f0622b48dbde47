"""The assemble stage on a real spool with four partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from otelmon.assemble.stage import AssembleStage
from otelmon.bus.protocol import Bus, Delivered, Outgoing
from otelmon.bus.spool import SpoolBus
from otelmon.vocabulary.config import AssembleConfig, Config
from otelmon.vocabulary.messages import DEAD, READINGS, SPANS, Handover, ReadingBatch, decode_detect_input
from tests.bus.places import PARTITIONS, SpoolPlace, fresh_group
from tests.receive.build import a_group, a_span, as_protobuf

START = 1_790_000_000_000_000_000
GROUP = "otelmon-assemble"


class Wall:
    now = START

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def place(tmp_path: Path) -> Iterator[SpoolPlace]:
    opened = SpoolPlace(tmp_path / "spool")
    yield opened
    opened.close()


def assemble(bus: Bus, wall: Callable[[], int]) -> AssembleStage:
    return AssembleStage(bus, Config(assemble=AssembleConfig(settle_seconds=10, idle_seconds=300)), wall)


def trace(number: int) -> bytes:
    return number.to_bytes(16, "big")


def traces_of(bus: Bus, partition: int, count: int) -> list[bytes]:
    """Trace ids that belong in a partition."""
    ids = (trace(n) for n in range(1, 1000))
    return [one for one in ids if bus.partition_of(SPANS, one.hex()) == partition][:count]


def request(*spans: dict[str, Any]) -> bytes:
    return as_protobuf([a_group(*spans)])


def put(bus: Bus, trace_id: bytes, span: int = 1, partition: int | None = None, **fields: Any) -> None:
    """One span, where it belongs or where it is told to lie."""
    body = request(a_span(trace=trace_id, span=span.to_bytes(8, "big"), **fields))
    bus.publish(SPANS, [Outgoing(trace_id.hex(), body, START, partition=partition)])


def read(bus: Bus, topic: str) -> list[Delivered]:
    consumer = bus.consumer([topic], fresh_group(), lambda *_: 0, lambda *_: None)
    found: list[Delivered] = []
    while some := consumer.poll(0.05):
        found.extend(some)
    consumer.close()
    return found


def readings(bus: Bus) -> dict[str, int]:
    """How often each span was handed on, by trace id and span id."""
    found: dict[str, int] = {}
    for message in read(bus, READINGS):
        batch = decode_detect_input(message.value)
        for reading in batch.readings if isinstance(batch, ReadingBatch) else ():
            key = f"{reading.trace_id}:{reading.span_id}"
            found[key] = found.get(key, 0) + 1
    return found


def run(stage: AssembleStage, steps: int = 8) -> None:
    for _ in range(steps):
        stage.step(0.01)


def committed(bus: SpoolBus) -> list[int]:
    return [bus.committed(GROUP, (SPANS, partition)) or 0 for partition in range(PARTITIONS)]


def test_spans_go_to_the_partition_of_their_conversation(place: SpoolPlace) -> None:
    bus, wall = place.open(), Wall()
    for partition in range(PARTITIONS):
        for one in traces_of(bus, partition, 2):
            put(bus, one, attributes={"gen_ai.conversation.id": "conv"})
    stage = assemble(bus, wall)
    run(stage)
    messages = read(bus, READINGS)
    assert {message.partition for message in messages} == {bus.partition_of(READINGS, "conv")}
    assert {message.key for message in messages} == {"conv"}
    assert {message.time_unix_nano for message in messages} == {START}
    assert len(readings(bus)) == 2 * PARTITIONS
    stage.close()


def test_spans_that_lie_elsewhere_are_sent_on_and_judged_where_they_belong(place: SpoolPlace) -> None:
    bus, wall = place.open(), Wall()
    [mine], [stray] = traces_of(bus, 0, 1), traces_of(bus, 1, 1)
    both = request(a_span(trace=mine), a_span(trace=stray, span=b"\x01" * 8), a_span(trace=stray, span=b"\x02" * 8))
    bus.publish(SPANS, [Outgoing("", both, START, partition=0)])
    stage = assemble(bus, wall)
    run(stage)
    assert stage.counters["strays",] == 2
    assert len(readings(bus)) == 3
    assert set(readings(bus).values()) == {1}
    sent_on = [message for message in read(bus, SPANS) if message.partition == 1]
    assert [(message.key, message.time_unix_nano) for message in sent_on] == [(stray.hex(), START)]


def test_what_can_not_be_read_is_kept_and_its_neighbours_read(place: SpoolPlace) -> None:
    bus, wall = place.open(), Wall()
    [mine] = traces_of(bus, 2, 1)
    bus.publish(SPANS, [Outgoing("", b"\xff\xff no request", START, partition=2)])
    put(bus, mine)
    stage = assemble(bus, wall)
    run(stage)
    assert stage.counters["dead_letters", SPANS] == 1
    [dead] = read(bus, DEAD)
    assert dead.value == b"\xff\xff no request"
    headers = dict(dead.headers)
    assert headers["topic"] == SPANS.encode()
    assert headers["reason"]
    assert len(readings(bus)) == 1


def test_nothing_is_committed_that_an_open_trace_needs(place: SpoolPlace) -> None:
    bus, wall = place.open(), Wall()
    first, second = traces_of(bus, 0, 2)
    put(bus, first, parent=b"\x09" * 8)  # without a root it stays open for long
    put(bus, second, span=2)
    stage = assemble(bus, wall)
    run(stage)
    assert committed(bus)[0] == 0
    wall.now += 20 * 10**9
    run(stage)
    wall.now += 2 * 10**9
    run(stage)
    assert stage.stats()["traces_open"] == 1
    assert committed(bus)[0] == 0
    wall.now += 300 * 10**9
    run(stage)
    wall.now += 2 * 10**9
    run(stage)
    assert stage.stats()["traces_open"] == 0
    assert committed(bus)[0] == 2


def test_a_kill_reads_open_traces_again_and_moves_them_when_their_id_comes(place: SpoolPlace) -> None:
    bus, wall = place.open(), Wall()
    [mine] = traces_of(bus, 3, 1)
    put(bus, mine, span=2, parent=(1).to_bytes(8, "big"))
    run(assemble(bus, wall))
    bus = place.open()
    put(bus, mine, span=1, attributes={"gen_ai.conversation.id": "conv"})
    stage = assemble(bus, wall)
    run(stage)
    decoded = [decode_detect_input(message.value) for message in read(bus, READINGS)]
    last = {
        message.conversation_id: {reading.span_id for reading in message.readings}
        for message in decoded
        if isinstance(message, ReadingBatch) and message.epoch
    }
    assert last == {"conv": {f"{1:016x}", f"{2:016x}"}}
    handed = {message.conversation_id for message in decoded if isinstance(message, Handover)}
    assert handed <= {f"trace:{mine.hex()}"}


def test_the_same_span_again_is_counted_and_not_handed_on(place: SpoolPlace) -> None:
    bus, wall = place.open(), Wall()
    [mine] = traces_of(bus, 0, 1)
    for _ in range(3):
        put(bus, mine)
    stage = assemble(bus, wall)
    run(stage)
    assert stage.counters["span_duplicates",] == 2
    assert set(readings(bus).values()) == {1}
