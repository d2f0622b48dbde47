"""Rules beside models: the same runs, counted by hand."""

from __future__ import annotations

from typing import Any

import pytest

from otelmon.app.bench.quality_judge import Opinion, is_opinions, judge_table, opinions_in
from otelmon.app.bench.quality_runs import Hit, JudgedRun
from otelmon.app.bench.quality_table import per_thousand, rate


def run(run_id: str, passed: bool | None, *, hit: bool = False) -> JudgedRun:
    hits = (Hit("loop", "progress", "high", None, None, None, ""),) if hit else ()
    return JudgedRun(
        data_set="s/dev", run_id=run_id, domain="d", model="m", passed=passed, attack="", calls=0, aligned=True, hits=hits,
        known={}, effects=(), not_evaluable=(),
    )  # fmt: skip


def test_only_runs_that_both_have_judged_count() -> None:
    runs = [
        run("s/a", False, hit=True),
        run("s/b", False),
        run("s/c", True),
        run("s/d", True, hit=True),
        run("s/e", None),
    ]
    said = [
        Opinion("a", "quick", False, 0.01), Opinion("b", "quick", True, 0.03), Opinion("c", "quick", True, 0.02),
        Opinion("b", "slow", True, 0.1), Opinion("e", "slow", True, 9.0), Opinion("z", "slow", True, 9.0),
    ]  # fmt: skip
    assert judge_table(runs, said).rows == (
        ("the rules", "2", "1", "1", "0", rate(1, 1), rate(1, 2), per_thousand(0, 1), "0.00"),
        ("quick", "2", "1", "1", "1", rate(1, 2), rate(1, 2), per_thousand(1, 1), "20.00"),
        ("slow", "1", "0", "1", "0", rate(1, 1), rate(1, 1), per_thousand(0, 0), "100.00"),
    )


def test_no_opinion_no_table() -> None:
    assert judge_table([run("a", True)], []).rows == ()


@pytest.mark.parametrize(
    ("verdict", "failed"),
    [
        ("fail", True),
        ("Failure", True),
        ("unsatisfactory", True),
        ("pass", False),
        ("satisfied", False),
        ("unknown", False),
    ],
)
def test_the_words_of_verdicts(verdict: str, failed: bool) -> None:
    record: dict[str, Any] = {"simulation_id": 7, "judges": {"quick": {"verdict": verdict}}}
    assert list(opinions_in(record)) == [Opinion("7", "quick", failed, 0.0)]


def test_what_is_no_opinion() -> None:
    assert not is_opinions({"id": "x", "messages": []})
    assert list(opinions_in({"simulation_id": 7, "judges": {"quick": {"verdict": None}}})) == []
