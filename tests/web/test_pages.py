"""The pages in a real Chromium: what they show, that their buttons work, and that they need little."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import get_args

import pytest
from playwright.sync_api import Browser, Page, expect

from otelmon.metrics.alerts import ALERTS
from otelmon.vocabulary.event import EndReason, NotEvaluable
from otelmon.web.shown import ENDED, WHY
from tests.services.browser import Visit
from tests.services.full import TALKS
from tests.services.monitor import Call, LiveMonitor, Talk, double_write, until

pytestmark = pytest.mark.browser
Go = Callable[..., Visit]


@pytest.fixture
def go(chromium: Browser) -> Iterator[Go]:
    """Opens tabs; at the end none may have met trouble."""
    visits: list[Visit] = []

    def start(live: LiveMonitor, **options: object) -> Visit:
        visits.append(Visit(chromium, live.web, **options))
        return visits[-1]

    yield start
    for visit in visits:
        visit.close()


def incident_of(live: LiveMonitor, rule: str) -> str:
    found = [i["incident_id"] for i in live.read("incidents")["incidents"] if rule in i["rule_ids"]]
    return str(found[0])


def run_of(live: LiveMonitor, talk: int) -> str:
    [run] = live.read("runs", trace=f"{talk:032x}")
    return str(run["run"]["run_id"])


def test_an_empty_store_says_what_to_do(empty: LiveMonitor, go: Go) -> None:
    visit = go(empty)
    expect(visit.open("/").locator("main")).to_contain_text("No incidents")
    expect(visit.open("/runs").locator("main")).to_contain_text("otelmon demo")
    expect(visit.open("/?agent=x").locator("main")).to_contain_text("No incident matches")
    visit.open("/rules")


def test_incidents_are_listed_and_filtered(full: LiveMonitor, go: Go) -> None:
    visit = go(full)
    page = visit.open("/")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(5)
    page.get_by_label("At least").select_option("critical")
    page.get_by_role("button", name="Show").click()
    expect(rows).to_have_count(2)
    expect(page.get_by_label("At least")).to_have_value("critical")
    page.get_by_label("Tool").fill("charge_card")
    page.keyboard.press("Enter")
    expect(rows).to_have_count(1)
    page.get_by_label("Family").select_option("truth")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("main")).to_contain_text("No incident matches")
    visit.check()


def test_a_double_write_shows_the_record_the_words_both_calls_and_what_to_do(full: LiveMonitor, go: Go) -> None:
    page = go(full).open(f"/incidents/{incident_of(full, 'duplicate_write')}")
    facts = page.locator(".facts")
    expect(facts).to_contain_text("C-80")
    expect(facts).to_contain_text("W-4417")
    expect(page.locator(".finding .message.user")).to_contain_text("Please charge customer C-80 59.90")
    expect(page.locator(".finding .message.assistant")).to_contain_text("Customer C-80 was charged 59.90.")
    calls = page.locator(".finding .calls .call")
    expect(calls).to_have_count(2)
    expect(page.locator(".here")).to_have_count(1)
    expect(page.locator(".compare")).to_have_text("The arguments are the same.")
    page.set_viewport_size({"width": 1300, "height": 900})
    first, second = calls.nth(0).bounding_box(), calls.nth(1).bounding_box()
    assert first is not None
    assert second is not None
    assert first["y"] == second["y"]
    assert first["x"] < second["x"]
    expect(page.locator(".guide")).to_contain_text("Undo the second effect")
    page.get_by_role("link", name="The whole run").click()
    expect(page.locator(":target")).to_have_count(1)


def test_an_invented_value_is_told_apart_from_what_was_given(full: LiveMonitor, go: Go) -> None:
    page = go(full).open(f"/incidents/{incident_of(full, 'ungrounded_argument')}")
    row = page.locator(".origins tr.flag").first
    expect(row).to_contain_text("order_id")
    expect(row).to_contain_text("nobody gave it")
    expect(page.locator("main")).not_to_contain_text('"transformation"')


def test_a_claim_is_shown_beside_what_was_tried(full: LiveMonitor, go: Go) -> None:
    page = go(full).open(f"/incidents/{incident_of(full, 'false_success')}")
    expect(page.locator(".finding blockquote")).to_contain_text("refunded 20.00")
    expect(page.locator(".finding")).to_contain_text("Tried: issue_refund failed")


def test_every_incident_and_run_opens(full: LiveMonitor, go: Go) -> None:
    visit = go(full)
    for incident in full.read("incidents")["incidents"]:
        visit.open(f"/incidents/{incident['incident_id']}")
    for talk in TALKS:
        visit.open(f"/runs/{run_of(full, talk.number)}")


def test_a_run_shows_messages_and_calls_in_order(full: LiveMonitor, go: Go) -> None:
    page = go(full).open(f"/runs/{run_of(full, 2)}")
    texts = page.locator(".timeline > li").all_inner_texts()
    assert len(texts) == 4
    for text, wanted in zip(
        texts, ("Refund order W-1200", "get_order", "issue_refund", "I have refunded"), strict=True
    ):
        assert wanted in text


def test_a_run_of_three_hundred_calls_is_whole_and_folded(full: LiveMonitor, go: Go) -> None:
    page = go(full).open(f"/runs/{run_of(full, 6)}")
    expect(page.locator(".timeline > li.is-call")).to_have_count(300)
    expect(page.locator("details", has_text="290 more").first).to_be_visible()


def test_what_could_not_be_decided_is_said_with_the_reason(full: LiveMonitor, go: Go) -> None:
    visit = go(full)
    page = visit.open(f"/runs/{run_of(full, 5)}")
    expect(page.locator("main")).to_contain_text("Rules that could not decide")
    expect(page.locator("main")).to_contain_text("the instrumentation does not capture")
    expect(visit.open("/rules/false_success").locator("table")).to_contain_text("quiet")
    assert WHY.keys() == set(get_args(NotEvaluable))
    assert ENDED.keys() == set(get_args(EndReason))


def test_every_rule_and_every_runbook_has_its_page(full: LiveMonitor, go: Go) -> None:
    visit = go(full)
    page = visit.open("/rules")
    links = [str(link.get_attribute("href")) for link in page.locator("tbody a").all()]
    assert len(links) == len(full.monitor.laws.rules.rules)
    for link in links:
        expect(visit.open(link).locator(".guide")).to_contain_text("Mitigation")
    for alert in ALERTS:
        expect(visit.open(f"/runbooks/{alert.name}").locator(".guide")).to_contain_text(alert.mitigation[:20])


@pytest.mark.parametrize("path", ["/incidents/none", "/runs/none", "/runs/a/b%22c", "/rules/none", "/runbooks/none"])
def test_what_is_not_there_is_said(full: LiveMonitor, go: Go, path: str) -> None:
    expect(go(full).open(path, 404).locator("main")).to_contain_text("There is nothing with this id")


def test_a_filter_that_is_none_is_said(full: LiveMonitor, go: Go) -> None:
    expect(go(full).open("/?severity=awful", 400).locator("main")).to_contain_text("severity")


def _act(page: Page, button: str, state: str) -> None:
    page.get_by_role("button", name=button).click()
    expect(page.locator(".facts")).to_contain_text(state)


def test_the_buttons_acknowledge_label_and_resolve(empty: LiveMonitor, go: Go) -> None:
    empty.judged(double_write(1))
    until(lambda: bool(empty.read("incidents")["incidents"]))
    visit = go(empty)
    page = visit.open(f"/incidents/{incident_of(empty, 'duplicate_write')}")
    expect(page.get_by_text("The buttons need JavaScript")).to_be_hidden()
    page.get_by_label("Your name").fill("Ada <b>")
    page.get_by_label("Note").fill("looking at it")
    _act(page, "Acknowledge", "acknowledged")
    expect(page.locator(".history")).to_contain_text("acknowledged by Ada <b>: looking at it")
    expect(page.get_by_label("Your name")).to_have_value("Ada <b>")
    _act(page, "It is right", "true positive")
    _act(page, "False alarm", "false positive")
    _act(page, "Resolve", "resolved")
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.get_by_role("status")).to_contain_text("it is resolved")
    visit.check()
    [incident] = empty.read("incidents")["incidents"]
    assert (incident["state"], incident["label"]) == ("resolved", "false_positive")


def test_the_keyboard_reaches_everything_and_every_field_has_a_name(full: LiveMonitor, go: Go) -> None:
    page = go(full).open("/")
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to the content")
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("(document.activeElement.name || document.activeElement.textContent).trim()"))
    assert {"Incidents", "Runs", "states", "severity", "family", "agent", "tool", "Show"} <= reached
    for path in ("/", "/runs", f"/incidents/{incident_of(full, 'duplicate_write')}"):
        page = go(full).open(path)
        for field in page.locator("input, select, button").all():
            assert field.evaluate("e => (e.labels && e.labels.length > 0) || e.textContent.trim() !== ''")
        assert page.locator("h1").count() == 1
        assert page.evaluate("document.documentElement.lang") == "en"


def test_focus_can_be_seen(full: LiveMonitor, go: Go) -> None:
    page = go(full).open(f"/incidents/{incident_of(full, 'duplicate_write')}")
    page.get_by_label("Your name").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"


def test_all_but_the_buttons_works_without_javascript(full: LiveMonitor, go: Go) -> None:
    visit = go(full, java_script_enabled=False)
    page = visit.page
    page.goto(full.web + "/")
    page.locator("tbody a").first.click()
    expect(page.get_by_text("The buttons need JavaScript")).to_be_visible()
    expect(page.get_by_role("button", name="Acknowledge")).to_be_disabled()
    page.get_by_role("link", name="The whole run").first.click()
    expect(page.locator(".timeline > li").first).to_be_visible()


def test_the_second_page_follows_the_first(empty: LiveMonitor, go: Go) -> None:
    talks = [Talk(number=n, user="Look.", calls=(Call("get_order", {}),), answer="Seen.") for n in range(1, 56)]
    empty.judged(*talks)
    visit = go(empty)
    page = visit.open("/runs")
    expect(page.locator("tbody tr")).to_have_count(50)
    page.get_by_role("link", name="older").click()
    expect(page.locator("tbody tr")).to_have_count(5)
    page.get_by_role("link", name="newer").click()
    expect(page.locator("tbody tr")).to_have_count(50)


def test_trouble_of_the_monitor_is_on_every_page(empty: LiveMonitor, go: Go) -> None:
    assert empty.monitor.database is not None
    empty.monitor.database.min_free_bytes = 10**18  # no disk has that much room
    empty.send(double_write(1))
    until(lambda: bool(empty.monitor.problems()))
    visit = go(empty)
    for path in ("/", "/rules", "/runs"):
        expect(visit.open(path).get_by_role("alert").first).to_contain_text("store")
