"""What only the spool has to answer for: one disk, one process, kills and full disks."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from otelmon.bus.errors import BackpressureError
from otelmon.bus.protocol import Outgoing
from otelmon.bus.spool import SpoolBus
from otelmon.vocabulary.config import SpoolConfig
from otelmon.vocabulary.errors import UNREACHABLE, UnreachableError, UserError
from otelmon.vocabulary.messages import DEAD, MEMORY, READINGS, SPANS
from tests.bus.places import Notes, drain, message, next_offsets, subscribe, until

ROOT = Path(__file__).resolve().parents[2]
SMALL = SpoolConfig(segment_bytes=10_000, retain_bytes=50_000, min_free_bytes=0)


@contextmanager
def opened(folder: Path, config: SpoolConfig = SMALL, partitions: int = 1) -> Iterator[SpoolBus]:
    bus = SpoolBus(folder, config, partitions)
    try:
        yield bus
    finally:
        bus.close()


def used(folder: Path, topic: str) -> int:
    return sum(path.stat().st_size for path in (folder / "topics" / topic).rglob("*.seg"))


def start_writer(folder: Path, name: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.bus.writer", str(folder), name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT)


def test_what_was_acknowledged_survives_kill_9_once(tmp_path: Path) -> None:
    wait = random.Random(7)
    acknowledged: dict[str, int] = {}
    for turn in range(6):
        writer = start_writer(tmp_path, f"w{turn}")
        assert writer.stdout is not None
        first = writer.stdout.readline()  # it runs
        time.sleep(wait.uniform(0.0, 0.3))
        writer.kill()
        lines = [first, *writer.stdout.readlines()]
        writer.stdout.close()
        assert writer.wait() == -signal.SIGKILL
        acknowledged[f"w{turn}"] = int([line for line in lines if line.endswith(b"\n")][-1])
    with opened(tmp_path, SpoolConfig(segment_bytes=20_000, min_free_bytes=0), partitions=2) as bus:
        wanted = {f"{name}-{n}" for name, last in acknowledged.items() for n in range(last + 3)}
        found = [m.value.rstrip(b"\0").decode() for m in drain(subscribe(bus, SPANS, "g"), len(wanted))]
        assert len(found) == len(set(found))
        assert wanted <= set(found)
        assert len(set(found) - wanted) <= 3 * len(acknowledged)  # written, killed before it was said
        latest = {**bus.latest(MEMORY, 0), **bus.latest(MEMORY, 1)}
        for name, last in acknowledged.items():
            assert int(latest[name]) in {last, last + 3}
        assert set(bus.losses) <= {"torn_tail"}


def test_a_second_process_is_refused_by_name(tmp_path: Path) -> None:
    writer = start_writer(tmp_path, "w")
    assert writer.stdout is not None
    try:
        writer.stdout.readline()
        with pytest.raises(UnreachableError) as caught:
            SpoolBus(tmp_path, SMALL, 2)
    finally:
        writer.kill()
        writer.stdout.close()
        writer.wait()
    assert str(writer.pid) in str(caught.value)
    assert "another folder" in str(caught.value)
    with opened(tmp_path, SMALL, 2):
        pass  # a killed owner does not keep the folder


def test_a_second_bus_in_the_same_process_is_refused_too(tmp_path: Path) -> None:
    with opened(tmp_path), pytest.raises(UnreachableError, match=str(os.getpid())):
        SpoolBus(tmp_path, SMALL)
    with opened(tmp_path):
        pass


def test_another_number_of_partitions_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path, partitions=2):
        pass
    with pytest.raises(UserError, match="2 partitions"):
        SpoolBus(tmp_path, SMALL, 3)
    with opened(tmp_path, partitions=2):
        pass


def test_a_damaged_shape_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "spool.json").write_text("{")
    with pytest.raises(UserError, match=r"spool\.json"):
        SpoolBus(tmp_path, SMALL)


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Topics whose files were synced, in order; the syncs still happen."""
    seen: list[str] = []
    real = os.fdatasync

    def spy(fd: int) -> None:
        seen.append(Path(os.readlink(f"/proc/self/fd/{fd}")).parent.parent.name)
        real(fd)

    monkeypatch.setattr(os, "fdatasync", spy)
    return seen


