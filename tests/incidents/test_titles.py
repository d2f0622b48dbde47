"""The title says what happened, to what, by whom, and stays one short line."""

from __future__ import annotations

import pytest

from otelmon.incidents.titles import LONGEST, Member, title


def member(summary: str, level: int = 3, amount: int = 1, first: int = 0) -> Member:
    return Member("duplicate_write", level, amount, summary, first)


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ([member("2 charges landed for one order.")], "2 charges landed for one order: charge_card, agent billing-bot"),
        ([member("charge_card landed twice")], "charge_card landed twice: agent billing-bot"),
        ([member("a", 3), member("b", 4, 2)], "b: charge_card, agent billing-bot (and 2 more)"),
        ([member("later", first=5), member("earlier", first=1)], "earlier: charge_card, agent billing-bot (and 1 more)"),
        ([member("two\nlines \t here")], "two lines here: charge_card, agent billing-bot"),
        ([member("")], "duplicate_write: charge_card, agent billing-bot"),
    ],
)  # fmt: skip
def test_titles(members: list[Member], expected: str) -> None:
    assert title(members, "charge_card", "billing-bot") == expected
    assert title(list(reversed(members)), "charge_card", "billing-bot") == expected


def test_a_hostile_summary_is_cut() -> None:
    made = title([member("x" * 10_000)], "charge_card", "billing-bot")
    assert len(made) == LONGEST
    assert made.endswith("…: charge_card, agent billing-bot")
    assert len(title([member("x" * 10_000)], "t" * 500, "billing-bot").partition(":")[0]) == 40
