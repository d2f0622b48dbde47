"""How values look: bounded, without characters that deceive, and readable."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otelmon.metrics.alerts import ALERTS, runbook
from otelmon.web.shown import BRIEF, LONG, brief, cut, ended, line, sections, took, value, when, why
from tests.store.build import call
from tests.web.test_evidence import JSON

ANY_TEXT = st.text(st.characters(), max_size=300)


@given(ANY_TEXT)
def test_what_has_no_shape_is_never_shown(text: str) -> None:
    assert all(c in "\n\t" or c.isprintable() for c in cut(text))
    assert all(c.isprintable() for c in line(text))
    assert len(line(text)) <= 120


@given(ANY_TEXT.filter(lambda text: all(c in "\n\t" or c.isprintable() for c in text)))
def test_other_text_is_shown_as_it_is(text: str) -> None:
    assert cut(text) == text


def test_long_text_is_cut_and_says_how_long_it_was() -> None:
    assert cut("x" * LONG) == "x" * LONG
    assert cut("x" * (LONG + 1)) == "x" * LONG + f"\n... cut, {LONG + 1} characters in all"
    assert line("a\n b\t c") == "a b c"
    assert line("x" * 121) == "x" * 119 + "…"
    assert line(" " * 10_000 + "x").endswith("…")


@given(JSON)
def test_any_json_has_a_look(data: Any) -> None:
    assert isinstance(value(data), str)
    assert len(brief(data)) <= BRIEF


def test_arguments_on_one_line() -> None:
    assert brief({"a": 1, "b": "x\ny", "c": [True, None]}) == "a=1, b=x y, c=[true, null]"
    assert brief(None) == ""
    assert value({"a": "é"}) == '{\n  "a": "é"\n}'


@pytest.mark.parametrize(
    ("nanoseconds", "shown"),
    [
        (None, "-"),
        (0, "-"),
        (1_700_000_000_123_456_789, "2023-11-14 22:13:20.123Z"),
        (2**63 - 1, "2262-04-11 23:47:16.854Z"),
    ],
)
def test_times_are_utc_to_the_millisecond(nanoseconds: int | None, shown: str) -> None:
    assert when(nanoseconds) == shown


@pytest.mark.parametrize(("nanoseconds", "shown"), [(-5, "0 ms"), (5_400_000, "5 ms"), (1_500_000_000, "1.5 s")])
def test_how_long_a_call_took(nanoseconds: int, shown: str) -> None:
    assert took(call(start_time_unix_nano=10, end_time_unix_nano=10 + nanoseconds)) == shown


def test_reasons_have_words_and_unknown_ones_are_spelled() -> None:
    assert why("content_off").startswith("the instrumentation")
    assert why("brand_new") == "brand new"
    assert (ended(None), ended("root"), ended("brand_new")) == ("not yet", "by itself", "brand new")


def test_a_page_is_split_at_its_headings_and_paragraphs_are_joined() -> None:
    text = "intro\n## One\na\nb\n\nc\n- d\n- e\n## Two\n"
    assert sections(text) == [("One", "a b\n\nc\n- d\n- e"), ("Two", "")]
    assert sections("") == []
    for alert in ALERTS:
        assert [heading for heading, _ in sections(runbook(alert))] == ["Meaning", "Impact", "Diagnosis", "Mitigation"]
