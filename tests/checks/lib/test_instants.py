"""Points in time as people and programs write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otelmon.checks.lib.instants import MAX_INSTANTS, apart, instants_in


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("created on 2024-05-14T09:52:38Z", "2024-05-14T09:52:38"),
        ("made on May 14, 2024, at 09:52:38 EST", "2024-05-14T09:52:38"),
        ("May 15, 2024, 3:00 p.m.", "2024-05-15T15:00:00"),
        ("am 14. Mai 2024 um 09:52", "2024-05-14T09:52:00"),
        ("el 14 de mayo de 2024 a las 9:52", "2024-05-14T09:52:00"),
    ],
)
def test_a_time_of_day_is_read(text: str, moment: str) -> None:
    (found,) = instants_in(text)
    assert (found.first.isoformat(), found.exact) == (moment, True)


def test_a_bare_day_is_all_of_the_day() -> None:
    (found,) = instants_in("on 2024-05-14.")
    assert not found.exact
    assert found.last - found.first == timedelta(days=1, microseconds=-1)


def test_days_without_a_year_need_one() -> None:
    assert instants_in("on May 14") == ()
    assert instants_in("on May 14", 2023)[0].first.isoformat() == "2023-05-14T00:00:00"


@pytest.mark.parametrize("text", ["2024-13-40", "item 1999-01-020", "at 25:61", "May 2024", "2024-05-14-x1"])
def test_what_is_no_time(text: str) -> None:
    assert not [item for item in instants_in(text) if item.exact]
    assert len(instants_in(text)) <= 1


def test_an_impossible_hour_leaves_the_day() -> None:
    assert not instants_in("2024-05-14 at 25:61")[0].exact


def test_zones_shift_times() -> None:
    one, other = instants_in("2024-05-14 12:00 UTC and 2024-05-14 08:00 -05:00")
    assert apart(one, other) == (timedelta(hours=1), timedelta(hours=1))


def test_a_long_list_is_cut() -> None:
    assert len(instants_in("2024-05-14 " * (MAX_INSTANTS + 5))) == MAX_INSTANTS


@given(st.integers(0, 4_000_000_000), st.integers(0, 4_000_000_000))
def test_how_far_apart_does_not_depend_on_the_order(first: int, second: int) -> None:
    moments = [datetime.fromtimestamp(seconds, tz=UTC) for seconds in (first, second)]
    one, other = instants_in(" to ".join(f"{moment:%Y-%m-%d %H:%M:%S}" for moment in moments))
    assert apart(one, other) == apart(other, one)
    assert apart(one, other)[0] == timedelta(seconds=abs(first - second))
