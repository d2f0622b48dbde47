"""The topics otelmon needs on Kafka: made when missing, compared when there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from kafka import errors as kafka_errors
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from otelmon.vocabulary.config import KafkaConfig
from otelmon.vocabulary.messages import COMPACTED

_RETENTION_BYTES = 4 << 30  # per partition


class TopicState(msgspec.Struct, frozen=True):
    """What `otelmon kafka init` says of one topic. `differs` is empty when all is as wanted."""

    topic: str
    created: bool
    differs: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.created:
            return f"{self.topic}: created"
        return f"{self.topic}: {'; '.join(self.differs) or 'as wanted'}"


def wanted_configs(topic: str, config: KafkaConfig) -> dict[str, str]:
    """Topic settings. Times of messages are receive times, which a replay carries along: so neither age
    deletes, nor a clock that runs ahead is refused; size bounds the disk."""
    configs = {
        "max.message.bytes": str(config.max_message_bytes + 64 * 1024),
        "message.timestamp.after.max.ms": str(2**63 - 1),
        "cleanup.policy": "compact" if topic in COMPACTED else "delete",
    }
    if topic not in COMPACTED:
        configs |= {"retention.ms": "-1", "retention.bytes": str(_RETENTION_BYTES)}
    if config.replication >= 3:
        configs["min.insync.replicas"] = "2"
    return configs


def ensure(admin: KafkaAdminClient, topics: Sequence[str], config: KafkaConfig) -> list[TopicState]:
    """Create what is missing; say of the others what differs. Changes nothing that exists."""
    existing = set(admin.list_topics())
    missing = [topic for topic in topics if topic not in existing]
    created = {topic for topic in missing if _create(admin, topic, config)}
    there = [topic for topic in topics if topic not in created]
    found = _describe(admin, there) if there else {}
    return [
        TopicState(topic, topic in created, () if topic in created else _differs(topic, found[topic], config))
        for topic in topics
    ]


def largest_message(admin: KafkaAdminClient, topic: str) -> int:
    """The topic's own limit in bytes, which somebody may have set lower than ours."""
    return int(_describe(admin, (topic,))[topic]["max.message.bytes"])


def _create(admin: KafkaAdminClient, topic: str, config: KafkaConfig) -> bool:
    shape = {
        "num_partitions": config.partitions,
        "replication_factor": config.replication,
        "configs": wanted_configs(topic, config),
    }
    try:
        admin.create_topics({topic: shape}, wait_for_metadata=True)
    except kafka_errors.TopicAlreadyExistsError:  # another process was faster
        admin.wait_for_topics([topic])
        return False
    return True


def _describe(admin: KafkaAdminClient, topics: Sequence[str]) -> dict[str, dict[str, str]]:
    resources = [ConfigResource(ConfigResourceType.TOPIC, topic) for topic in topics]
    configs: dict[str, Any] = admin.describe_configs(resources, config_filter="all")["topic"]
    found = {topic: {name: str(entry["value"]) for name, entry in configs[topic].items()} for topic in topics}
    for topic in admin.describe_topics(list(topics)):
        partitions = topic["partitions"]
        found[topic["name"]]["partitions"] = str(len(partitions))
        found[topic["name"]]["replication"] = str(min(len(partition["replica_nodes"]) for partition in partitions))
    return found


def _differs(topic: str, found: dict[str, str], config: KafkaConfig) -> tuple[str, ...]:
    wanted = {
        "partitions": str(config.partitions),
        "replication": str(config.replication),
        **wanted_configs(topic, config),
    }
    return tuple(
        f"{name} is {found.get(name, 'not set')}, wanted {value}"
        for name, value in wanted.items()
        if found.get(name) != value
    )
