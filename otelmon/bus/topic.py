"""One topic of the spool: its partitions, one writer at a time, and who waits for new messages."""

from __future__ import annotations

import errno
import threading
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from otelmon.bus.errors import disk_failed
from otelmon.bus.latest import Latest
from otelmon.bus.log import PartitionLog
from otelmon.bus.protocol import Outgoing


class _Request:
    """One publish that waits for its turn, or for a neighbour that writes it along."""

    __slots__ = ("done", "error", "parts")

    def __init__(self, parts: Mapping[int, list[Outgoing]]) -> None:
        self.parts = parts
        self.done = False
        self.error: OSError | None = None


class Topic:
    """Partitions of one topic. Publishers that meet at the lock share one write and one fsync."""

    def __init__(
        self,
        folder: Path,
        name: str,
        partitions: int,
        segment_bytes: int,
        losses: Counter[str],
        *,
        fsync: bool,
        compacted: bool,
    ) -> None:
        self.name = name
        self.folder = folder
        self.compacted = compacted
        self.lock = threading.Lock()
        self.waiting: set[threading.Event] = set()
        self.logs = [
            PartitionLog(folder / str(p), name, p, segment_bytes, losses, compacted=compacted)
            for p in range(partitions)
        ]
        self._fsync = fsync
        self._segment_bytes = segment_bytes
        self._pending: deque[_Request] = deque()
        self._latest: dict[int, Latest] = {}

    def publish(self, parts: Mapping[int, list[Outgoing]]) -> None:
        """Append messages to several partitions: all of them or none. Raises BackpressureError."""
        request = _Request(parts)
        self._pending.append(request)
        with self.lock:
            if not request.done:
                self._write_pending()
        if request.error is not None:
            raise disk_failed(str(self.folder), request.error)
        for event in tuple(self.waiting):
            event.set()

    def latest(self, partition: int) -> dict[str, bytes]:
        """The newest value of every key of a compacted partition."""
        with self.lock:
            return self._index(partition).values()

    def sync(self) -> None:
        """Make all that was published so far survive a power cut. Raises BackpressureError."""
        with self.lock:
            try:
                for log in self.logs:
                    log.sync()
            except OSError as error:
                raise disk_failed(str(self.folder), error) from error

    def close(self) -> None:
        with self.lock:
            for log in self.logs:
                log.close()

    def _write_pending(self) -> None:
        requests = [self._pending.popleft() for _ in range(len(self._pending))]
        parts: dict[int, list[Outgoing]] = {}
        for request in requests:
            for partition, messages in request.parts.items():
                parts.setdefault(partition, []).extend(messages)
        error: OSError | None = OSError(errno.EIO, "a neighbour's message could not be written")
        try:
            error = self._write(parts)
        finally:  # whatever happened, nobody is told that an unwritten message is safe
            for request in requests:
                request.error = error
                request.done = True

    def _write(self, parts: Mapping[int, list[Outgoing]]) -> OSError | None:
        indexes = {p: self._index(p) for p in parts} if self.compacted else {}
        try:
            for partition, messages in parts.items():
                self.logs[partition].stage(messages)
            if self._fsync:
                for partition in parts:
                    self.logs[partition].sync()
        except OSError as error:
            for partition in parts:
                self.logs[partition].rollback()
            return error
        for partition, messages in parts.items():
            places = self.logs[partition].publish()
            if partition in indexes:
                indexes[partition].note(messages, places)
        for index in indexes.values():
            with suppress(OSError):  # a full disk: cleaning is tried again after the next publish
                index.clean(self._fsync)
        return None

    def _index(self, partition: int) -> Latest:
        if partition not in self._latest:
            self._latest[partition] = Latest(self.logs[partition], self._segment_bytes)
        return self._latest[partition]


def by_partition(messages: Sequence[Outgoing], partitions: Sequence[int]) -> dict[int, list[Outgoing]]:
    """The messages grouped, order kept."""
    parts: dict[int, list[Outgoing]] = {}
    for message, partition in zip(messages, partitions, strict=True):
        parts.setdefault(partition, []).append(message)
    return parts
