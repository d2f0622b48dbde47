"""What a scrape shows: zero series from the start, hostile label values bounded, histograms that add up."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from otelmon.app.laws import load_laws
from otelmon.app.runtime import zero_series
from otelmon.metrics.exporter import BUCKETS, Exporter, Histogram, Readings
from otelmon.metrics.table import METRICS, full_name
from otelmon.vocabulary.config import Config
from otelmon.vocabulary.finding import SEVERITIES
from otelmon.vocabulary.labels import LIMITS, MAX_SERIES, Labels

Key = tuple[str, ...]


def samples(text: bytes) -> list[Sample]:
    return [sample for family in text_string_to_metric_families(text.decode()) for sample in family.samples]


def shown(counters: Mapping[Key, float], gauges: Mapping[Key, float] | None = None) -> list[Sample]:
    return samples(Exporter(lambda: Readings(counters, gauges or {}, Histogram()), {}).text())


def test_the_first_finding_of_every_loaded_rule_is_an_increase() -> None:
    laws = load_laws(Config())
    found = samples(Exporter(lambda: Readings({}, {}, Histogram()), zero_series(laws)).text())
    findings = {(s.labels["rule"], s.labels["family"], s.labels["severity"], s.labels["status"]): s.value for s in found if s.name == "otelmon_findings_total"}  # fmt: skip
    expected = {(rule.id, rule.family, severity, status) for rule in laws.rules.rules.values() for severity in SEVERITIES for status in ("open", "retracted")}  # fmt: skip
    assert findings.keys() == expected
    assert set(findings.values()) == {0.0}
    errors = {s.labels["rule"] for s in found if s.name == "otelmon_check_errors_total"}
    assert errors == laws.rules.rules.keys()


def test_every_zero_series_has_the_labels_of_its_metric() -> None:
    table = {metric.name: metric for metric in METRICS}
    for name, rows in zero_series(load_laws(Config())).items():
        assert all(len(row) == len(table[name].labels) for row in rows)


def test_every_metric_is_described_and_those_without_labels_start_at_zero() -> None:
    text = Exporter(lambda: Readings({}, {}, Histogram()), {}).text().decode()
    for metric in METRICS:
        assert f"# HELP {full_name(metric)} {metric.help}" in text
        if not metric.labels and metric.kind != "histogram":
            assert f"\n{full_name(metric)} 0.0\n" in text


def test_what_is_not_in_the_table_or_has_other_labels_is_not_shown() -> None:
    names = {sample.name for sample in shown({("nonsense",): 1, ("strays", "too", "many"): 5})}
    assert not [name for name in names if "nonsense" in name]
    assert [s.value for s in shown({("strays", "too", "many"): 5}) if s.name == "otelmon_strays_total"] == [0]


def test_ten_thousand_hostile_tools_and_agents_cost_a_bounded_number_of_series() -> None:
    counters: dict[Key, float] = {
        ("tool_calls", f"tool {tool}", "write", "succeeded", f"agent {tool % 500}"): 1.0 for tool in range(10_000)
    }
    found = [s for s in shown(counters) if s.name == "otelmon_tool_calls_total"]
    assert sum(s.value for s in found) == 10_000
    assert len(found) <= MAX_SERIES + 1
    assert len({s.labels["tool"] for s in found}) <= LIMITS["tool"][0] + 1
    assert len({s.labels["agent"] for s in found}) <= LIMITS["agent"][0] + 1
    assert {s.labels["tool"] for s in found} >= {"tool 0", "other"}


@pytest.mark.parametrize("name", ["a\nb", "\x00", "\u202etxt.exe", "\ud800", "\x1b[31m", "x" * 101, "\u200b"])
def test_a_name_that_can_not_be_shown_is_other(name: str) -> None:
    [sample] = [s for s in shown({("tool_calls", name, "read", "failed", name): 3}) if s.name == "otelmon_tool_calls_total"]  # fmt: skip
    assert (sample.labels["tool"], sample.labels["agent"], sample.value) == ("other", "overflow", 3)


def test_quotes_and_backslashes_are_escaped_and_read_back() -> None:
    name = 'a"b\\c{}=,#'
    [sample] = [s for s in shown({("tool_calls", name, "read", "failed", ""): 1}) if s.name == "otelmon_tool_calls_total"]  # fmt: skip
    assert sample.labels["tool"] == name


VALUES = st.tuples(st.text(max_size=4), st.sampled_from(["read", "write"]), st.just("failed"), st.text(max_size=2))


@given(st.lists(VALUES, max_size=60))
def test_a_label_set_is_always_shown_the_same_way_and_none_is_lost(rows: list[tuple[str, str, str, str]]) -> None:
    labels, names = Labels(), ("tool", "effect", "outcome", "agent")
    first = [labels.bound("tool_calls", names, row) for row in rows]
    assert [labels.bound("tool_calls", names, row) for row in rows] == first
    for row, bound in zip(rows, first, strict=True):
        assert bound[1:3] == row[1:3]
        assert bound[0] in (row[0], "other")
        assert bound[3] in (row[3], "overflow")


def test_combinations_of_known_names_are_bounded_too() -> None:
    labels, names = Labels(), ("tool", "effect", "outcome", "agent")
    rows = [(f"t{tool}", "read", "failed", f"a{agent}") for tool in range(100) for agent in range(50)]
    found = {labels.bound("tool_calls", names, row) for row in rows}
    assert len(found) == MAX_SERIES + 1
    assert ("other", "read", "failed", "overflow") in found
    assert labels.bound("runs", ("agent",), ("a1",)) == ("a1",)


@given(st.lists(st.floats(0, 1e6), max_size=50))
def test_a_histogram_counts_every_value_once(seconds: list[float]) -> None:
    histogram = Histogram()
    for value in seconds:
        histogram.observe(value)
    rows = histogram.cumulative()
    assert [amount for _, amount in rows] == sorted(amount for _, amount in rows)
    assert (rows[-1][0], int(rows[-1][1])) == ("+Inf", len(seconds))
    for bound, (_, amount) in zip(BUCKETS, rows, strict=False):
        assert amount == sum(value <= bound for value in seconds)
    assert histogram.total == pytest.approx(sum(seconds))
