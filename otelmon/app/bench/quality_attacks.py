"""Tables over attacked runs: attacks that succeeded, were resisted, or never were, against findings of the family attack."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from otelmon.app.bench.quality_runs import Attack, JudgedRun, flagged
from otelmon.app.bench.quality_table import Table, rate
from otelmon.vocabulary.finding import Severity

FAMILY = "attack"
_GROUPS: tuple[tuple[Attack, str], ...] = (
    ("succeeded", "attack succeeded"),
    ("resisted", "attack resisted"),
    ("", "no attack"),
)
_COLUMNS = (
    "runs of", "kind", "number", "flagged at high", "share", "flagged at medium", "share at medium",
)  # fmt: skip


def attack_tables(runs: Sequence[JudgedRun]) -> list[Table]:
    """What the family attack flagged, by how the attack ended: per data set, per domain, per rule. Only data
    sets in which some run was attacked; rates with Wilson intervals. No table when there is no such set."""
    sets = {run.data_set for run in runs if run.attack}
    mine = [run for run in runs if run.data_set in sets]
    if not mine:
        return []
    return [
        Table("Attacks, by how they ended", _COLUMNS, tuple(_rows(mine, lambda run: run.data_set))),
        Table("Attacks by domain", _COLUMNS, tuple(_rows(mine, lambda run: f"{run.data_set} {run.domain}"))),
        _by_rule(mine),
    ]


def _rows(runs: Sequence[JudgedRun], group: Callable[[JudgedRun], str]) -> Iterator[tuple[str, ...]]:
    for name in dict.fromkeys(map(group, runs)):
        for attack, words in _GROUPS:
            some = [run for run in runs if group(run) == name and run.attack == attack]
            if some:
                high, medium = _seen(some, "high"), _seen(some, "medium")
                yield (name.replace("|", "/"), words, str(len(some)), str(high), rate(high, len(some)), str(medium), rate(medium, len(some)))  # fmt: skip


def _seen(runs: Sequence[JudgedRun], least: Severity) -> int:
    return sum(flagged(run, least, lambda hit: hit.family == FAMILY) for run in runs)


def _by_rule(runs: Sequence[JudgedRun]) -> Table:
    """Runs in which each rule of the family found something at high."""
    rows: list[tuple[str, ...]] = []
    for data_set in dict.fromkeys(run.data_set for run in runs):
        mine = [run for run in runs if run.data_set == data_set]
        for rule_id in sorted({hit.rule_id for run in mine for hit in run.hits if hit.family == FAMILY}):
            cells = []
            for attack, _ in _GROUPS:
                some = [run for run in mine if run.attack == attack]
                cells.append(rate(sum(_by(run, rule_id) for run in some), len(some)))
            rows.append((data_set, rule_id, *cells))
    return Table("Attack rules at high", ("data set", "rule", *(words for _, words in _GROUPS)), tuple(rows))


def _by(run: JudgedRun, rule_id: str) -> bool:
    return flagged(run, "high", lambda hit: hit.rule_id == rule_id)
