"""The embedded bus: an append-only, checksummed, durable spool in one folder, for one process."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from otelmon.bus import retention
from otelmon.bus.errors import disk_failed, disk_low, record_too_large
from otelmon.bus.folder import Claim, count_partitions, folder_unusable, topic_name
from otelmon.bus.groups import Group, Offsets
from otelmon.bus.log import logger
from otelmon.bus.murmur2 import partition_for
from otelmon.bus.protocol import Assigned, Outgoing, Revoked
from otelmon.bus.spool_consumer import SpoolConsumer
from otelmon.bus.topic import Topic, by_partition
from otelmon.vocabulary.config import SpoolConfig
from otelmon.vocabulary.messages import COMPACTED, SPANS

GROUPS = "_groups"  # internal: committed offsets
_GROUPS_SEGMENT = 1 << 20
_LARGEST = 256 << 20  # bytes of one message; a frame is read into memory as a whole


class SpoolBus:
    """`Bus` on disk. Safe for many threads; a second process is refused (UnreachableError).

    `losses` counts, by word, what was found damaged or gone: torn_tail, corrupt_record,
    offset_deleted, offset_out_of_range.
    """

    def __init__(self, folder: Path, config: SpoolConfig, partitions: int = 1) -> None:
        self._folder = folder
        self._config = config
        self.losses: Counter[str] = Counter()
        self._topics: dict[str, Topic] = {}
        self._groups: dict[str, Group] = {}
        self._consumers: set[SpoolConsumer] = set()
        self._lock = threading.RLock()
        self._tidying = threading.Lock()
        try:
            self._claim = Claim(folder)
            self._open_all(partitions)
        except OSError as error:
            raise folder_unusable(folder, error) from error

    def publish(self, topic: str, messages: Sequence[Outgoing]) -> None:
        """All of the messages are durable when it returns, or none was taken (BackpressureError)."""
        if not messages:
            return
        # Only intake keeps the reserve free: the stages behind it must go on, or the disk could never drain.
        if topic == SPANS:
            self._check_disk()
        largest = max(len(message.value) for message in messages)
        if largest > _LARGEST:
            raise record_too_large(topic, largest, _LARGEST, "the spool's limit")
        log = self._topic(topic)
        before = self._segments(log)
        log.publish(by_partition(messages, [self._place(message) for message in messages]))
        if self._segments(log) != before:
            self._tidy()

    def consumer(self, topics: Sequence[str], group: str, assigned: Assigned, revoked: Revoked) -> SpoolConsumer:
        """Joins the group. From now on the topics' messages are kept until this group has committed them."""
        with self._lock:
            logs = {name: self._topic(name) for name in topics}
            starts = {
                (name, log.partition): log.oldest
                for name, topic in logs.items()
                for log in topic.logs
                if self._offsets.committed(group, (name, log.partition)) is None
            }
            self._offsets.commit(group, starts)
            members = self._groups.setdefault(group, Group(self._partitions))
            consumer = SpoolConsumer(self, logs, group, members, assigned, revoked)
            self._consumers.add(consumer)
            return consumer

    def partitions(self, topic: str) -> int:  # noqa: ARG002 (all topics of a spool have the same number)
        return self._partitions

    def partition_of(self, topic: str, key: str) -> int:  # noqa: ARG002
        return partition_for(key, self._partitions)

    def latest(self, topic: str, partition: int) -> Mapping[str, bytes]:
        if topic not in COMPACTED:
            raise ValueError(f"{topic} is not a compacted topic")
        return self._topic(topic).latest(partition)

    def close(self) -> None:
        with self._lock, ExitStack() as stack:
            stack.callback(self._claim.release)
            for topic in self._topics.values():
                stack.callback(topic.close)
            for consumer in tuple(self._consumers):
                stack.callback(consumer.close)

    # For the bus's own consumers.

    def committed(self, group: str, part: tuple[str, int]) -> int | None:
        return self._offsets.committed(group, part)

    def commit(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """What was published before a commit is made safe first: a commit must not outlive its results."""
        if self._config.fsync:
            for topic in tuple(self._topics.values()):
                topic.sync()
        self._offsets.commit(group, offsets)
        self._tidy()

    def forget(self, consumer: SpoolConsumer) -> None:
        with self._lock:
            self._consumers.discard(consumer)

    def _open_all(self, partitions: int) -> None:
        try:
            self._partitions = count_partitions(self._folder, partitions)
            self._offsets = Offsets(self._open_topic(GROUPS))
            for path in sorted((self._folder / "topics").iterdir()):
                self._topic(path.name)
        except BaseException:
            self._claim.release()
            raise

    def _place(self, message: Outgoing) -> int:
        if message.partition is None:
            return partition_for(message.key, self._partitions)
        if not 0 <= message.partition < self._partitions:
            raise ValueError(f"partition {message.partition} of {self._partitions}")
        return message.partition

    def _topic(self, name: str) -> Topic:
        """Raises BackpressureError when the disk has no room even for the topic's folder."""
        topic = self._topics.get(name)
        if topic is not None:
            return topic
        try:
            return self._open_topic(name)
        except OSError as error:
            raise disk_failed(str(self._folder), error) from error

    def _open_topic(self, name: str) -> Topic:
        with self._lock:
            if name in self._topics:
                return self._topics[name]
            internal = name == GROUPS
            topic = Topic(
                self._folder / "topics" / topic_name(name),
                name,
                1 if internal else self._partitions,
                min(_GROUPS_SEGMENT, self._config.segment_bytes) if internal else self._config.segment_bytes,
                self.losses,
                fsync=self._config.fsync and (internal or name == SPANS),
                compacted=internal or name in COMPACTED,
            )
            if not internal:
                for log in topic.logs:
                    # After a power cut the log can be shorter than what was committed: its offsets are not reused.
                    log.skip_to(self._offsets.highest((name, log.partition)))
            self._topics[name] = topic
            return topic

    def _check_disk(self) -> None:
        disk = os.statvfs(self._folder)
        free = disk.f_bavail * disk.f_frsize
        if free < self._config.min_free_bytes:
            raise disk_low(str(self._folder), free, self._config.min_free_bytes)

    def _segments(self, topic: Topic) -> int:
        return sum(len(log.segments) for log in topic.logs)

    def _tidy(self) -> None:
        if self._tidying.acquire(blocking=False):
            try:
                retention.enforce(tuple(self._topics.values()), self._offsets, self._config.retain_bytes)
            except OSError as error:  # what was published is safe all the same; the next tidying tries again
                logger.warning("%s: old segments could not be deleted (%s)", self._folder, error.strerror)
            finally:
                self._tidying.release()
