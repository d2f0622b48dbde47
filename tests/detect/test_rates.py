"""What is counted when a run closes."""

from __future__ import annotations

from collections import Counter

import msgspec

from otelmon.assemble.timeline import build
from otelmon.detect.emission import TraceEmission, emit
from otelmon.detect.engine import judge
from otelmon.detect.rates import Rates
from otelmon.vocabulary.config import Suppression
from otelmon.vocabulary.messages import TraceRecord
from tests.assemble.builders import Spans
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


def test_a_name_that_only_a_model_gave_is_no_label_until_it_is_known() -> None:
    counters: Counter[tuple[str, ...]] = Counter()
    rates = Rates(counters)

    def count(worked: bool, catalogue: tuple[str, ...] = ()) -> set[str]:
        span = Spans("t" + str(worked) + str(catalogue))
        root = span.agent(0, 9)
        if worked:
            span.tool("invented", 1, 2, parent=root, result={"ok": True})
        else:
            span.tool("invented", 1, 2, parent=root, more={"status_error": True, "error_type": "UnknownTool"})
        timeline = build("conv", span.readings)
        ended = {run.run_id: "root" for run in timeline.runs}
        counters.clear()
        rates.count_closed(judge(build("conv", span.readings, ended), laws()), ended, catalogue)  # type: ignore[arg-type]
        return {key[1] for key in counters if key[0] == "tool_calls"}

    assert count(worked=False) == {"other"}
    assert count(worked=False, catalogue=("invented",)) == {"invented"}
    assert count(worked=True) == {"invented"}
    assert count(worked=False) == {"invented"}


def test_what_is_accepted_is_counted_when_its_run_closes_and_told_in_the_record() -> None:
    span = refunded(times=2)
    [run] = build("conv", span.readings).runs
    timeline = build("conv", span.readings, {run.run_id: "root"})
    accepted = Suppression(rule="duplicate_write", reason="known", expires="2999-01-01")
    judgement = judge(timeline, msgspec.structs.replace(laws(), suppress=(accepted,)))
    assert "duplicate_write" not in {finding.rule_id for finding in judgement.findings}
    counters: Counter[tuple[str, ...]] = Counter()
    Rates(counters).count_closed(judgement, {})
    assert ("findings_suppressed", "duplicate_write") not in counters
    Rates(counters).count_closed(judgement, {run.run_id: "root"})
    assert counters["findings_suppressed", "duplicate_write"] == 1
    records, _ = emit(judgement, {span.trace_id: (0, TraceEmission())})
    [record] = (r for r in records if isinstance(r, TraceRecord))
    assert record.suppressed == {run.run_id: {"duplicate_write": 1}}