def test_spans_are_synced_before_they_are_acknowledged(tmp_path: Path, synced: list[str]) -> None:
    with opened(tmp_path) as bus:
        bus.publish(SPANS, [message("k")])
        assert synced == [SPANS]
        bus.publish(READINGS, [message("k")])
        assert synced == [SPANS]


def test_results_are_synced_before_the_commit_that_rests_on_them(tmp_path: Path, synced: list[str]) -> None:
    with opened(tmp_path) as bus:
        consumer = subscribe(bus, SPANS, "g")
        bus.publish(READINGS, [message("k")])
        bus.publish(MEMORY, [message("k")])
        synced.clear()
        consumer.commit({(SPANS, 0): 1})
        assert sorted(synced[:-1]) == [MEMORY, READINGS]
        assert synced[-1] == "_groups"


def test_syncing_can_be_turned_off(tmp_path: Path, synced: list[str]) -> None:
    with opened(tmp_path, SpoolConfig(fsync=False, min_free_bytes=0)) as bus:
        bus.publish(SPANS, [message("k")])
        subscribe(bus, SPANS, "g").commit({(SPANS, 0): 1})
        assert synced == []


def test_a_folder_that_can_not_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UnreachableError, match="can not be opened") as caught:
        SpoolBus(tmp_path / "file" / "spool", SMALL)
    assert "another one" in str(caught.value)


def test_little_free_space_stops_intake_and_nothing_else(tmp_path: Path) -> None:
    with opened(tmp_path, SpoolConfig(min_free_bytes=1 << 60)) as bus:
        with pytest.raises(BackpressureError, match="min_free_bytes") as caught:
            bus.publish(SPANS, [message("k")])
        assert caught.value.retriable
        assert caught.value.exit_code == UNREACHABLE
        assert used(tmp_path, SPANS) == 0
        bus.publish(READINGS, [message("k", b"goes on")])
        assert [m.value for m in drain(subscribe(bus, READINGS, "g"), 1)] == [b"goes on"]


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Any file beyond `size` bytes is refused with EFBIG, as a full disk refuses with ENOSPC."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)


def test_a_write_the_disk_refuses_leaves_nothing_half_written(tmp_path: Path) -> None:
    config = SpoolConfig(min_free_bytes=0)
    with opened(tmp_path, config, partitions=4) as bus:
        bus.publish(SPANS, [message(f"k{n}", b"before") for n in range(20)])
        sizes = used(tmp_path, SPANS)
        batch = [message(f"k{n}", b"small") for n in range(20)] + [message("k1", bytes(100_000))]
        with file_size_limit(20_000):
            for _ in range(3):
                with pytest.raises(BackpressureError, match="refused a write"):
                    bus.publish(SPANS, batch)
        assert used(tmp_path, SPANS) == sizes
        bus.publish(SPANS, [message(f"k{n}", b"after") for n in range(20)])
    with opened(tmp_path, config, partitions=4) as bus:
        found = [m.value for m in drain(subscribe(bus, SPANS, "g"), 40)]
        assert sorted(found) == [b"after"] * 20 + [b"before"] * 20
        assert not bus.losses


