"""The protocol both buses implement. No stage may know which bus it has.

Delivery is at least once, in order within a partition. Every stage writes upserts by deterministic
id, so a message seen twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

Headers = tuple[tuple[str, bytes], ...]


class Outgoing(msgspec.Struct, frozen=True):
    """A message to publish. The partition follows from `key` by murmur2 (Kafka's own default), or
    is `partition` when given. `time_unix_nano` is the recorded receive time carried along
    (stored with millisecond precision)."""

    key: str
    value: bytes
    time_unix_nano: int
    headers: Headers = ()
    partition: int | None = None


class Delivered(msgspec.Struct, frozen=True):
    """A message as read. `key` is "" when the producer sent none."""

    topic: str
    partition: int
    offset: int
    key: str
    value: bytes
    time_unix_nano: int
    headers: Headers = ()


Assigned = Callable[[str, int], int | None]
Revoked = Callable[[str, int], None]


class Consumer(Protocol):
    """One member of one consumer group over one or more topics. Used by one thread."""

    def poll(self, timeout_s: float, max_messages: int = 1000) -> Sequence[Delivered]:
        """Messages in order per partition; empty after `timeout_s` without any.

        Calls `assigned(topic, partition)` before the first message of a new partition (its answer,
        when not None, is the offset to start from: a stage that keeps its own offsets) and
        `revoked(topic, partition)` before the partition goes to another member.
        """
        ...

    def commit(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Make durable that everything below these offsets need not be read again."""
        ...

    def lag(self) -> Mapping[tuple[str, int], int]:
        """Messages not yet polled, per assigned partition."""
        ...

    def close(self) -> None:
        """Leave the group; commits nothing."""
        ...


class Bus(Protocol):
    """Raises otelmon.vocabulary.errors.UnreachableError when the bus can not be used."""

    def publish(self, topic: str, messages: Sequence[Outgoing]) -> None:
        """Durable when it returns (spool: fsynced when the topic asks for it; Kafka: acks=all)."""
        ...

    def consumer(self, topics: Sequence[str], group: str, assigned: Assigned, revoked: Revoked) -> Consumer: ...

    def partitions(self, topic: str) -> int: ...

    def partition_of(self, topic: str, key: str) -> int:
        """The partition `publish` puts this key in."""
        ...

    def latest(self, topic: str, partition: int) -> Mapping[str, bytes]:
        """The newest value of every key of a compacted topic's partition. An empty value deletes a key."""
        ...

    def close(self) -> None: ...
