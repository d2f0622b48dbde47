"""What only Kafka has to answer for: brokers that go away, limits of theirs, topics made once."""

from __future__ import annotations

import gc
import logging
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from otelmon.bus.errors import BackpressureError, RecordTooLargeError
from otelmon.bus.kafka import KafkaBus
from otelmon.bus.murmur2 import partition_for
from otelmon.bus.protocol import Outgoing
from otelmon.vocabulary.config import KafkaConfig
from otelmon.vocabulary.errors import UnreachableError, UserError
from otelmon.vocabulary.messages import COMPACTED, TOPICS
from tests.bus.places import PARTITIONS, Member, drain, fresh_group, fresh_topic, message, subscribe, until
from tests.services.kafka import PASSWORD, USER, KafkaServer, free_port

pytestmark = pytest.mark.kafka

# kafka-python leaves the socket of a refused connection to the garbage collector.
refused_sockets = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture
def collected() -> Iterator[None]:
    """Lets the garbage of this test be collected in this test: kept log records would hold it longer."""
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    logging.getLogger("otelmon.bus").setLevel(logging.CRITICAL)
    yield
    gc.collect()
    logging.getLogger("kafka").setLevel(logging.NOTSET)
    logging.getLogger("otelmon.bus").setLevel(logging.NOTSET)


def config(server: KafkaServer, **changes: int) -> KafkaConfig:
    return KafkaConfig(bootstrap=server.bootstrap, session_timeout_ms=3000, **{"partitions": PARTITIONS, **changes})  # type: ignore[arg-type]


@pytest.fixture
def bus(kafka_server: KafkaServer) -> Iterator[KafkaBus]:
    bus = KafkaBus(config(kafka_server))
    yield bus
    bus.close()


def test_topics_are_made_once_and_differences_are_said(kafka_server: KafkaServer) -> None:
    topics = [fresh_topic(), fresh_topic()]
    first, second = KafkaBus(config(kafka_server)), KafkaBus(config(kafka_server, partitions=6))
    try:
        assert [(s.topic, s.created, s.differs) for s in first.init_topics(topics)] == [(t, True, ()) for t in topics]
        assert [(s.created, s.differs) for s in first.init_topics(topics)] == [(False, ())] * 2
        states = second.init_topics([*topics, fresh_topic()])
        assert [(s.created, s.differs) for s in states] == [
            (False, ("partitions is 4, wanted 6",)),
            (False, ("partitions is 4, wanted 6",)),
            (True, ()),
        ]
        assert [str(s).partition(": ")[2] for s in states] == ["partitions is 4, wanted 6"] * 2 + ["created"]
        assert str(first.init_topics(topics[:1])[0]) == f"{topics[0]}: as wanted"
        assert second.partitions(topics[0]) == 4
    finally:
        first.close()
        second.close()


def test_all_topics_of_otelmon_are_made_and_two_are_compacted(bus: KafkaBus, kafka_server: KafkaServer) -> None:
    bus.init_topics()
    assert all(not state.created for state in bus.init_topics())
    admin = KafkaAdminClient(bootstrap_servers=kafka_server.bootstrap)
    try:
        wanted = [ConfigResource(ConfigResourceType.TOPIC, topic) for topic in TOPICS]
        found = admin.describe_configs(wanted, config_filter="all")["topic"]
    finally:
        admin.close()
    policies = {topic: found[topic]["cleanup.policy"]["value"] for topic in TOPICS}
    assert policies == {topic: "compact" if topic in COMPACTED else "delete" for topic in TOPICS}


def test_two_processes_may_make_the_same_topic_at_once(kafka_server: KafkaServer) -> None:
    topics = [fresh_topic() for _ in range(5)]
    buses = [KafkaBus(config(kafka_server)) for _ in range(2)]
    try:
        with ThreadPoolExecutor(2) as pool:
            states = list(pool.map(lambda bus: bus.init_topics(topics), buses))
        assert [state.differs for made in states for state in made] == [()] * 10
        assert all(one.created != other.created for one, other in zip(*states, strict=True))
    finally:
        for bus in buses:
            bus.close()


def test_a_message_beyond_the_limit_is_refused_by_name(kafka_server: KafkaServer) -> None:
    topic, limit = fresh_topic(), 8 << 20
    bus = KafkaBus(config(kafka_server, max_message_bytes=limit))
    with closing(bus):
        with pytest.raises(RecordTooLargeError, match=r"kafka\.max_message_bytes"):
            bus.publish(topic, [message("k", bytes(limit + 1))])
        bus.publish(topic, [message("k", bytes(limit))])
        assert len(drain(subscribe(bus, topic, fresh_group()), 1)[0].value) == limit


@pytest.fixture
def narrow_topic(kafka_server: KafkaServer) -> str:
    """A topic that somebody made with a smaller limit than ours."""
    topic = fresh_topic()
    shape = {"num_partitions": 1, "replication_factor": 1, "configs": {"max.message.bytes": "1000"}}
    admin = KafkaAdminClient(bootstrap_servers=kafka_server.bootstrap)
    try:
        admin.create_topics({topic: shape}, wait_for_metadata=True)
    finally:
        admin.close()
    return topic


def test_a_topic_with_a_smaller_limit_is_named(bus: KafkaBus, narrow_topic: str) -> None:
    with pytest.raises(RecordTooLargeError, match=r"at most 1000 \(max\.message\.bytes"):
        bus.publish(narrow_topic, [message("k", random.Random(1).randbytes(3000))])
    bus.publish(narrow_topic, [message("k", b"fits")])
    assert [m.value for m in drain(subscribe(bus, narrow_topic, fresh_group()), 1)] == [b"fits"]


