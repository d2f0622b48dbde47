"""partial_as_complete beyond its inline tests: how results say that they are a part, and how messages take them."""

from __future__ import annotations

from typing import Any

import pytest

from otelmon.checks.lib.paging import MAX_OPEN, part_of, unfinished
from otelmon.checks.partial_as_complete import Params, answer_on_a_part, write_on_a_part
from otelmon.vocabulary.finding import Evidence
from tests.checks.build import call, view

Step = dict[str, Any]
TWO = [{"id": "m-101"}, {"id": "m-102"}]


def found(*events: Step) -> list[Evidence]:
    seen = view(*events)
    writes = [e for c in seen.calls for e in write_on_a_part(c, seen, Params())]
    return writes + [e for run in seen.runs for e in answer_on_a_part(run, seen, Params())]


@pytest.mark.parametrize(
    "result",
    [
        {"items": TWO, "has_more": True},
        {"items": TWO, "nextPageToken": "p2"},
        {"Items": TWO, "LastEvaluatedKey": {"id": "m-102"}},
        {"value": TWO, "@odata.nextLink": "https://example.com/next"},
        {"items": TWO, "truncated": True},
        {"items": TWO, "last_page": False},
        {"items": TWO, "page": 1, "total_pages": 3},
        {"items": TWO, "total_count": 57},
        {"items": TWO, "total": 57, "limit": 2},
        {"items": TWO, "total": 57, "offset": 2},
        {"data": {"orders": {"edges": TWO, "pageInfo": {"hasNextPage": True, "endCursor": "x"}}}},
        {"items": TWO, "meta": {"pagination": {"next_cursor": "x"}}},
        "Showing 1-10 of 57 orders\nO-1",
        "page 2 of 9\nO-1",
        "O-1\nO-2\n... and 44 more results",
        "Mostrando 10 de 57\nO-1",
        "O-1\n[truncated]",
    ],
)
def test_a_part_says_that_it_is_one(result: Any) -> None:
    text = result if isinstance(result, str) else None
    part = part_of(call("list_orders", result=None if text else result, result_text=text))
    assert part is not None
    assert part.more


@pytest.mark.parametrize(
    "result",
    [
        {"items": TWO, "has_more": False, "next_cursor": "x"},
        {"items": TWO, "next_cursor": None},
        {"items": TWO, "response_metadata": {"next_cursor": ""}},
        {"items": TWO, "total_count": 2},
        {"items": TWO, "total": 57, "offset": 55},
        {"items": TWO, "page": 3, "total_pages": 3},
        {"items": TWO, "total": 57.5, "currency": "EUR", "status": "paid", "id": "O-1"},
        {"status": "ok", "next": "step two"},
        "Showing 57 of 57 orders",
        "page 9 of 9",
        "All 44 results",
    ],
)
def test_a_whole_is_none(result: Any) -> None:
    text = result if isinstance(result, str) else None
    part = part_of(call("get_orders", result=None if text else result, result_text=text))
    assert part is None or not part.more


def listed(result: Any, tool: str = "list_orders", **args: Any) -> Step:
    return {"tool": tool, "args": args, "result": result}


PART = {"orders": TWO, "has_more": True, "next_cursor": "c2"}


@pytest.mark.parametrize(
    ("asked", "answer", "fires"),
    [
        ("How many orders are open?", "There are 2 open orders.", True),
        ("How many orders are open?", "You have two open orders.", True),
        ("How many orders are open?", "I can see 2 open orders on the first page; there may be more.", False),
        ("How many orders are open?", "Would you like to see all your orders?", False),
        ("Show my orders.", "Here are all your orders: m-101 and m-102.", True),
        ("Show my first two orders.", "Here are all your orders: m-101 and m-102.", False),
        ("Show some orders.", "Here are all the orders: m-101 and m-102.", False),
        ("Is there an order over 500?", "No, you don't have any order over 500.", True),
        ("Which order is the biggest?", "Your largest order is m-102.", True),
        ("Which order is the biggest?", "The largest order is m-102.", True),
        ("When is order m-101 due?", "Order m-101 is due today, and every line of the order is paid.", False),
        ("When is order m-101 due?", "All set! The order is due today.", False),
        ("Wie viele Bestellungen (orders) gibt es?", "Es gibt insgesamt 2 Bestellungen.", True),
        ("¿Cuántos pedidos hay?", "Hay 2 pedidos abiertos.", True),
    ],
)  # fmt: skip
def test_an_answer_speaks_of_the_whole_or_not(asked: str, answer: str, *, fires: bool) -> None:
    assert bool(found({"user": asked}, listed(PART), {"assistant": answer})) is fires


def test_the_rest_may_be_fetched_in_any_way() -> None:
    asked, answer = {"user": "How many orders are open?"}, {"assistant": "There are 2 open orders."}
    for rest in (
        listed({"orders": [], "has_more": False}, cursor="c2"),
        listed({"orders": []}, "next_page", token="c2"),
        listed({"orders": TWO, "has_more": False}, limit=500),
    ):
        assert found(asked, listed(PART), rest, answer) == []
    assert (
        len(found(asked, listed(PART), {"tool": "list_orders", "args": {"cursor": "c2"}, "error": "busy"}, answer)) == 1
    )


def test_a_deletion_page_by_page_ends_when_nothing_is_left() -> None:
    asked, done = {"user": "Delete all spam messages."}, {"assistant": "I deleted all spam messages."}
    page = listed({"messages": TWO, "has_more": True}, "list_messages", label="spam")
    delete = {"tool": "delete_messages", "args": {"ids": ["m-101", "m-102"]}, "result": {"ok": True}}
    empty = listed({"messages": []}, "list_messages", label="spam")
    assert found(asked, page, delete, empty, done) == []
    assert len(found(asked, page, delete, done)) == 2


def test_a_write_that_rests_on_nothing_of_the_listing_is_free() -> None:
    page = listed({"messages": TWO, "has_more": True}, "list_messages", channel="general")
    post = {"tool": "post_message", "args": {"channel": "general", "text": "hello"}, "result": {"ok": True}}
    assert found({"user": "Post hello in general."}, page, post, {"assistant": "Posted."}) == []


def test_a_listing_of_an_earlier_turn_is_over() -> None:
    later: list[Step] = [
        {"user": "Cancel everything at AC-3."},
        {"tool": "create_order", "args": {"ref": "PX-4"}, "result": {"id": 1}},
    ]
    empty = listed({"orders": [], "has_more": True}, ref="PX-4")
    assert found({"user": "Is PX-4 there?"}, empty, {"assistant": "I do not know."}, *later) == []


def test_what_is_followed_is_bounded() -> None:
    seen = view({"user": "Look."}, *(listed(PART | {"next_cursor": f"c{n}"}, q=f"q{n}") for n in range(100)))
    assert len(unfinished(10_000, seen)) == MAX_OPEN
