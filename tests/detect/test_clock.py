"""Time in the pipeline is the data's; the wall only moves what is quiet."""

from __future__ import annotations

from otelmon.detect.clock import PartitionClock


class Wall:
    now = 5_000

    def __call__(self) -> int:
        return self.now


def test_time_is_the_newest_receive_time_of_each_partition() -> None:
    clock = PartitionClock(Wall())
    assert clock(0) == 0
    clock.saw(0, 100)
    clock.saw(0, 90)
    clock.saw(1, 7)
    assert (clock(0), clock(1), clock(2)) == (100, 7, 0)


def test_the_wall_moves_time_only_while_nothing_comes() -> None:
    wall = Wall()
    clock = PartitionClock(wall)
    clock.saw(0, 100)
    wall.now += 50
    assert clock(0) == 100
    clock.quiet()
    wall.now += 30
    clock.quiet()
    assert (clock(0), clock(1)) == (130, 0)
    clock.saw(0, 101)
    wall.now += 1000
    assert clock(0) == 101


def test_a_wall_that_goes_back_does_not_turn_time_back() -> None:
    wall = Wall()
    clock = PartitionClock(wall)
    clock.saw(0, 100)
    clock.quiet()
    wall.now -= 1000
    assert clock(0) == 100


def test_what_memory_has_seen_counts_only_once_all_was_read_again() -> None:
    clock = PartitionClock(Wall())
    clock.remembers(0, 500)
    clock.remembers(0, 400)
    assert clock(0) == 0
    clock.saw(0, 100)
    assert clock(0) == 100
    clock.quiet()
    assert clock(0) == 500
    clock.forget(0)
    assert clock(0) == 0
