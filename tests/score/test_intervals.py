"""Intervals of measured rates, against worked numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otelmon.score.intervals import rule_of_three, wilson


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        (0, 20, 0.0, 0.1611),  # z²/(n+z²) = 3.8415/23.8415
        (20, 20, 0.8389, 1.0),
        (1, 10, 0.0179, 0.4042),  # worked by hand with z = 1.959964
        (81, 263, 0.2553, 0.3662),  # the standard worked example of the method
        (15, 148, 0.0624, 0.1605),
    ],
)
def test_wilson_gives_the_published_numbers(successes: int, trials: int, low: float, high: float) -> None:
    assert wilson(successes, trials) == pytest.approx((low, high), abs=5e-5)


def test_wilson_of_nothing_says_nothing() -> None:
    assert wilson(0, 0) == (0.0, 1.0)


def test_more_confidence_is_a_wider_interval() -> None:
    narrow, wide = wilson(30, 100, 0.8), wilson(30, 100, 0.99)
    assert wide[0] < narrow[0] < 0.3 < narrow[1] < wide[1]


@given(st.integers(0, 500), st.integers(0, 500))
def test_wilson_holds_the_rate_and_mirrors(some: int, others: int) -> None:
    trials = some + others
    low, high = wilson(some, trials)
    assert 0 <= low <= high <= 1
    if trials:
        assert low <= some / trials <= high
    mirrored = wilson(others, trials)
    assert (1 - mirrored[1], 1 - mirrored[0]) == pytest.approx((low, high), abs=1e-12)


@pytest.mark.parametrize(("successes", "trials"), [(-1, 3), (4, 3)])
def test_counts_that_do_not_fit_are_refused(successes: int, trials: int) -> None:
    with pytest.raises(ValueError, match="successes in 3 trials"):
        wilson(successes, trials)


@pytest.mark.parametrize("confidence", [0.0, 1.0])
def test_confidence_is_between_zero_and_one(confidence: float) -> None:
    with pytest.raises(ValueError, match="confidence"):
        wilson(1, 2, confidence)


@pytest.mark.parametrize(("trials", "most"), [(100, 0.03), (300, 0.01), (2, 1.0), (0, 1.0)])
def test_rule_of_three(trials: int, most: float) -> None:
    assert rule_of_three(trials) == pytest.approx(most)


def test_rule_of_three_refuses_negative_trials() -> None:
    with pytest.raises(ValueError, match="-1 trials"):
        rule_of_three(-1)
