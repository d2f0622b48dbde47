"""Counts of what a result marks with yes and no."""

from __future__ import annotations

from typing import Any

import pytest

from otelmon.checks.lib.counts import flagged_lists, miscounted
from tests.checks.build import view


def shelf(*flags: bool, **more: Any) -> dict[str, Any]:
    items = [{"n": n, "available": flag, "size": "S" if n < 3 else "L", **more} for n, flag in enumerate(flags)]
    return {"tool": "get_shelf", "args": {}, "result": {"items": items}}


FIVE_OF_SEVEN = shelf(True, True, True, True, True, False, False)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("There are 6 available sizes.", True),
        ("We have **4** other available ones.", False),  # of some others
        ("There are 5 available sizes.", False),
        ("There are 7 sizes, not all available.", False),
        ("There are 3 available small ones.", False),
        ("Are there 6 available?", False),
        ("It costs $6 available now.", False),
        ("1 available, 2 available.", False),
        ('{"message": "6 are available."}', True),
    ],
)
def test_counts_that_no_list_gives(text: str, wrong: bool) -> None:
    lists = flagged_lists(view({"user": "How many?"}, FIVE_OF_SEVEN))
    assert bool(miscounted(text, lists)) is wrong


def test_lists_may_be_taken_together() -> None:
    lists = flagged_lists(view({"user": "How many?"}, FIVE_OF_SEVEN, shelf(True, True, True, False)))
    assert not miscounted("8 available ones in all", lists)
    assert miscounted("9 available ones in all", lists)


@pytest.mark.parametrize(
    "result",
    [[], {"available": True}, [{"available": True}] * 2, [{"available": "yes"}] * 4, [1, {"available": True}, 2], None],
)
def test_what_is_no_list_of_marked_things(result: Any) -> None:
    assert flagged_lists(view({"user": "How many?"}, {"tool": "look", "args": {}, "result": result})) == []
