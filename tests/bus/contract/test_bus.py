"""One contract, two buses: no stage can tell which it has."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from otelmon.bus.errors import RecordTooLargeError
from otelmon.bus.murmur2 import partition_for
from otelmon.bus.protocol import Bus, Delivered, Outgoing
from otelmon.vocabulary.errors import UnreachableError
from otelmon.vocabulary.messages import MEMORY, READINGS
from tests.bus.places import (
    PARTITIONS,
    Member,
    Notes,
    Place,
    drain,
    fresh_group,
    fresh_topic,
    message,
    next_offsets,
    subscribe,
    until,
)


def test_what_is_published_arrives_as_it_was(bus: Bus) -> None:
    topic = fresh_topic()
    sent = [
        Outgoing("k", b"value", 1_700_000_000_123_000_000, (("reason", b"because"), ("empty", b""))),
        Outgoing("k", b"", 1_700_000_000_124_000_000),
        Outgoing("clé", b"\x00\xff" * 10, 1_700_000_000_125_000_000, (("reason", b"1"), ("reason", b"2"))),
        Outgoing("", b"no key", 1_700_000_000_126_000_000),
    ]
    bus.publish(topic, sent)
    found = sorted(drain(subscribe(bus, topic, fresh_group()), 4), key=lambda item: item.time_unix_nano)
    assert [(m.key, m.value, m.time_unix_nano, m.headers) for m in found] == [
        (m.key, m.value, m.time_unix_nano, m.headers) for m in sent
    ]
    assert {m.topic for m in found} == {topic}


def test_time_is_kept_to_the_millisecond(bus: Bus) -> None:
    topic = fresh_topic()
    bus.publish(topic, [Outgoing("k", b"v", 1_700_000_000_123_456_789)])
    (found,) = drain(subscribe(bus, topic, fresh_group()), 1)
    assert found.time_unix_nano == 1_700_000_000_123_000_000


def test_large_values_pass(bus: Bus) -> None:
    topic = fresh_topic()
    values = [bytes([number]) * (2 << 20) for number in range(3)]
    bus.publish(topic, [Outgoing("k", value, 10**18) for value in values])
    assert [m.value for m in drain(subscribe(bus, topic, fresh_group()), 3)] == values


def test_order_holds_within_a_partition(bus: Bus) -> None:
    topic = fresh_topic()
    for start in range(0, 600, 60):
        bus.publish(topic, [message(f"k{n % 7}", b"%d" % n) for n in range(start, start + 60)])
    found = drain(subscribe(bus, topic, fresh_group()), 600, max_messages=50)
    by_part: dict[int, list[Delivered]] = defaultdict(list)
    for item in found:
        by_part[item.partition].append(item)
    for items in by_part.values():
        assert [m.offset for m in items] == list(range(len(items)))
        assert [int(m.value) for m in items] == sorted(int(m.value) for m in items)


def test_a_key_lies_where_kafka_puts_it(bus: Bus) -> None:
    topic = fresh_topic()
    keys = [f"{number:032x}" for number in range(200)] + ["", "trace:é", "\ud800"]
    bus.publish(topic, [message(key) for key in keys])
    found = drain(subscribe(bus, topic, fresh_group()), len(keys))
    assert {m.key: m.partition for m in found} == {key: partition_for(key, PARTITIONS) for key in keys}
    assert all(bus.partition_of(topic, key) == partition_for(key, PARTITIONS) for key in keys)
    assert bus.partitions(topic) == PARTITIONS


def test_a_given_partition_wins_over_the_key(bus: Bus) -> None:
    topic = fresh_topic()
    wanted = (partition_for("k", PARTITIONS) + 1) % PARTITIONS
    bus.publish(topic, [Outgoing("k", b"v", 10**18, partition=wanted)])
    (found,) = drain(subscribe(bus, topic, fresh_group()), 1)
    assert found.partition == wanted


def test_a_poll_without_messages_ends_with_its_timeout(bus: Bus) -> None:
    consumer = subscribe(bus, fresh_topic(), fresh_group())
    consumer.poll(0.5)
    start = time.monotonic()
    assert list(consumer.poll(0.3)) == []
    assert time.monotonic() - start >= 0.25


def test_a_poll_gives_no_more_than_asked(bus: Bus) -> None:
    topic = fresh_topic()
    bus.publish(topic, [message("k", b"%d" % n) for n in range(30)])
    consumer = subscribe(bus, topic, fresh_group())
    first = drain(consumer, 1, max_messages=7)
    assert len(first) == 7
    assert [int(m.value) for m in first + drain(consumer, 23)] == list(range(30))


def test_a_publish_wakes_a_waiting_poll(bus: Bus) -> None:
    topic = fresh_topic()
    notes = Notes()
    consumer = subscribe(bus, topic, fresh_group(), notes)
    found: list[Delivered] = []
    waiting = threading.Thread(target=lambda: found.extend(consumer.poll(3600.0)), daemon=True)
    waiting.start()
    time.sleep(1.0)
    bus.publish(topic, [message("k")])
    until(lambda: len(found) == 1, "the waiting poll to get the message")
    waiting.join()


def test_committed_messages_do_not_come_again(place: Place) -> None:
    topic, group = fresh_topic(), fresh_group()
    first = place.open()
    first.publish(topic, [message(f"k{n}", b"%d" % n) for n in range(40)])
    consumer = subscribe(first, topic, group)
    seen = drain(consumer, 40)
    consumer.commit(next_offsets(seen))
    consumer.close()
    second = place.open()
    second.publish(topic, [message("late", b"40")])
    again = drain(subscribe(second, topic, group), 1)
    assert [m.value for m in again] == [b"40"]


def test_uncommitted_messages_come_again(place: Place) -> None:
    topic, group = fresh_topic(), fresh_group()
    first = place.open()
    first.publish(topic, [message("k", b"%d" % n) for n in range(10)])
    consumer = subscribe(first, topic, group)
    seen = drain(consumer, 10)
    consumer.commit(next_offsets(seen[:4]))
    consumer.close()
    again = drain(subscribe(place.open(), topic, group), 6)
    assert [m.value for m in again] == [b"%d" % n for n in range(4, 10)]


def test_every_group_reads_everything(bus: Bus) -> None:
    topic = fresh_topic()
    bus.publish(topic, [message(f"k{n}", b"%d" % n) for n in range(50)])
    for _ in range(2):
        found = drain(subscribe(bus, topic, fresh_group()), 50)
        assert sorted(int(m.value) for m in found) == list(range(50))


def test_one_consumer_reads_several_topics(bus: Bus) -> None:
    topics = [fresh_topic(), fresh_topic()]
    for topic in topics:
        bus.publish(topic, [message("k", topic.encode())])
    notes = Notes()
    consumer = bus.consumer(topics, fresh_group(), notes.assigned, notes.revoked)
    assert sorted(m.value.decode() for m in drain(consumer, 2)) == sorted(topics)
    assert notes.owned == {(topic, p) for topic in topics for p in range(PARTITIONS)}


def test_a_stage_may_say_where_to_start(bus: Bus) -> None:
    topic = fresh_topic()
    bus.publish(topic, [message("k", b"%d" % n) for n in range(10)])
    part = partition_for("k", PARTITIONS)
    notes = Notes(lambda _, partition: 6 if partition == part else None)
    found = drain(subscribe(bus, topic, fresh_group(), notes), 4)
    assert [m.value for m in found] == [b"6", b"7", b"8", b"9"]


def test_a_start_beyond_the_end_reads_everything(bus: Bus) -> None:
    topic = fresh_topic()
    bus.publish(topic, [message("k", b"%d" % n) for n in range(3)])
    found = drain(subscribe(bus, topic, fresh_group(), Notes(lambda topic, partition: 1000)), 3)
    assert [m.value for m in found] == [b"0", b"1", b"2"]


def test_partitions_are_told_before_their_messages(bus: Bus) -> None:
    topic = fresh_topic()
    bus.publish(topic, [message(f"k{n}") for n in range(20)])
    notes = Notes()
    consumer = subscribe(bus, topic, fresh_group(), notes)
    for item in drain(consumer, 20):
        assert ("assigned", item.partition) in notes.told
    consumer.close()
    assert not notes.owned


@pytest.fixture
def members(bus: Bus) -> Iterator[Callable[..., Member]]:
    """Starts members of a group; they leave at the end."""
    started: list[Member] = []

    def start(topic: str, group: str) -> Member:
        started.append(Member(bus, topic, group))
        return started[-1]

    yield start
    for member in started:
        member.leave()


def halves(one: Member, two: Member) -> Callable[[], bool]:
    return lambda: len(one.notes.owned) == len(two.notes.owned) == PARTITIONS // 2


def test_two_members_share_and_hand_over_without_loss(bus: Bus, members: Callable[..., Member]) -> None:
    topic, group = fresh_topic(), fresh_group()
    one = members(topic, group)
    until(lambda: len(one.notes.owned) == PARTITIONS, "the first member to own everything")
    two = members(topic, group)
    until(halves(one, two), "equal shares")
    assert not one.notes.owned & two.notes.owned

    bus.publish(topic, [message(f"k{n}", b"%d" % n) for n in range(100)])
    until(lambda: len(one.found) + len(two.found) >= 100, "all messages")
    assert sorted(int(m.value) for m in one.found + two.found) == list(range(100))
    one.commit()
    two.commit()

    two.leave()
    one.found.clear()
    bus.publish(topic, [message(f"k{n}", b"%d" % n) for n in range(100, 200)])
    until(lambda: len(one.found) >= 100, "the rest")
    assert sorted(int(m.value) for m in one.found) == list(range(100, 200))
    assert len(one.notes.owned) == PARTITIONS


def test_a_new_member_gets_what_was_not_committed(bus: Bus, members: Callable[..., Member]) -> None:
    topic, group = fresh_topic(), fresh_group()
    bus.publish(topic, [message(f"k{n}", b"%d" % n) for n in range(100)])
    one = members(topic, group)
    until(lambda: len(one.found) == 100, "all messages")
    two = members(topic, group)
    until(halves(one, two), "equal shares")
    wanted = sorted(m.value for m in one.found[:100] if (topic, m.partition) in two.notes.owned)
    until(lambda: len(two.found) >= len(wanted), "the uncommitted messages")
    assert sorted(m.value for m in two.found) == wanted


def test_a_stage_may_commit_what_it_did_when_a_partition_leaves(bus: Bus, members: Callable[..., Member]) -> None:
    topic, group = fresh_topic(), fresh_group()
    bus.publish(topic, [message(f"k{n}", b"old") for n in range(100)])
    one = members(topic, group)

    def leave(name: str, partition: int) -> None:
        done = next_offsets(one.found)
        one.consumer.commit({part: at for part, at in done.items() if part == (name, partition)})

    until(lambda: len(one.found) == 100, "all messages")
    one.notes.leave = leave
    two = members(topic, group)
    until(halves(one, two), "equal shares")
    bus.publish(topic, [message(f"k{n}", b"new") for n in range(100)])
    until(lambda: len(one.found) + len(two.found) >= 200, "the new messages")
    assert Counter(m.value for m in one.found[100:] + two.found) == {b"new": 100}


def test_an_error_in_a_callback_reaches_the_stage_and_costs_nothing(bus: Bus) -> None:
    topic = fresh_topic()
    bus.publish(topic, [message(f"k{n}", b"%d" % n) for n in range(50)])
    notes = Notes()
    failures = iter(range(PARTITIONS - 1))

    def refuse_at_first(name: str, partition: int) -> int | None:
        if next(failures, None) is not None:
            raise RuntimeError(f"no room for {name} {partition}")
        return notes.assigned(name, partition)

    consumer = bus.consumer([topic], fresh_group(), refuse_at_first, notes.revoked)
    for _ in range(PARTITIONS - 1):
        with pytest.raises(RuntimeError, match="no room"):
            drain(consumer, 1)
    assert sorted(int(m.value) for m in drain(consumer, 50)) == list(range(50))
    assert len(notes.owned) == PARTITIONS


def test_an_error_while_a_partition_moves_reaches_the_stage(bus: Bus, members: Callable[..., Member]) -> None:
    topic, group = fresh_topic(), fresh_group()
    one = members(topic, group)
    until(lambda: len(one.notes.owned) == PARTITIONS, "the first member to own everything")

    def refuse_once(name: str, partition: int) -> None:
        one.notes.leave = lambda name, partition: None
        raise RuntimeError(f"can not let go of {name} {partition}")

    one.notes.leave = refuse_once
    two = members(topic, group)
    until(lambda: len(two.notes.owned) == PARTITIONS, "the other member to take over")
    with pytest.raises(RuntimeError, match="can not let go"):
        one.leave()
    one.forgive()


def test_lag_counts_what_was_not_polled(bus: Bus) -> None:
    topic = fresh_topic()
    bus.publish(topic, [message("k", b"%d" % n) for n in range(10)])
    consumer = subscribe(bus, topic, fresh_group())
    part = (topic, partition_for("k", PARTITIONS))
    drain(consumer, 1, max_messages=4)
    assert consumer.lag() == {(topic, p): 6 if (topic, p) == part else 0 for p in range(PARTITIONS)}
    drain(consumer, 6)
    assert consumer.lag()[part] == 0


def test_many_threads_publish_at_once(bus: Bus) -> None:
    topic = fresh_topic()

    def publish(thread: int) -> None:
        for turn in range(10):
            bus.publish(topic, [message(f"t{thread}", b"%d-%d-%d" % (thread, turn, n)) for n in range(5)])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(publish, range(8)))
    found = drain(subscribe(bus, topic, fresh_group()), 400)
    assert len({m.value for m in found}) == len(found) == 400
    for thread in range(8):
        mine = [m.value for m in found if m.key == f"t{thread}"]
        assert mine == [b"%d-%d-%d" % (thread, turn, n) for turn in range(10) for n in range(5)]


def test_latest_is_the_newest_value_of_every_key(bus: Bus) -> None:
    run = uuid4().hex
    keys = [f"{run}-{n}" for n in range(20)]
    for turn in range(3):
        bus.publish(MEMORY, [message(key, b"%d" % turn) for key in keys])
    bus.publish(MEMORY, [message(keys[0], b""), message(keys[1], b""), message(keys[1], b"back")])
    found: dict[str, bytes] = {}
    for partition in range(PARTITIONS):
        values = bus.latest(MEMORY, partition)
        assert all(partition_for(key, PARTITIONS) == partition for key in values)
        found.update({key: value for key, value in values.items() if key.startswith(run)})
    assert found == {keys[1]: b"back", **{key: b"2" for key in keys[2:]}}


def test_latest_is_there_after_a_restart(place: Place) -> None:
    key = uuid4().hex
    place.open().publish(MEMORY, [message(key, b"old"), message(key, b"new")])
    bus = place.open()
    assert bus.latest(MEMORY, bus.partition_of(MEMORY, key))[key] == b"new"


def test_only_compacted_topics_have_a_latest(bus: Bus) -> None:
    with pytest.raises(ValueError, match="not a compacted topic"):
        bus.latest(READINGS, 0)


def test_publishing_nothing_is_nothing(bus: Bus) -> None:
    bus.publish(fresh_topic(), [])


def test_a_message_that_can_never_fit_is_refused_by_name(bus: Bus) -> None:
    topic = fresh_topic()
    with pytest.raises(RecordTooLargeError, match="at most") as caught:
        bus.publish(topic, [message("k"), message("k", bytes(257 << 20))])
    assert caught.value.reason == "record_too_large"
    bus.publish(topic, [message("k", b"fits")])
    assert [m.value for m in drain(subscribe(bus, topic, fresh_group()), 1)] == [b"fits"]


def test_a_closed_consumer_says_so(bus: Bus) -> None:
    consumer = subscribe(bus, fresh_topic(), fresh_group())
    consumer.close()
    consumer.close()
    with pytest.raises(UnreachableError, match="closed"):
        consumer.poll(0.1)


def test_an_error_while_leaving_still_leaves(bus: Bus) -> None:
    topic, group = fresh_topic(), fresh_group()

    def refuse(name: str, partition: int) -> None:
        raise RuntimeError(f"can not let go of {name} {partition}")

    bus.publish(topic, [message("k", b"v")])
    first = bus.consumer([topic], group, lambda name, partition: None, refuse)
    drain(first, 1)
    with pytest.raises(RuntimeError, match="can not let go"):
        first.close()
    assert [m.value for m in drain(subscribe(bus, topic, group), 1)] == [b"v"]


def test_what_was_done_may_be_committed_while_closing(bus: Bus) -> None:
    topic, group = fresh_topic(), fresh_group()
    bus.publish(topic, [message("k", b"%d" % n) for n in range(5)])
    done: dict[tuple[str, int], int] = {}

    def leave(name: str, partition: int) -> None:
        first.commit({part: at for part, at in done.items() if part == (name, partition)})

    first = bus.consumer([topic], group, lambda name, partition: None, leave)
    done.update(next_offsets(drain(first, 5)))
    first.close()
    bus.publish(topic, [message("k", b"new")])
    assert [m.value for m in drain(subscribe(bus, topic, group), 1)] == [b"new"]
