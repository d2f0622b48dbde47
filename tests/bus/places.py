"""The two buses as tests open them: the same shape, another place to keep messages."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol
from uuid import uuid4

from otelmon.bus.kafka import KafkaBus
from otelmon.bus.protocol import Bus, Consumer, Delivered, Outgoing
from otelmon.bus.spool import SpoolBus
from otelmon.vocabulary.config import KafkaConfig, SpoolConfig

PARTITIONS = 4
PATIENCE = 90.0  # seconds after which a test gives up waiting


class Place(Protocol):
    """Somewhere a bus keeps its messages; may be opened again and again."""

    def open(self) -> Bus: ...

    def close(self) -> None: ...


class SpoolPlace:
    def __init__(self, folder: Path, config: SpoolConfig | None = None) -> None:
        self._folder = folder
        self._config = config or SpoolConfig(min_free_bytes=0)
        self._bus: SpoolBus | None = None

    def open(self) -> SpoolBus:
        """Opens again what is there: a spool has one owner, so the earlier bus is closed."""
        self.close()
        self._bus = SpoolBus(self._folder, self._config, PARTITIONS)
        return self._bus

    def close(self) -> None:
        if self._bus is not None:
            self._bus.close()
        self._bus = None


class KafkaPlace:
    def __init__(self, bootstrap: str) -> None:
        self._config = KafkaConfig(bootstrap=bootstrap, partitions=PARTITIONS, session_timeout_ms=3000)
        self._buses: list[KafkaBus] = []

    def open(self) -> KafkaBus:
        self._buses.append(KafkaBus(self._config))
        return self._buses[-1]

    def close(self) -> None:
        for bus in self._buses:
            bus.close()
        self._buses.clear()


class Notes:
    """What a consumer was told about its partitions."""

    def __init__(self, start: Callable[[str, int], int | None] = lambda topic, partition: None) -> None:
        self.owned: set[tuple[str, int]] = set()
        self.told: list[tuple[str, int]] = []
        self.leave: Callable[[str, int], None] = lambda topic, partition: None
        self._start = start

    def assigned(self, topic: str, partition: int) -> int | None:
        self.owned.add((topic, partition))
        self.told.append(("assigned", partition))
        return self._start(topic, partition)

    def revoked(self, topic: str, partition: int) -> None:
        self.leave(topic, partition)
        self.owned.discard((topic, partition))
        self.told.append(("revoked", partition))


def fresh_topic() -> str:
    """A topic no other test knows."""
    return f"test.{uuid4().hex}"


def fresh_group() -> str:
    """A group no other test knows."""
    return f"group.{uuid4().hex}"


def message(key: str, value: bytes = b"v", milliseconds: int = 1_700_000_000_000) -> Outgoing:
    return Outgoing(key, value, milliseconds * 1_000_000)


def subscribe(bus: Bus, topic: str, group: str, notes: Notes | None = None) -> Consumer:
    notes = notes or Notes()
    return bus.consumer([topic], group, notes.assigned, notes.revoked)


def drain(consumer: Consumer, count: int, max_messages: int = 1000) -> list[Delivered]:
    """Poll until so many messages are there."""
    found: list[Delivered] = []
    deadline = time.monotonic() + PATIENCE
    while len(found) < count and time.monotonic() < deadline:
        found.extend(consumer.poll(0.1, max_messages))
    assert len(found) >= count, f"only {len(found)} of {count} messages came"
    return found


class Member:
    """A consumer in a thread of its own, as a stage runs it: polls until it is told to stop."""

    def __init__(self, bus: Bus, topic: str, group: str, notes: Notes | None = None) -> None:
        self.notes = notes or Notes()
        self.found: list[Delivered] = []
        self.consumer = subscribe(bus, topic, group, self.notes)
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._stop = False
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def commit(self) -> None:
        """Commit what it has and still owns."""
        done = threading.Event()

        def job() -> None:
            offsets = next_offsets(self.found)
            self.consumer.commit({part: at for part, at in offsets.items() if part in self.notes.owned})
            done.set()

        self._jobs.put(job)
        assert done.wait(PATIENCE)

    def leave(self) -> None:
        """Stop polling and leave the group."""
        self._stop = True
        self._thread.join()
        if self._failed is not None:
            raise self._failed

    def forgive(self) -> None:
        """The test expected its failure."""
        self._failed = None

    def _run(self) -> None:
        try:
            while not self._stop:
                while not self._jobs.empty():
                    self._jobs.get()()
                self.found.extend(self.consumer.poll(0.1))
        except BaseException as error:  # noqa: BLE001 (shown by `leave`)
            self._failed = error
        finally:
            self.consumer.close()


def until(done: Callable[[], bool], what: str) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + PATIENCE
    while not done() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert done(), f"waited in vain for {what}"


def next_offsets(messages: Sequence[Delivered]) -> dict[tuple[str, int], int]:
    """What to commit after these messages."""
    offsets: dict[tuple[str, int], int] = {}
    for item in messages:
        part = (item.topic, item.partition)
        offsets[part] = max(offsets.get(part, 0), item.offset + 1)
    return offsets
