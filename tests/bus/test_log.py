"""Damage to a segment file costs what was damaged, never its neighbours."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from otelmon.bus.log import Cursor, PartitionLog
from otelmon.bus.protocol import Delivered, Outgoing

RECORDS = (
    Outgoing("a", b"first", 10**15),
    Outgoing("", b"", 2 * 10**15),
    Outgoing("key", bytes(range(256)), 3 * 10**15, (("reason", b"x"),)),
    Outgoing("last", b"the last value", 4 * 10**15, (("h", b"1"), ("i", b""))),
)


def make(folder: Path, losses: Counter[str] | None = None, segment_bytes: int = 1 << 20) -> PartitionLog:
    return PartitionLog(folder, "test", 0, segment_bytes, losses if losses is not None else Counter())


def write(log: PartitionLog, messages: Iterable[Outgoing]) -> None:
    log.stage(list(messages))
    log.publish()


def read_all(log: PartitionLog, offset: int = 0) -> list[Delivered]:
    cursor = Cursor(offset)
    found: list[Delivered] = []
    while some := log.read(cursor, 7, 1 << 20):
        found += some
    return found


def values(log: PartitionLog, offset: int = 0) -> list[bytes]:
    return [item.value for item in read_all(log, offset)]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed log with four records, one write each."""
    folder = tmp_path_factory.mktemp("log") / "0"
    log = make(folder)
    for record in RECORDS:
        write(log, [record])
    log.close()
    return folder


def sizes(folder: Path) -> list[int]:
    """Where each record begins, and where the file ends."""
    (segment,) = folder.glob("*.seg")
    data = segment.read_bytes()
    starts = [0]
    while starts[-1] < len(data):
        starts.append(starts[-1] + 12 + int.from_bytes(data[starts[-1] + 4 : starts[-1] + 8], "little"))
    return starts


def damaged(sample: Path, target: Path, change: bytes, at: int) -> PartitionLog:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(sample, target)
    (segment,) = target.glob("*.seg")
    data = bytearray(segment.read_bytes())
    data[at : at + len(change)] = change
    segment.write_bytes(data)
    return make(target)


def test_a_tail_torn_at_any_byte_is_cut_off(sample: Path, tmp_path: Path) -> None:
    *_, start, end = sizes(sample)
    for length in range(start, end):
        folder = tmp_path / str(length)
        shutil.copytree(sample, folder)
        (segment,) = folder.glob("*.seg")
        with segment.open("r+b") as file:
            file.truncate(length)
        losses: Counter[str] = Counter()
        log = make(folder, losses)
        assert values(log) == [r.value for r in RECORDS[:-1]]
        assert losses == ({"torn_tail": 1} if length > start else {})
        assert segment.stat().st_size == start
        write(log, [Outgoing("again", b"again", 0)])
        log.close()
        again = make(folder, losses)
        assert values(again) == [r.value for r in RECORDS[:-1]] + [b"again"]
        assert [item.offset for item in read_all(again)] == [0, 1, 2, 3]
        assert sum(losses.values()) <= 1
        again.close()


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_in_one_record_costs_that_record_only(sample: Path, tmp_path: Path, data: st.DataObject) -> None:
    starts = sizes(sample)
    at = data.draw(st.integers(0, starts[-1] - 1))
    change = data.draw(st.binary(min_size=1, max_size=4))
    log = damaged(sample, tmp_path / "copy", change, at)
    hit = {n for n in range(4) if starts[n] < at + len(change) and at < starts[n + 1]}
    expected = [record.value for number, record in enumerate(RECORDS) if number not in hit]
    found = values(log)
    log.close()
    assert [value for value in found if value in expected] == expected
    assert set(found) <= {record.value for record in RECORDS}


