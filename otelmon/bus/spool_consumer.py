"""One member of one group on the spool."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from otelmon.bus.groups import Group, Part
from otelmon.bus.log import Cursor, logger
from otelmon.bus.protocol import Assigned, Delivered, Revoked
from otelmon.bus.topic import Topic
from otelmon.vocabulary.errors import Problem, UnreachableError

if TYPE_CHECKING:
    from otelmon.bus.spool import SpoolBus

_POLL_BYTES = 32 << 20  # most bytes handed out by one poll, beyond its first message


class SpoolConsumer:
    """`Consumer` on the spool. Used by one thread; `close` may come from another."""

    def __init__(
        self,
        bus: SpoolBus,
        topics: Mapping[str, Topic],
        group: str,
        members: Group,
        assigned: Assigned,
        revoked: Revoked,
    ) -> None:
        self.topics = tuple(topics)
        self.wake = threading.Event()
        self._bus = bus
        self._logs = topics
        self._group = group
        self._members = members
        self._assigned = assigned
        self._revoked = revoked
        self._cursors: dict[Part, Cursor] = {}
        self._generation = -1
        self._turn = 0
        self._closed = False
        for topic in topics.values():
            topic.waiting.add(self.wake)
        members.join(self)

    def poll(self, timeout_s: float, max_messages: int = 1000) -> list[Delivered]:
        deadline = time.monotonic() + timeout_s
        while True:
            self._check_open()
            self.wake.clear()  # before looking, so that a publish after the look wakes us
            if self._generation != self._members.generation:
                self._rebalance()
            found = self._fetch(max_messages)
            left = deadline - time.monotonic()
            if found or left <= 0:
                return found
            self.wake.wait(left)

    def commit(self, offsets: Mapping[tuple[str, int], int]) -> None:
        self._check_open()
        self._bus.commit(self._group, offsets)

    def lag(self) -> dict[tuple[str, int], int]:
        return {
            part: max(self._logs[part[0]].logs[part[1]].end - cursor.offset, 0)
            for part, cursor in tuple(self._cursors.items())
        }

    def close(self) -> None:
        if self._closed:
            return
        try:
            for part in sorted(self._cursors):
                self._revoked(*part)
        finally:
            self._closed = True
            self._cursors.clear()
            for topic in self._logs.values():
                topic.waiting.discard(self.wake)
            self._members.leave(self)
            self._bus.forget(self)
            self.wake.set()

    def _check_open(self) -> None:
        if self._closed:
            raise UnreachableError(Problem(self._group, "this consumer is closed", "an open one", "open another"))

    def _rebalance(self) -> None:
        generation, wanted = self._members.wanted(self)
        for part in sorted(self._cursors.keys() - wanted):
            del self._cursors[part]
            try:
                self._revoked(*part)
            finally:
                self._members.release(part)
        missing = wanted - self._cursors.keys()
        taken = self._members.take(self, missing)
        for index, part in enumerate(taken):
            try:
                self._cursors[part] = self._start(part)
            except BaseException:
                for lost in taken[index:]:
                    self._members.release(lost)
                raise
        if len(taken) == len(missing):
            self._generation = generation  # else another member has yet to let go; its release wakes us

    def _start(self, part: Part) -> Cursor:
        log = self._logs[part[0]].logs[part[1]]
        answer = self._assigned(*part)
        offset = answer if answer is not None else self._bus.committed(self._group, part) or 0
        if offset > log.end:
            self._bus.losses["offset_out_of_range"] += 1
            logger.warning("%s partition %d: offset %d is beyond the end; reading all again", *part, offset)
            offset = log.oldest
        return Cursor(offset)

    def _fetch(self, max_messages: int) -> list[Delivered]:
        parts = list(self._cursors)
        self._turn += 1
        found: list[Delivered] = []
        size = 0
        for index in range(len(parts)):
            part = parts[(index + self._turn) % len(parts)]
            log = self._logs[part[0]].logs[part[1]]
            if log.end == self._cursors[part].offset:
                continue
            some = log.read(self._cursors[part], max_messages - len(found), _POLL_BYTES - size)
            size += sum(len(message.value) for message in some)
            found = found + some if found else some
            if len(found) >= max_messages or size >= _POLL_BYTES:
                break
        return found
