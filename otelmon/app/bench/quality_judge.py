"""The rules beside a language model that was asked to judge the same runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from otelmon.app.bench.quality_runs import JudgedRun, flagged
from otelmon.app.bench.quality_table import Table, per_thousand, rate

CAPTION = (
    "The same runs, by everything found at high and by a model that read the whole conversation; one row a prompt."
    " Only runs that both have judged."
)
_SAYS_FAILED = ("fail", "unsatisf", "non-compliant", "noncompliant", "violat", "incorrect")


class Opinion(msgspec.Struct, frozen=True):
    """What one prompt made a model say of one run, and what that cost in US dollars. `run_id` is the end of the
    run's id."""

    run_id: str
    judge: str
    failed: bool
    cost: float


def is_opinions(record: Any) -> bool:
    """Whether a record holds opinions of models: `{simulation_id, judges: {prompt: {verdict, cost_usd}}}`."""
    return isinstance(record, dict) and isinstance(record.get("judges"), dict) and "simulation_id" in record


def opinions_in(record: dict[str, Any]) -> Iterator[Opinion]:
    """The opinions of a record."""
    for judge, said in record["judges"].items():
        if isinstance(said, dict) and isinstance(said.get("verdict"), str):
            failed = said["verdict"].lower().startswith(_SAYS_FAILED)
            yield Opinion(str(record["simulation_id"]), str(judge), failed, float(said.get("cost_usd") or 0))


def judge_table(runs: Sequence[JudgedRun], opinions: Sequence[Opinion]) -> Table:
    """Rules and judges against the labels of the runs that both have seen."""
    by_id: dict[str, dict[str, Opinion]] = {}
    for opinion in opinions:
        by_id.setdefault(opinion.run_id, {})[opinion.judge] = opinion
    both = [(run, by_id[_end(run)]) for run in runs if run.passed is not None and _end(run) in by_id]
    rows: list[tuple[str, ...]] = []
    if both:
        rows.append(("the rules", *_against(both, lambda pair: flagged(pair[0], "high")), "0.00"))
    for judge in dict.fromkeys(opinion.judge for opinion in opinions):
        mine = [pair for pair in both if judge in pair[1]]
        if mine:
            spent = sum(said[judge].cost for _, said in mine) / len(mine)
            rows.append((judge, *_against(mine, _by_judge(judge)), f"{1000 * spent:.2f}"))
    columns = ("judge", "failed", "passed", "flagged failed", "flagged passed", "precision", "recall",
               "false alarms / 1,000 passed", "US dollars / 1,000 runs")  # fmt: skip
    return Table("Beside a language model as a judge", columns, tuple(rows), CAPTION)


def _end(run: JudgedRun) -> str:
    return run.run_id.rsplit("/", 1)[-1]


def _by_judge(judge: str) -> Callable[[tuple[JudgedRun, dict[str, Opinion]]], bool]:
    return lambda pair: pair[1][judge].failed


def _against(
    pairs: Sequence[tuple[JudgedRun, dict[str, Opinion]]], says: Callable[[tuple[JudgedRun, dict[str, Opinion]]], bool]
) -> tuple[str, ...]:
    failed = [says(pair) for pair in pairs if not pair[0].passed]
    passed = [says(pair) for pair in pairs if pair[0].passed]
    hit, false = sum(failed), sum(passed)
    return (
        *map(str, (len(failed), len(passed), hit, false)),
        rate(hit, hit + false),
        rate(hit, len(failed)),
        per_thousand(false, len(passed)),
    )
