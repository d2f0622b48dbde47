"""Calculations written out in messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otelmon.checks.lib.equations import wrong_equations


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("2 x $40 = $90", "80"),
        ("$10 + $20 + $5 = $36", "35"),
        ("3 nights × $40 + $15 = $145", "135"),
        ("1,200 - 200 = 900", "1000"),
        ("$100 / 4 = $20", "25"),
        ("Summe: 10,50 € + 2,50 € = 14 €", "13"),
    ],
)
def test_a_wrong_result_is_found(text: str, result: str) -> None:
    assert [equation.result for equation in wrong_equations(text)] == [result]


@pytest.mark.parametrize(
    "text",
    [
        "2 x $40 = $80",
        "$100 / 3 = $33.33",
        "$100 / 3 = $33",
        "**$10** + **$5** = **$15**",
        "x = 3, y = 4",
        "10% + 5 = 20",
        "30+1 = 5.5.2",
        "1 + 2 = 3 + 4",
        "room 3-4 = suite",
        "(2 + 3) * 4 = 20",
    ],
)
def test_right_results_and_what_is_no_calculation(text: str) -> None:
    assert wrong_equations(text) == []


@given(st.lists(st.integers(1, 999), min_size=2, max_size=5), st.integers(2, 50))
def test_sums_are_told_from_other_numbers(parts: list[int], off: int) -> None:
    written = " + ".join(f"${part}" for part in parts)
    assert wrong_equations(f"{written} = ${sum(parts)}") == []
    assert len(wrong_equations(f"{written} = ${sum(parts) + off}")) == 1
