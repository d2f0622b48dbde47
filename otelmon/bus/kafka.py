"""The bus on Kafka: many processes, partitions shared out by the brokers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, TypeVar

from kafka import KafkaProducer, TopicPartition
from kafka import errors as kafka_errors
from kafka.admin import KafkaAdminClient

from otelmon.bus import kafka_topics
from otelmon.bus.errors import record_too_large
from otelmon.bus.kafka_client import START_SECONDS, not_now, request_bytes, settings, unreachable
from otelmon.bus.kafka_consumer import KafkaConsumerMember, raw_consumer
from otelmon.bus.murmur2 import key_bytes, key_text, partition_for
from otelmon.bus.protocol import Assigned, Outgoing, Revoked
from otelmon.vocabulary.config import KafkaConfig
from otelmon.vocabulary.messages import COMPACTED, TOPICS

_MS = 1_000_000
_LINGER_MS = 2
_BATCH_BYTES = 900_000  # below what a broker takes by default
_DELIVERY_SECONDS = 30.0  # how long a publish waits for its acknowledgement
_READ_SECONDS = 60.0  # how long `latest` waits without any progress

T = TypeVar("T")


class KafkaBus:
    """`Bus` on Kafka. Safe for many threads. Topics are created when first used.

    Brokers that do not answer within `start_seconds` are an UnreachableError; once started, publishing
    raises BackpressureError and polling waits while they are away.
    """

    def __init__(self, config: KafkaConfig, start_seconds: float = START_SECONDS) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self._counts: dict[str, int] = {}
        self._consumers: list[KafkaConsumerMember] = []
        self._reader: Any = None
        self._admin: KafkaAdminClient = self._reach(lambda: KafkaAdminClient(**settings(config, start_seconds)))
        self._producer = self._reach(self._new_producer)

    def init_topics(self, topics: Sequence[str] = TOPICS) -> list[kafka_topics.TopicState]:
        """Create what is missing; say what differs from the configuration. Changes nothing that exists."""
        with self._lock:
            return self._reach(lambda: kafka_topics.ensure(self._admin, topics, self._config))

    def publish(self, topic: str, messages: Sequence[Outgoing]) -> None:
        """Returns when all in-sync replicas have every message; raises BackpressureError when that can not
        be said within half a minute (some may have arrived: publish all of them again)."""
        if not messages:
            return
        count = self.partitions(topic)
        self._check_sizes(topic, messages)
        producer = self._producer
        compacted = topic in COMPACTED
        try:
            sent = [
                producer.send(
                    topic,
                    None if compacted and not message.value else message.value,
                    key_bytes(message.key),
                    list(message.headers),
                    partition_for(message.key, count) if message.partition is None else message.partition,
                    message.time_unix_nano // _MS,
                )
                for message in messages
            ]
            for future in sent:
                future.get(_DELIVERY_SECONDS + 5)
        except kafka_errors.KafkaError as error:
            self._renew(producer)
            if isinstance(error, kafka_errors.MessageSizeTooLargeError):
                self._blame(topic, messages)
            raise not_now(self._config, f"{topic}: not acknowledged", error) from error

    def consumer(self, topics: Sequence[str], group: str, assigned: Assigned, revoked: Revoked) -> KafkaConsumerMember:
        for topic in topics:
            self.partitions(topic)
        consumer = self._reach(lambda: KafkaConsumerMember(self._config, topics, group, assigned, revoked))
        with self._lock:
            self._consumers.append(consumer)
        return consumer

    def partitions(self, topic: str) -> int:
        count = self._counts.get(topic)
        if count is None:
            self.init_topics((topic,))
            count = self._counts[topic] = len(self._reach(lambda: self._producer.partitions_for(topic)))
        return count

    def partition_of(self, topic: str, key: str) -> int:
        return partition_for(key, self.partitions(topic))

    def latest(self, topic: str, partition: int) -> Mapping[str, bytes]:
        if topic not in COMPACTED:
            raise ValueError(f"{topic} is not a compacted topic")
        self.partitions(topic)
        with self._reading:
            return self._reach(lambda: self._read_all(TopicPartition(topic, partition)))

    def close(self) -> None:
        with ExitStack() as stack:
            stack.callback(self._admin.close)
            if self._reader is not None:
                stack.callback(self._reader.close)
            stack.callback(self._producer.close, timeout=_DELIVERY_SECONDS)
            for consumer in self._consumers:
                stack.callback(consumer.close)

    def _read_all(self, part: TopicPartition) -> dict[str, bytes]:
        if self._reader is None:
            self._reader = raw_consumer(self._config, None)
        self._reader.assign([part])
        self._reader.seek_to_beginning(part)
        end = self._reader.end_offsets([part])[part]
        found: dict[str, bytes] = {}
        deadline = time.monotonic() + _READ_SECONDS
        while self._reader.position(part) < end:
            for record in self._reader.poll(timeout_ms=500).get(part, ()):
                deadline = time.monotonic() + _READ_SECONDS
                key = key_text(record.key or b"")
                if record.value:
                    found[key] = record.value
                else:
                    found.pop(key, None)
            if time.monotonic() > deadline:
                raise kafka_errors.KafkaTimeoutError(f"{part.topic} partition {part.partition} gave nothing")
        return found

    def _new_producer(self) -> KafkaProducer:
        return KafkaProducer(
            **settings(self._config),
            acks="all",
            enable_idempotence=True,
            compression_type="lz4",
            linger_ms=_LINGER_MS,
            batch_size=min(_BATCH_BYTES, self._config.max_message_bytes),
            max_request_size=request_bytes(self._config),
            delivery_timeout_ms=int(_DELIVERY_SECONDS * 1000),
            request_timeout_ms=int(_DELIVERY_SECONDS * 500),
            max_block_ms=int(START_SECONDS * 1000),
            allow_auto_create_topics=False,
            metrics_enabled=False,
        )

    def _renew(self, failed: KafkaProducer) -> None:
        """After a failed delivery the producer's sequence is in doubt: go on with another one.

        While the brokers are away there is none to be had; the next publish tries again.
        """
        with self._lock:
            if self._producer is failed:
                with suppress(kafka_errors.KafkaError):
                    self._producer = self._new_producer()
            renewed = self._producer is not failed
        if renewed:
            failed.close(timeout=0)

    def _blame(self, topic: str, messages: Sequence[Outgoing]) -> None:
        """The brokers refuse a batch as a whole: only who has a message beyond the topic's limit is told so,
        a neighbour in the same batch may try again."""
        with self._lock:
            limit = self._reach(lambda: kafka_topics.largest_message(self._admin, topic))
        largest = max(len(message.value) for message in messages)
        if largest > limit:
            raise record_too_large(topic, largest, limit, "max.message.bytes of the topic")

    def _check_sizes(self, topic: str, messages: Sequence[Outgoing]) -> None:
        largest = max(len(message.value) for message in messages)
        if largest > self._config.max_message_bytes:
            raise record_too_large(topic, largest, self._config.max_message_bytes, "kafka.max_message_bytes")

    def _reach(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except kafka_errors.KafkaError as error:
            raise unreachable(self._config, error) from error