def test_damage_found_while_reading_is_left_out_and_counted(tmp_path: Path) -> None:
    losses: Counter[str] = Counter()
    log = make(tmp_path / "0", losses)
    write(log, [Outgoing("k", b"%04d" % n * 100, 0) for n in range(50)])
    segment = log.segments[0].path
    data = bytearray(segment.read_bytes())
    size = len(data) // 50
    for number in (10, 49):
        data[size * number + 60] ^= 0xFF
    data[size * 20 + 4 : size * 20 + 8] = b"\xff\xff\xff\x7f"  # a length beyond the end
    segment.write_bytes(data)
    found = [int(value[:4]) for value in values(log)]
    assert found == [n for n in range(50) if n not in {10, 20, 49}]
    assert losses == {"corrupt_record": 3}
    write(log, [Outgoing("k", b"0050", 0)])
    assert values(log, 45)[-1] == b"0050"
    log.close()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    batches=st.lists(st.lists(st.binary(max_size=300), min_size=1, max_size=6), max_size=20),
    segment_bytes=st.sampled_from([1, 200, 5000]),
    start=st.integers(0, 60),
)
def test_what_is_written_is_read_from_any_offset(
    tmp_path: Path, batches: list[list[bytes]], segment_bytes: int, start: int
) -> None:
    folder = tmp_path / "law"
    shutil.rmtree(folder, ignore_errors=True)
    log = make(folder, segment_bytes=segment_bytes)
    for batch in batches:
        write(log, [Outgoing(f"k{n}", value, n * 10**6) for n, value in enumerate(batch)])
    flat = [value for batch in batches for value in batch]
    assert values(log, start) == flat[start:]
    log.close()
    again = make(folder, segment_bytes=segment_bytes)
    assert values(again, start) == flat[start:]
    assert again.end == len(flat)
    again.close()


def test_values_beyond_one_chunk_are_read_whole(tmp_path: Path) -> None:
    log = make(tmp_path / "0", segment_bytes=8 << 20)
    sent = [bytes([n]) * size for n, size in enumerate((10, 3 << 20, 700_000, 700_000, 1 << 20, 5))]
    for value in sent:
        write(log, [Outgoing("k", value, 0)])
    assert values(log) == sent
    log.close()


def test_a_read_stops_after_the_bytes_it_was_given(tmp_path: Path) -> None:
    log = make(tmp_path / "0")
    write(log, [Outgoing("k", bytes(1 << 19), 0) for _ in range(20)])
    assert 1 <= len(log.read(Cursor(0), 1000, 1 << 20)) < 20
    log.close()


def test_what_was_taken_back_is_never_seen(tmp_path: Path) -> None:
    log = make(tmp_path / "0")
    write(log, [Outgoing("k", b"kept", 0)])
    log.stage([Outgoing("k", b"taken back", 0)])
    assert values(log) == [b"kept"]
    log.rollback()
    write(log, [Outgoing("k", b"next", 0)])
    assert values(log) == [b"kept", b"next"]
    log.close()
    again = make(tmp_path / "0")
    assert values(again) == [b"kept", b"next"]
    again.close()


def test_what_a_disk_refused_to_take_back_is_taken_back_before_the_next_write(tmp_path: Path) -> None:
    losses: Counter[str] = Counter()
    log = make(tmp_path / "0", losses)
    write(log, [Outgoing("k", b"kept", 0)])
    with log.segments[0].path.open("ab") as file:
        file.write(b"half a message")
    write(log, [Outgoing("k", b"next", 0)])
    log.close()
    again = make(tmp_path / "0", losses)
    assert values(again) == [b"kept", b"next"]
    assert not losses
    again.close()


def test_a_reader_whose_segment_is_deleted_goes_on_at_the_oldest(tmp_path: Path) -> None:
    losses: Counter[str] = Counter()
    log = make(tmp_path / "0", losses, segment_bytes=1)
    for number in range(6):
        write(log, [Outgoing("k", b"%d" % number, 0)])
    cursor = Cursor(0)
    assert [m.value for m in log.read(cursor, 1, 1 << 20)] == [b"0"]
    for _ in range(3):
        log.drop_oldest()
    assert log.oldest == 3
    assert [m.value for m in log.read(cursor, 10, 1 << 20)] == [b"3", b"4", b"5"]
    assert losses == {"offset_deleted": 1}
    log.close()


def test_offsets_that_were_committed_are_not_used_again(tmp_path: Path) -> None:
    log = make(tmp_path / "0")
    write(log, [Outgoing("k", b"0", 0)])
    log.skip_to(5)
    write(log, [Outgoing("k", b"5", 0)])
    assert [(m.offset, m.value) for m in read_all(log)] == [(0, b"0"), (5, b"5")]
    log.close()
    again = make(tmp_path / "0")
    assert again.end == 6
    again.close()
