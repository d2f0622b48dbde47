"""What is counted when a run closes."""

from __future__ import annotations

from collections import Counter

from otelmon.assemble.timeline import build
from otelmon.detect.engine import judge
from otelmon.detect.rates import Rates
from tests.detect.build import invented, laws, refunded


def test_a_run_that_closed_is_counted_with_its_calls_and_what_was_not_evaluable() -> None:
    span, other = refunded(times=2), invented(start=100)
    timeline = build("conv", [*span.readings, *other.readings[:3]])
    counters: Counter[tuple[str, ...]] = Counter()
    ended = {run.run_id: "root" for run in timeline.runs if run.trace_id == span.trace_id}
    judgement = judge(build("conv", [*span.readings, *other.readings[:3]], ended), laws())  # type: ignore[arg-type]
    Rates(counters).count_closed(judgement, ended)  # type: ignore[arg-type]
    assert counters["runs", "agent"] == counters["runs_closed", "root"] == 1
    assert counters["tool_calls", "issue_refund", "destructive", "succeeded", "agent"] == 2
    assert sum(n for key, n in counters.items() if key[0] == "tool_calls") == 2
    before = counters.copy()
    Rates(counters).count_closed(judgement, {})
    assert counters == before


def test_what_could_not_be_evaluated_is_counted_by_rule_and_reason() -> None:
    readings = invented().readings[:3]
    [run] = build("conv", readings).runs
    counters: Counter[tuple[str, ...]] = Counter()
    Rates(counters).count_closed(judge(build("conv", readings, {run.run_id: "idle"}), laws()), {run.run_id: "idle"})
    assert counters["not_evaluable", "false_success", "incomplete_run", "agent"] == 1
    assert counters["runs_closed", "idle"] == 1


def test_names_from_data_are_bounded() -> None:
    counters: Counter[tuple[str, ...]] = Counter()
    rates = Rates(counters)
    for n in range(3000):
        rates._add("runs", ("agent",), f"agent {n}")
    assert len(counters) < 2000
    assert sum(counters.values()) == 3000
