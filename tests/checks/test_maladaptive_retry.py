"""maladaptive_retry beyond its inline tests."""

from __future__ import annotations

from typing import Any

import pytest

from otelmon.checks.maladaptive_retry import Params, maladaptive_retry
from otelmon.checks.view import View
from otelmon.vocabulary.finding import Evidence
from tests.checks.build import view

USER = {"user": "Summarise the page."}
FETCH: dict[str, Any] = {"tool": "fetch_page", "args": {"url": "https://example.com"}}
LINK: dict[str, Any] = {"tool": "link_plans", "args": {"source": "P1", "target": "P1"}}
POST: dict[str, Any] = {"tool": "publish_post", "args": {"channel": "news", "caption": "Open day on the 4th"}}


def found(seen: View, params: Params | None = None) -> list[Evidence]:
    return [e for call in seen.calls for e in maladaptive_retry(call, seen, params or Params())]


def test_the_evidence_shows_what_was_refused() -> None:
    seen = view(USER, {**LINK, "error": "must differ"}, {**LINK, "error": "must differ"})
    (evidence,) = found(seen)
    assert evidence.anchor == seen.calls[1].key
    assert "must differ" in evidence.summary
    assert evidence.details["attempt"] == 2
    assert evidence.details["other"]["anchor"] == seen.calls[0].key


@pytest.mark.parametrize(
    ("error", "fires"),
    [
        ("503 service unavailable", False),
        ("429 Too Many Requests", False),
        ("rate limit reached", False),
        ("please try again later", False),
        ("500 internal server error", False),
        ("servicio no disponible temporalmente", False),
        ("Dienst nicht erreichbar", False),
        ("404 not found", True),
        ("'5' is not of type 'integer'", True),
        ("connection refused", True),
        ("permission denied", True),
    ],
)
def test_errors_that_may_pass(error: str, *, fires: bool) -> None:
    assert bool(found(view(USER, {**FETCH, "error": error}, {**FETCH, "result": "page"}))) is fires


def test_a_denied_call_is_not_asked_for_again() -> None:
    assert len(found(view(USER, {**LINK, "outcome": "denied"}, {**LINK, "outcome": "denied"}))) == 1


def test_waiting_longer_each_time_is_allowed_beyond_the_budget() -> None:
    busy = {**FETCH, "error": "503"}
    patient = [{**busy, "after": after} for after in (1, 2, 4, 8, 16)]
    assert found(view(USER, *patient)) == []
    assert len(found(view(USER, *[busy] * 5))) == 2


def test_a_mended_type_is_another_call() -> None:
    one = {"tool": "search_notes", "args": {"q": "a", "top_n": "5"}, "error": "'5' is not of type 'integer'"}
    assert found(view(USER, one, {**one, "args": {"q": "a", "top_n": 5}, "error": "no index"})) == []


def test_a_write_that_was_still_going_on_may_have_removed_the_cause() -> None:
    write = {"tool": "write_file", "args": {"path": "s.txt"}, "result": {"ok": True}, "took": 4}
    read = {"tool": "read_file", "args": {"path": "s.txt"}}
    lost = {**read, "error": "no such file", "parallel": True}
    assert found(view(USER, write, lost, {**read, "result": "ok", "after": 9})) == []


def test_another_run_of_one_request_is_an_answer_to_its_failure() -> None:
    asked = {"assistant": "", "calls": [{"tool": "link_plans", "id": "c1"}]}
    lost = {**LINK, "id": "c1", "error": "must differ"}
    assert len(found(view(USER, asked, lost, {**lost, "parallel": True}))) == 1


def test_a_polled_call_may_fail_until_it_is_there() -> None:
    catalogue = {"tools": [{"name": "get_report", "poll_ok": True}]}
    look = {"tool": "get_report", "args": {"id": 7}, "error": "not found"}
    assert found(view(USER, look, look, catalogue=catalogue)) == []
    assert len(found(view(USER, look, look))) == 1


@pytest.mark.parametrize(
    ("error", "caption", "fires"),
    [
        ("409 duplicate content", "Open day on the 4th!", True),
        ("this post was already published", "Open day on the 4th.", True),
        ("contenido duplicado", "Open day on the  4th", True),
        ("409 duplicate content", "Open day on the 5th", False),
        ("caption has no full stop", "Open day on the 4th.", False),
    ],
)
def test_changes_that_dodge_a_duplicate_guard(error: str, caption: str, *, fires: bool) -> None:
    again = {**POST, "args": {"channel": "news", "caption": caption}, "result": {"id": "p-2"}}
    hits = found(view(USER, {**POST, "error": error}, again))
    assert bool(hits) is fires
    assert all(e.severity == "high" and e.details["cosmetic"] for e in hits)


def test_a_dodge_looks_at_the_latest_call_of_the_tool_only() -> None:
    other = {"tool": "publish_post", "args": {"channel": "news", "caption": "Something else entirely"}, "result": {}}
    again = {**POST, "args": {"channel": "news", "caption": "Open day on the 4th!"}, "result": {"id": "p-2"}}
    assert found(view(USER, {**POST, "error": "duplicate"}, other, again)) == []


def scrape(country: Any, **more: Any) -> dict[str, Any]:
    return {"tool": "scrape", "args": {"site": "s1", "country": country}, "error": "400 bad country", **more}


def test_each_further_guess_is_told_until_the_streak_is_plain() -> None:
    seen = view(USER, *(scrape(f"q{chr(97 + n)}") for n in range(26)))
    hits = found(seen)
    assert [e.details["failures"] for e in hits] == list(range(2, 21))
    assert all(e.severity == "low" and e.details["guessed"] == ["country"] for e in hits)


@pytest.mark.parametrize(
    ("events", "fires"),
    [
        ([scrape("zz"), scrape("yy"), scrape("xx")], True),
        ([scrape("zz"), scrape("yy"), scrape(None)], False),
        ([scrape("zz"), scrape("yy"), scrape(True)], False),
        ([scrape("zz"), scrape("yy"), scrape("page")], False),  # the user said it
        ([scrape("zz"), scrape("yy", error="503 unavailable"), scrape("xx")], False),
        ([scrape("zz"), scrape("yy", error=None, result="ok"), scrape("xx")], False),
        ([scrape("2026-04-06"), scrape("20260406"), scrape("2026/04/06 14:00")], False),
        ([scrape("zz"), scrape("yy"), {**scrape("xx"), "args": {"country": "xx"}}], False),
        ([scrape("zz"), scrape("yy"), scrape("a whole new sentence")], False),
    ],
)
def test_what_is_another_guess(events: list[dict[str, Any]], *, fires: bool) -> None:
    assert bool(found(view(USER, *events))) is fires


def test_the_schema_is_a_source_of_values() -> None:
    schema = {"type": "object", "properties": {"country": {"enum": ["zz", "yy", "xx"]}}}
    catalogue = {"tools": [{"name": "scrape", "inputSchema": schema}]}
    assert found(view(USER, scrape("zz"), scrape("yy"), scrape("xx"), catalogue=catalogue)) == []


def test_a_guess_on_a_write_weighs_more() -> None:
    tries = [{**scrape(c), "tool": "create_site"} for c in ("zz", "yy", "xx")]
    (evidence,) = found(view(USER, *tries))
    assert evidence.severity == "medium"
