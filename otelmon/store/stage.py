"""The store stage: spans and records from the bus into the database, in batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from otelmon.bus.protocol import Bus, Delivered
from otelmon.store.database import Database
from otelmon.store.writer import Hook, StoreWriter, no_hook
from otelmon.vocabulary.config import ReceiveConfig, StoreConfig
from otelmon.vocabulary.errors import Problem, UnreachableError
from otelmon.vocabulary.messages import RECORDS, SPANS

GROUP = "otelmon-store"
MAX_BATCH_BYTES = 32 * 1024 * 1024
CHORE_EVERY = 60_000_000_000  # nanoseconds of wall time
Chore = Callable[[int], object]


class StoreStage:
    """The one member of the store group. `step` is called in a loop by one thread.

    `wall` gives nanoseconds; `chores` (sweeping incidents, retention) are called with it once a
    minute. `step` raises DiskFullError while the disk is full: nothing is committed to the bus then, so
    nothing is lost.
    """

    name = "store"

    def __init__(
        self,
        bus: Bus,
        database: Database,
        config: StoreConfig,
        wall: Callable[[], int],
        hook: Hook = no_hook,
        chores: Sequence[Chore] = (),
        limits: ReceiveConfig | None = None,
    ) -> None:
        self.counters: Counter[tuple[str, ...]] = Counter()
        self._wall = wall
        self._batch_nanos = int(config.batch_seconds * 1e9)
        self._chores = chores
        self._writer = StoreWriter(database, hook, limits)
        self._waiting: list[Delivered] = []
        self._waiting_bytes = 0
        self._waiting_since = 0
        self._chores_at = wall()
        self._unproven: set[tuple[str, int]] = set()
        self._consumer = bus.consumer([SPANS, RECORDS], GROUP, self._assigned, self._revoked)

    def _assigned(self, topic: str, partition: int) -> int | None:
        self._unproven.add((topic, partition))
        return self._writer.offset(topic, partition)

    def _refuse_replaced_topic(self, messages: Sequence[Delivered]) -> None:
        """The first message of a partition must not lie before what was asked for: then the topic was
        deleted or replaced while the database stayed, and new messages would look like stored ones."""
        for message in messages:
            place = (message.topic, message.partition)
            if place not in self._unproven:
                continue
            self._unproven.discard(place)
            stored = self._writer.offset(*place)
            if stored is not None and message.offset < stored:
                raise UnreachableError(
                    Problem(
                        f"{message.topic}/{message.partition}",
                        f"the bus gives message {message.offset}, but the database holds everything below {stored}: the topic was deleted or replaced",
                        "a bus and a database that belong together",
                        "restore the bus, or move the database file away and start afresh",
                    )
                )

    def step(self, timeout_s: float) -> None:
        """Take what has arrived; write and commit when the batch is full, old, or nothing more came."""
        messages = self._consumer.poll(timeout_s)
        if self._unproven:
            self._refuse_replaced_topic(messages)
        if messages and not self._waiting:
            self._waiting_since = self._wall()
        self._waiting += messages
        self._waiting_bytes += sum(len(message.value) for message in messages)
        age = self._wall() - self._waiting_since
        if self._waiting and (not messages or age >= self._batch_nanos or self._waiting_bytes >= MAX_BATCH_BYTES):
            self._flush()
        if self._wall() - self._chores_at >= CHORE_EVERY:
            self._do_chores()

    def _flush(self) -> None:
        batch, self._waiting, self._waiting_bytes = self._waiting, [], 0
        offsets = self._writer.write(batch)
        touched = {(message.topic, message.partition) for message in batch}
        self._consumer.commit({place: offsets[place] for place in touched})
        self.counters["store_batches",] += 1
        for message in batch:
            self.counters["store_messages", message.topic] += 1

    def _do_chores(self) -> None:
        self._chores_at = self._wall()
        for chore in self._chores:
            chore(self._chores_at)

    def _revoked(self, topic: str, partition: int) -> None:
        # What is in hand of it may be written: another member starts from the stored offsets, and
        # there is one writer for the file anyway.
        self.counters["store_revoked", topic, str(partition)] += 1

    def stats(self) -> dict[str, int]:
        """Gauges: messages not yet polled, and polled but not yet written."""
        return {"lag": sum(self._consumer.lag().values()), "waiting": len(self._waiting)}

    def close(self) -> None:
        """Write what is in hand, then leave the group."""
        try:
            if self._waiting:
                self._flush()
        finally:
            self._consumer.close()
