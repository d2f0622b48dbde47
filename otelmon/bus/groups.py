"""Consumer groups of the spool: who reads which partition, and how far each group has come."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from typing import Protocol

from otelmon.bus.protocol import Outgoing
from otelmon.bus.topic import Topic

Part = tuple[str, int]


class Member(Protocol):
    """What a group needs from a consumer."""

    topics: tuple[str, ...]
    wake: threading.Event


class Offsets:
    """Committed offsets per group, kept in an internal compacted topic of the spool itself."""

    def __init__(self, topic: Topic) -> None:
        self._topic = topic
        self._lock = threading.Lock()
        self._committed: dict[tuple[str, str, int], int] = {}
        for key, value in topic.latest(0).items():
            group, name, partition = json.loads(key)
            self._committed[group, name, partition] = int(value)

    def committed(self, group: str, part: Part) -> int | None:
        """The first offset that the group still has to read; None when it never read this topic."""
        return self._committed.get((group, *part))

    def commit(self, group: str, offsets: Mapping[Part, int]) -> None:
        """Durable when it returns. Raises BackpressureError."""
        with self._lock:
            changed = {part: at for part, at in offsets.items() if self._committed.get((group, *part)) != at}
            if changed:
                entries = [Outgoing(json.dumps([group, *part]), b"%d" % at, 0) for part, at in changed.items()]
                self._topic.publish({0: entries})
                self._committed.update({(group, *part): at for part, at in changed.items()})

    def consumed(self, part: Part) -> int | None:
        """The offset below which every known group has read; None when no group reads this topic."""
        known = [at for (_, *key), at in tuple(self._committed.items()) if tuple(key) == part]
        return min(known, default=None)

    def highest(self, part: Part) -> int:
        """The highest offset any group committed."""
        return max((at for (_, *key), at in self._committed.items() if tuple(key) == part), default=0)


class Group:
    """Members of one group in this process share the partitions of their topics.

    A partition has at most one owner: a new owner waits until the old one has let go in its own poll.
    """

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions
        self._lock = threading.Lock()
        self._members: list[Member] = []
        self._owners: dict[Part, Member] = {}
        self.generation = 0

    def join(self, member: Member) -> None:
        with self._lock:
            self._members.append(member)
            self._changed()

    def leave(self, member: Member) -> None:
        """Gives up everything the member still owns."""
        with self._lock:
            self._members.remove(member)
            self._owners = {part: owner for part, owner in self._owners.items() if owner is not member}
            self._changed()

    def wanted(self, member: Member) -> tuple[int, set[Part]]:
        """The generation, and the partitions this member should read in it."""
        with self._lock:
            parts: set[Part] = set()
            for topic in member.topics:
                readers = [other for other in self._members if topic in other.topics]
                mine = readers.index(member)
                parts.update((topic, p) for p in range(self._partitions) if p % len(readers) == mine)
            return self.generation, parts

    def take(self, member: Member, parts: Iterable[Part]) -> list[Part]:
        """Those of the partitions that are free; they are the member's now."""
        with self._lock:
            free = [part for part in sorted(parts) if part not in self._owners]
            self._owners.update(dict.fromkeys(free, member))
            return free

    def release(self, part: Part) -> None:
        """A member lets go of a partition; those who wait for it are woken."""
        with self._lock:
            self._owners.pop(part, None)
            for member in self._members:
                member.wake.set()

    def _changed(self) -> None:
        self.generation += 1
        for member in self._members:
            member.wake.set()