def test_threads_that_share_a_write_are_all_told_when_it_fails(tmp_path: Path) -> None:
    outcomes: list[str] = []

    def publish(bus: SpoolBus) -> None:
        try:
            bus.publish(SPANS, [message("k", bytes(4_000))])
            outcomes.append("durable")
        except BackpressureError:
            outcomes.append("refused")

    with opened(tmp_path, SpoolConfig(min_free_bytes=0)) as bus:
        with file_size_limit(50_000):
            threads = [threading.Thread(target=publish, args=(bus,)) for _ in range(40)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert len(outcomes) == 40
        durable = outcomes.count("durable")
        assert 0 < durable <= 12
        assert len(drain(subscribe(bus, SPANS, "g"), durable)) == durable
        assert bus.consumer([SPANS], "h", Notes().assigned, Notes().revoked).poll(0.0, 100)


def fill(bus: SpoolBus, topic: str, count: int = 200) -> None:
    for number in range(count):
        bus.publish(topic, [message("k", b"%04d" % number * 250)])


def test_consumed_segments_beyond_the_limit_go_and_unread_ones_stay(tmp_path: Path) -> None:
    with opened(tmp_path) as bus:
        quick, slow = subscribe(bus, READINGS, "quick"), subscribe(bus, READINGS, "slow")
        fill(bus, READINGS)
        quick.commit(next_offsets(drain(quick, 200)))
        assert used(tmp_path, READINGS) > 200_000  # the slow group has read nothing
        assert len(drain(slow, 200)) == 200
        slow.commit({(READINGS, 0): 100})
        kept = used(tmp_path, READINGS)
        assert 100_000 < kept < 180_000  # half unread, and retain_bytes of the rest
        slow.commit({(READINGS, 0): 200})
        assert used(tmp_path, READINGS) < 80_000
        late = subscribe(bus, READINGS, "late")
        assert b"0199" in [m.value[:4] for m in late.poll(0.0)]


def test_a_topic_without_readers_is_kept_for_its_first_one(tmp_path: Path) -> None:
    with opened(tmp_path) as bus:
        fill(bus, READINGS)
        other = subscribe(bus, SPANS, "g")
        bus.publish(SPANS, [message("k")])
        other.commit(next_offsets(drain(other, 1)))
        assert len(drain(subscribe(bus, READINGS, "first"), 200)) == 200


def test_dead_letters_have_no_reader_and_are_bounded(tmp_path: Path) -> None:
    with opened(tmp_path) as bus:
        fill(bus, DEAD)
        assert used(tmp_path, DEAD) < 80_000
        assert subscribe(bus, DEAD, "g").poll(0.0)[-1].value[:4] == b"0199"


def test_spans_are_kept_longest(tmp_path: Path) -> None:
    with opened(tmp_path) as bus:
        spans, readings = subscribe(bus, SPANS, "g"), subscribe(bus, READINGS, "g")
        for topic in (SPANS, READINGS):
            fill(bus, topic, 60)
        spans.commit(next_offsets(drain(spans, 60)))
        readings.commit(next_offsets(drain(readings, 60)))
        assert used(tmp_path, SPANS) > 50_000
        assert used(tmp_path, READINGS) < 20_000


def test_a_committed_offset_that_is_gone_starts_at_the_oldest_and_is_counted(tmp_path: Path) -> None:
    with opened(tmp_path) as bus:
        consumer = subscribe(bus, READINGS, "g")
        fill(bus, READINGS)
        consumer.commit(next_offsets(drain(consumer, 200)))
        again = subscribe(bus, READINGS, "h", Notes(lambda topic, partition: 0))
        first = again.poll(0.0)[0]
        assert first.offset > 100
        assert bus.losses["offset_deleted"] == 1


def test_compacted_topics_stay_small_and_keep_every_key(tmp_path: Path) -> None:
    with opened(tmp_path) as bus:
        bus.publish(MEMORY, [message("old", b"kept"), message("gone", b"x")])
        bus.publish(MEMORY, [message("gone", b"")])
        for number in range(500):
            bus.publish(MEMORY, [message(f"k{number % 5}", b"%d" % number * 100)])
        assert used(tmp_path, MEMORY) < 40_000
        wanted = {"old": b"kept", **{f"k{n % 5}": b"%d" % n * 100 for n in range(495, 500)}}
        assert bus.latest(MEMORY, 0) == wanted
    with opened(tmp_path) as bus:
        assert bus.latest(MEMORY, 0) == wanted


def test_a_reader_of_a_compacted_topic_misses_only_what_is_outdated(tmp_path: Path) -> None:
    with opened(tmp_path) as bus:
        consumer = subscribe(bus, MEMORY, "g")
        for number in range(500):
            bus.publish(MEMORY, [message(f"k{number % 5}", b"%d" % number * 100)])
        newest = {m.key: m.value for m in consumer.poll(0.0)}
        assert newest == bus.latest(MEMORY, 0)
        assert not bus.losses


def test_commits_stay_small_too(tmp_path: Path) -> None:
    with opened(tmp_path) as bus:
        consumer = subscribe(bus, READINGS, "g")
        for number in range(1, 1500):
            consumer.commit({(READINGS, 0): number})
        assert used(tmp_path, "_groups") < 40_000
    with opened(tmp_path) as bus:
        assert bus.committed("g", (READINGS, 0)) == 1499


def test_offsets_lost_with_a_tail_are_not_handed_out_again(tmp_path: Path) -> None:
    with opened(tmp_path) as bus:
        consumer = subscribe(bus, READINGS, "g")
        bus.publish(READINGS, [message("k", b"%d" % n) for n in range(10)])
        consumer.commit(next_offsets(drain(consumer, 10)))
    (segment,) = (tmp_path / "topics" / READINGS / "0").glob("*.seg")
    segment.write_bytes(b"")  # as after a power cut without fsync
    with opened(tmp_path) as bus:
        bus.publish(READINGS, [message("k", b"new")])
        (found,) = drain(subscribe(bus, READINGS, "g"), 1)
        assert (found.offset, found.value) == (10, b"new")


def test_a_start_beyond_the_end_is_counted(tmp_path: Path) -> None:
    with opened(tmp_path) as bus:
        bus.publish(READINGS, [message("k")])
        drain(subscribe(bus, READINGS, "g", Notes(lambda topic, partition: 7)), 1)
        assert bus.losses["offset_out_of_range"] == 1


def test_a_poll_gives_a_bounded_number_of_bytes(tmp_path: Path) -> None:
    with opened(tmp_path, SpoolConfig(min_free_bytes=0)) as bus:
        for _ in range(30):
            bus.publish(READINGS, [message("k", bytes(2 << 20))])
        consumer = subscribe(bus, READINGS, "g")
        assert sum(len(m.value) for m in consumer.poll(0.0)) <= 40 << 20
        assert len(drain(consumer, 1)) > 0


@pytest.mark.parametrize("name", ["", "a/b", "..", "x" * 300])
def test_a_topic_that_can_not_be_a_folder_is_refused(tmp_path: Path, name: str) -> None:
    with opened(tmp_path) as bus, pytest.raises(ValueError, match="topic name"):
        bus.publish(name, [message("k")])


def test_a_partition_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as bus, pytest.raises(ValueError, match="partition 3"):
        bus.publish(READINGS, [Outgoing("k", b"v", 0, partition=3)])


def test_a_message_that_can_not_be_written_harms_no_neighbour(tmp_path: Path) -> None:
    with opened(tmp_path) as bus:
        bus.publish(READINGS, [message("k", b"before")])
        with pytest.raises(Exception, match="out of range"):
            bus.publish(READINGS, [message("k", b"fine"), Outgoing("k", b"v", 10**40)])
        bus.publish(READINGS, [message("k", b"after")])
        assert [m.value for m in drain(subscribe(bus, READINGS, "g"), 2)] == [b"before", b"after"]


def test_closing_the_bus_wakes_and_closes_its_consumers(tmp_path: Path) -> None:
    bus = SpoolBus(tmp_path, SMALL)
    consumer = subscribe(bus, READINGS, "g")
    ended = threading.Event()

    def wait() -> None:
        with pytest.raises(UnreachableError, match="closed"):
            consumer.poll(60.0)
        ended.set()

    thread = threading.Thread(target=wait)
    thread.start()
    until(lambda: bool(consumer.lag()), "the consumer to own its partition")
    bus.close()
    thread.join()
    assert ended.is_set()
