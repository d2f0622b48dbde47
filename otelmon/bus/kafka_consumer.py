"""One member of one group on Kafka."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import ceil
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka import errors as kafka_errors
from kafka.coordinator.assignors.range import RangePartitionAssignor

from otelmon.bus.kafka_client import not_now, request_bytes, settings, unreachable
from otelmon.bus.murmur2 import key_text
from otelmon.bus.protocol import Assigned, Delivered, Revoked
from otelmon.vocabulary.config import KafkaConfig
from otelmon.vocabulary.errors import Problem, UnreachableError

logger = logging.getLogger("otelmon.bus")

_MS = 1_000_000
_FETCH_BYTES = 32 << 20
_BACKOFF_SECONDS = 0.2
# kafka-python forgets a join that ends between two polls and starts another, so that members which
# poll shortly would rebalance for ever: while joining, a poll waits at least so long.
_JOIN_SECONDS = 1.0
_PATIENCE_MS = 15_000  # a commit waits so long for its coordinator


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    """Runs on the client's own thread while the stage's thread waits in `poll` or `close`."""

    def __init__(self, assigned: Callable[[set[Any]], None], revoked: Callable[[set[Any]], None]) -> None:
        self._assigned = assigned
        self._revoked = revoked

    def on_partitions_assigned(self, assigned: set[Any]) -> None:
        self._assigned(assigned)

    def on_partitions_revoked(self, revoked: set[Any]) -> None:
        self._revoked(revoked)


def raw_consumer(config: KafkaConfig, group: str | None) -> KafkaConsumer:
    """A consumer that commits nothing by itself and starts at the oldest message."""
    beat = max(config.session_timeout_ms // 4, 100)
    return KafkaConsumer(
        **settings(config),
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        allow_auto_create_topics=False,
        partition_assignment_strategy=(RangePartitionAssignor,),
        session_timeout_ms=config.session_timeout_ms,
        heartbeat_interval_ms=beat,
        fetch_max_wait_ms=200,
        fetch_max_bytes=max(_FETCH_BYTES, request_bytes(config)),
        max_partition_fetch_bytes=request_bytes(config),
        metrics_enabled=False,
    )


class KafkaConsumerMember:
    """`Consumer` on Kafka."""

    def __init__(
        self, config: KafkaConfig, topics: Sequence[str], group: str, assigned: Assigned, revoked: Revoked
    ) -> None:
        self._config = config
        self._group = group
        self._assigned = assigned
        self._revoked = revoked
        self._owned: set[tuple[str, int]] = set()
        self._fresh: set[Any] = set()
        self._next: dict[tuple[str, int], int] = {}
        self._lags: dict[tuple[str, int], int] = {}
        self._joining = True
        self._revoking = False
        self._closed = False
        self._consumer = raw_consumer(config, group)
        self._consumer.subscribe(topics=list(topics), listener=_Listener(self._note, self._give_up))

    def poll(self, timeout_s: float, max_messages: int = 1000) -> list[Delivered]:
        """May last a second longer than asked while the group shares out its partitions."""
        self._check_open()
        deadline = time.monotonic() + timeout_s
        while True:
            left = max(deadline - time.monotonic(), 0.0)
            wait = max(left, _JOIN_SECONDS) if self._joining else left
            try:
                batches = self._consumer.poll(timeout_ms=ceil(wait * 1000), max_records=max_messages)
                self._start_fresh(batches)
                batches = {part: records for part, records in batches.items() if tuple(part) in self._owned}
                self._measure(batches)
            except kafka_errors.KafkaError as error:
                self._survive(error)
                time.sleep(min(_BACKOFF_SECONDS, left))
                batches = {}
            if batches or time.monotonic() >= deadline:
                return [_delivered(record) for records in batches.values() for record in records]

    def commit(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Raises BackpressureError when the group's coordinator stays away.

        Inside `revoked` the commit is only sent, ahead of our leaving: the new owner sees it.
        A commit for partitions that went to another member meanwhile is dropped: their messages come again.
        """
        self._check_open()
        wanted = {TopicPartition(*part): OffsetAndMetadata(at, "", -1) for part, at in offsets.items()}
        if self._revoking:
            self._consumer.commit_async(wanted)
            return
        try:
            self._consumer.commit(wanted, timeout_ms=_PATIENCE_MS)
        except (
            kafka_errors.CommitFailedError,
            kafka_errors.RebalanceInProgressError,
            kafka_errors.IllegalGenerationError,
            kafka_errors.UnknownMemberIdError,
        ) as error:
            logger.warning("a commit came too late, its messages will come again: %s", error)
        except kafka_errors.KafkaError as error:
            raise not_now(self._config, f"group {self._group}: not committed", error) from error

    def lag(self) -> dict[tuple[str, int], int]:
        """As of the last poll, so that any thread may ask; 0 until the brokers have said where the end is."""
        return {part: self._lags.get(part, 0) for part in tuple(self._owned)}

    def close(self) -> None:
        if self._closed:
            return
        try:
            self._tell_revoked(sorted(self._owned))
        finally:
            self._closed = True
            self._owned.clear()
            self._consumer.close(autocommit=False, timeout_ms=_PATIENCE_MS)

    def _check_open(self) -> None:
        if self._closed:
            raise UnreachableError(Problem(self._group, "this consumer is closed", "an open one", "open another"))

    def _note(self, parts: set[Any]) -> None:
        self._joining = False
        self._fresh |= parts

    def _give_up(self, parts: set[Any]) -> None:
        self._joining = True
        self._fresh -= parts
        self._revoking = True
        try:
            self._tell_revoked(sorted(self._owned & {tuple(part) for part in parts}))
        finally:
            self._revoking = False

    def _tell_revoked(self, parts: Sequence[tuple[str, int]]) -> None:
        for part in parts:
            self._owned.discard(part)
            self._next.pop(part, None)
            self._lags.pop(part, None)
            self._revoked(*part)

    def _start_fresh(self, batches: dict[Any, list[Any]]) -> None:
        """Ask the stage where to start; what was fetched from elsewhere is thrown away."""
        try:
            for part in sorted(self._fresh):
                start = self._assigned(part.topic, part.partition)
                self._fresh.discard(part)
                self._owned.add(tuple(part))
                if start is not None:
                    self._consumer.seek(part, start)
                    batches.pop(part, None)
        except BaseException:
            for part, records in batches.items():  # the stage never saw them: they must come again
                self._consumer.seek(part, records[0].offset)
            raise

    def _measure(self, batches: dict[Any, list[Any]]) -> None:
        for part, records in batches.items():
            self._next[tuple(part)] = records[-1].offset + 1
        with suppress(kafka_errors.KafkaError):  # what is not known now is known after the next poll
            for owned in self._owned:
                self._measure_one(owned)

    def _measure_one(self, owned: tuple[str, int]) -> None:
        part = TopicPartition(*owned)
        end = self._consumer.highwater(part)
        if end is not None:
            if owned not in self._next:
                self._next[owned] = self._consumer.position(part, timeout_ms=1000) or 0
            self._lags[owned] = max(end - self._next[owned], 0)

    def _survive(self, error: Exception) -> None:
        """What the stage's own callback raised goes to the stage; brokers that are away are waited for."""
        if type(error) is kafka_errors.KafkaError and error.__cause__ is not None:
            raise error.__cause__
        if not getattr(error, "retriable", False):
            raise unreachable(self._config, error) from error
        logger.warning("Kafka is away, trying again: %s", error)


def _delivered(record: Any) -> Delivered:
    return Delivered(
        record.topic,
        record.partition,
        record.offset,
        key_text(record.key) if record.key else "",
        record.value or b"",
        record.timestamp * _MS,
        tuple(record.headers),
    )
