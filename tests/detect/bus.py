"""What the tests of the stages do with a bus: publish readings, run a stage, read what came out."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from typing import Protocol

from otelmon.bus.protocol import Bus, Delivered, Outgoing
from otelmon.vocabulary.config import AssembleConfig, Config, DetectConfig
from otelmon.vocabulary.finding import Finding
from otelmon.vocabulary.messages import (
    READINGS,
    RECORDS,
    Handover,
    ReadingBatch,
    TraceRecord,
    Verdict,
    decode_store_record,
    encode,
)
from tests.bus.places import fresh_group
from tests.detect.build import IDLE, SETTLE

PATIENCE_S = 30.0


class Wall:
    """A wall clock that is moved by hand, in nanoseconds."""

    def __init__(self) -> None:
        self.now = 1_800_000_000_000_000_000

    def __call__(self) -> int:
        return self.now

    def pass_seconds(self, seconds: float) -> None:
        self.now += round(seconds * 1e9)


class Stage(Protocol):
    def step(self, timeout_s: float) -> None: ...


def config(**limits: float) -> Config:
    """`limits`: fields of DetectConfig."""
    return Config(
        assemble=AssembleConfig(settle_seconds=SETTLE, idle_seconds=IDLE),
        detect=DetectConfig(**limits),  # type: ignore[arg-type]
    )


def publish(bus: Bus, messages: Iterable[ReadingBatch | Handover | bytes], key: str = "") -> None:
    """Put messages on the readings topic with the receive time of their readings."""
    for message in messages:
        if isinstance(message, bytes):
            bus.publish(READINGS, [Outgoing(key, message, 1_700_000_000_000_000_000)])
            continue
        readings = message.readings if isinstance(message, ReadingBatch) else ()
        received = max((r.received_unix_nano for r in readings), default=1_700_000_000_000_000_000)
        bus.publish(READINGS, [Outgoing(message.conversation_id, encode(message), received)])


def everything(bus: Bus, topic: str) -> list[Delivered]:
    """All messages of a topic, as a group of its own reads them."""
    consumer = bus.consumer([topic], fresh_group(), lambda *_: 0, lambda *_: None)
    found: list[Delivered] = []
    while some := consumer.poll(0.05):
        found.extend(some)
    consumer.close()
    return found


Place = tuple[int, int]  # partition, offset


def places(bus: Bus) -> set[Place]:
    """Where records lie now; messages of different partitions have no order."""
    return {(message.partition, message.offset) for message in everything(bus, RECORDS)}


def records(bus: Bus, known: Collection[Place] = ()) -> list[Verdict | TraceRecord]:
    """The records that lie elsewhere than the known ones."""
    messages = [m for m in everything(bus, RECORDS) if (m.partition, m.offset) not in known]
    found = [decode_store_record(message.value) for message in messages]
    return [record for record in found if isinstance(record, Verdict | TraceRecord)]


def final(bus: Bus) -> dict[str, tuple[Finding, ...]]:
    """The last findings of every owner that has any, as the store would hold them."""
    held: dict[str, Verdict] = {}
    for record in records(bus):
        if isinstance(record, Verdict):
            known = held.get(record.owner)
            if known is None or record.epoch >= known.epoch:
                held[record.owner] = record
    return {owner: verdict.findings for owner, verdict in held.items() if verdict.findings}


def run_until(stage: Stage, done: Callable[[], bool]) -> None:
    """Step until it is so; fails when it does not become so."""
    end = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < end, "did not happen"
        stage.step(0.02)