def test_many_small_messages_pass_a_small_limit(bus: KafkaBus, narrow_topic: str) -> None:
    noise = random.Random(2)
    small = [message("k", noise.randbytes(600)) for _ in range(5)]
    bus.publish(narrow_topic, small)
    assert [m.value for m in drain(subscribe(bus, narrow_topic, fresh_group()), 5)] == [m.value for m in small]


def test_a_neighbour_of_a_refused_message_is_not_blamed(bus: KafkaBus, narrow_topic: str) -> None:
    acknowledged: list[bytes] = []

    def publish_small() -> None:
        for number in range(60):
            value = b"%d" % number
            while True:
                try:
                    bus.publish(narrow_topic, [message("k", value)])
                except BackpressureError:
                    continue
                acknowledged.append(value)
                break

    with ThreadPoolExecutor(1) as pool:
        small = pool.submit(publish_small)
        for seed in range(5):
            with pytest.raises(RecordTooLargeError):
                bus.publish(narrow_topic, [message("k", random.Random(seed).randbytes(3000))])
        small.result()
    found = drain(subscribe(bus, narrow_topic, fresh_group()), 60)
    assert {m.value for m in found} == set(acknowledged)
    assert len(acknowledged) == 60


def test_messages_of_other_producers_are_read(bus: KafkaBus, kafka_server: KafkaServer) -> None:
    topic = fresh_topic()
    bus.init_topics([topic])
    producer = KafkaProducer(bootstrap_servers=kafka_server.bootstrap)
    try:
        producer.send(topic, b"no key", partition=0, timestamp_ms=1).get(10)
        producer.send(topic, None, b"\xff", partition=0, timestamp_ms=2).get(10)
        producer.send(topic, b"keyed", b"0af7651916cd43dd8448eb211c80319c", timestamp_ms=3).get(10)
    finally:
        producer.close()
    found = sorted(drain(subscribe(bus, topic, fresh_group()), 3), key=lambda m: m.time_unix_nano)
    assert [(m.key, m.value) for m in found] == [
        ("", b"no key"),
        ("\ufffd", b""),
        ("0af7651916cd43dd8448eb211c80319c", b"keyed"),
    ]
    assert found[2].partition == partition_for(found[2].key, PARTITIONS)


def test_times_far_away_are_kept(bus: KafkaBus) -> None:
    topic = fresh_topic()
    ahead = (int(time.time()) + 10 * 86_400) * 10**9
    bus.publish(topic, [Outgoing("k", b"old", 10**15), Outgoing("k", b"ahead", ahead)])
    assert [m.time_unix_nano for m in drain(subscribe(bus, topic, fresh_group()), 2)] == [10**15, ahead]


@refused_sockets
@pytest.mark.usefixtures("collected")
def test_a_broker_that_is_not_there_is_named() -> None:
    address = f"127.0.0.1:{free_port()}"
    with pytest.raises(UnreachableError, match=address) as caught:
        KafkaBus(KafkaConfig(bootstrap=address), start_seconds=0.5)
    assert "start Kafka" in str(caught.value)


def login(server: KafkaServer, password_file: Path) -> KafkaConfig:
    return KafkaConfig(
        bootstrap=server.login_bootstrap,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_username=USER,
        sasl_password_file=str(password_file),
        session_timeout_ms=3000,
    )


def test_a_login_from_a_password_file_works(kafka_server: KafkaServer, tmp_path: Path) -> None:
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    bus = KafkaBus(login(kafka_server, tmp_path / "password"))
    try:
        topic = fresh_topic()
        bus.publish(topic, [message("k", b"behind a login")])
        assert [m.value for m in drain(subscribe(bus, topic, fresh_group()), 1)] == [b"behind a login"]
    finally:
        bus.close()


@refused_sockets
@pytest.mark.usefixtures("collected")
def test_a_wrong_password_is_said_without_saying_it(kafka_server: KafkaServer, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("a-wrong-one")
    with pytest.raises(UnreachableError, match="sasl") as caught:
        KafkaBus(login(kafka_server, tmp_path / "password"), start_seconds=3.0)
    assert "a-wrong-one" not in str(caught.value)


def test_a_password_file_that_is_missing_is_named(tmp_path: Path) -> None:
    wanted = KafkaConfig(sasl_mechanism="PLAIN", sasl_password_file=str(tmp_path / "none"))
    with pytest.raises(UserError, match="sasl_password_file"):
        KafkaBus(wanted)


@refused_sockets
@pytest.mark.usefixtures("collected")
@pytest.mark.timeout(240)
def test_a_broker_that_crashes_and_comes_back_loses_nothing(tmp_path: Path) -> None:
    server = KafkaServer(tmp_path / "kafka")
    server.start()
    bus = KafkaBus(config(server))
    topic = fresh_topic()
    reader = Member(bus, topic, fresh_group())
    acknowledged: list[bytes] = []
    stop = threading.Event()

    def publish() -> None:
        number = 0
        while not stop.is_set():
            batch = [message(f"k{n}", b"%d" % n) for n in range(number, number + 10)]
            while not stop.is_set():
                try:
                    bus.publish(topic, batch)
                except BackpressureError:
                    time.sleep(0.2)
                else:
                    acknowledged.extend(m.value for m in batch)
                    break
            number += 10

    writer = threading.Thread(target=publish)
    writer.start()
    try:
        until(lambda: len(reader.found) > 50, "messages before the crash")
        server.kill()
        server.start()
        before = len(acknowledged)
        until(lambda: len(acknowledged) > before + 50, "acknowledgements after the crash")
    finally:
        stop.set()
        writer.join()
    try:
        until(lambda: {m.value for m in reader.found} >= set(acknowledged), "everything acknowledged")
        assert len(set(acknowledged)) == len(acknowledged)
    finally:
        reader.leave()
        bus.close()
        server.stop()
