"""Hostile content everywhere content can appear: nothing runs, nothing leaves, nothing breaks the layout."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser

from tests.services.browser import Visit
from tests.services.monitor import Call, LiveMonitor, Talk, double_write, until

pytestmark = pytest.mark.browser
SCRIPT = "<script>alert(1)</script>"
IMAGE = '"><img src=http://192.0.2.1/x onerror=alert(1)>'
TEMPLATE = "{{ 7 * 7 }}{% for x in () %}${alert(1)}"
ATTRIBUTE = "' onfocus=alert(1) autofocus x='"
LINK = "javascript:alert(1)//https://192.0.2.1/"
BIDI = "\u202egnp.exe\u2066\u200b\u2028\x00\x07\x1b[31m"
SLASHES = "../../a/b?c=d&e=%2F%22'\"#f\\"
WIDE = "W" * 3_000
LONG = "x" * 1_000_000
SURROGATE = "\ud800 lone"
HOSTILE = {
    "script": SCRIPT, "image": IMAGE, "template": TEMPLATE, "attribute": ATTRIBUTE, "link": LINK, "bidi": BIDI,
    "slashes": SLASHES, "wide": WIDE, "surrogate": SURROGATE, "unicode": "注文 \U0001f4a3 ñ" * 20,
}  # fmt: skip


def talk(number: int, text: str) -> Talk:
    """One text in every place that content can have, in a run that ends in several findings."""
    arguments = {"customer": text, text[:200]: text, "order_id": f"{text[:300]} W-1", "amount": 59.9, "deep": [[{"a": text}]]}  # fmt: skip
    charge = Call(text[:400], arguments, {"said": text})
    return double_write(
        number, user=text, calls=(charge, charge, Call("issue_refund", arguments, text, error=text[:300]),
                                  Call("delete_customer", {"customer": text}, text)),
        answer=f"I have refunded order W-1. {text}", agent=text[:500], conversation=f"{text[:500]}{number}",
        service=text[:500],
    )  # fmt: skip


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveMonitor]:
    live = LiveMonitor(tmp_path_factory.mktemp("hostile"))
    try:
        live.judged(*(talk(number, text) for number, text in enumerate(HOSTILE.values(), 1)), talk(99, LONG))
        until(lambda: len(live.read("incidents", limit=1000)["incidents"]) > len(HOSTILE))
        yield live
    finally:
        live.stop()


@pytest.fixture
def visit(hostile: LiveMonitor, chromium: Browser) -> Iterator[Visit]:
    made = Visit(chromium, hostile.web)
    yield made
    made.close()


def test_lists_and_rules_are_harmless(hostile: LiveMonitor, visit: Visit) -> None:
    for path in ("/", "/runs", "/rules", "/rules/false_success", "/rules/duplicate_write"):
        visit.open(path)


def test_every_incident_is_harmless(hostile: LiveMonitor, visit: Visit) -> None:
    incidents = hostile.read("incidents", limit=1000)["incidents"]
    for incident in incidents:
        page = visit.open(f"/incidents/{incident['incident_id']}")
        for button in page.locator("summary").all()[:10]:
            button.click()
        visit.check()


def test_every_run_is_harmless(hostile: LiveMonitor, visit: Visit) -> None:
    runs = hostile.read("runs", limit=1000)
    assert len(runs) == len(HOSTILE) + 1
    for run in runs:
        page = visit.open(httpx.URL(f"/runs/{run['run']['run_id']}").raw_path.decode())
        for button in page.locator("summary").all()[:10]:
            button.click()
        visit.check()


@pytest.mark.parametrize("name", [name for name in HOSTILE if name != "surrogate"])
def test_what_is_typed_into_filters_is_harmless(visit: Visit, name: str) -> None:
    for path, labels in (("/", ("Agent", "Tool")), ("/runs", ("Agent", "Conversation"))):
        page = visit.open(path)
        for label in labels:
            page.get_by_label(label).fill(HOSTILE[name].replace("\x00", ""))
        page.get_by_role("button", name="Show").click()
        page.wait_for_load_state()
        visit.check()


@pytest.mark.parametrize("text", [SCRIPT, IMAGE, SLASHES, TEMPLATE, "%00", "%ff%fe", "..%2f..%2fetc%2fpasswd"])
def test_what_stands_in_an_address_is_harmless(hostile: LiveMonitor, visit: Visit, text: str) -> None:
    quoted = text if text.startswith(("%", "..%")) else str(httpx.QueryParams({"q": text}))[2:]
    for path in (f"/incidents/{quoted}", f"/runs/{quoted}", f"/rules/{quoted}", f"/?states={quoted}", f"/?family={quoted}"):  # fmt: skip
        answer = visit.page.goto(hostile.web + path)
        assert answer is not None
        assert answer.status in (400, 404), path
        visit.check()


def test_content_is_shown_as_text(hostile: LiveMonitor, visit: Visit) -> None:
    [run] = hostile.read("runs", trace=f"{1:032x}")
    page = visit.open(f"/runs/{run['run']['run_id']}")
    assert SCRIPT in page.locator(".timeline").inner_text()
    assert page.locator("main script, main img, main iframe").count() == 0


def test_characters_that_deceive_are_made_visible(hostile: LiveMonitor, visit: Visit) -> None:
    for number, text in enumerate(HOSTILE.values(), 1):
        if text == BIDI:
            [run] = hostile.read("runs", trace=f"{number:032x}")
            shown = visit.open(f"/runs/{run['run']['run_id']}").content()
            assert not {"\u202e", "\u2066", "\u200b", "\u2028", "\x07", "\x1b"} & set(shown)
            assert "\N{REPLACEMENT CHARACTER}gnp.exe" in shown


def test_a_megabyte_is_cut_and_the_page_stays_small(hostile: LiveMonitor) -> None:
    [run] = hostile.read("runs", trace=f"{99:032x}")
    page = hostile.client.get(f"/runs/{run['run']['run_id']}")
    assert page.status_code == 200
    assert len(page.content) < 400_000
    assert "1000000 characters in all" in page.text


def test_the_api_answers_strict_json_whatever_came_in(hostile: LiveMonitor) -> None:
    runs = hostile.read("runs", limit=1000)
    for run in runs:
        answer = hostile.client.get("/api/v1/run", params={"id": run["run"]["run_id"]})
        assert answer.status_code == 200
        json.loads(answer.content.decode("utf-8", "strict"), parse_constant=lambda word: pytest.fail(word))
