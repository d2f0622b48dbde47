"""Tables over judged runs: what was flagged, how much of it was right, and what was missed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from otelmon.app.bench.quality_effects import effect_tables
from otelmon.app.bench.quality_runs import JudgedRun, flagged
from otelmon.app.bench.quality_table import Table, by_set, cell, per_thousand, rate
from otelmon.vocabulary.finding import Severity

MOST_ROWS = 15  # of a table that is not folded
LEVELS: tuple[Severity, ...] = ("medium", "high")


def tables(runs: Sequence[JudgedRun]) -> list[Table]:
    """All tables there is something to say in."""
    labelled = [run for run in runs if run.passed is not None and not run.attack]
    made = [
        _bundle("All rules together", labelled, lambda run: run.data_set, LEVELS),
        _rules(labelled),
        _failures(labelled),
        _calls(runs),
        _bundle("By domain", labelled, lambda run: f"{run.data_set} {run.domain}", LEVELS[-1:]),
        _bundle("By model", labelled, lambda run: f"{run.data_set} {run.model}", LEVELS[-1:]),
        *effect_tables(runs),
    ]
    return [table for table in made if table.rows]


def _bundle(
    title: str, runs: Sequence[JudgedRun], group: Callable[[JudgedRun], str], levels: Sequence[Severity]
) -> Table:
    """Flagged or not against the label of the whole run, at each of the severities."""
    rows: list[tuple[str, ...]] = []
    for name in dict.fromkeys(map(group, runs)):
        mine = [run for run in runs if group(run) == name]
        rows.extend((cell(name), f"{least} and above", *_against_reward(mine, least)) for least in levels)
    columns = ("runs of", "severity", "failed", "passed", "flagged failed", "flagged passed", "precision", "recall", "false alarms / 1,000 passed")  # fmt: skip
    return Table(title, columns, tuple(rows), folded=len(rows) > MOST_ROWS)


def _against_reward(runs: Sequence[JudgedRun], least: Severity) -> tuple[str, ...]:
    failed = [run for run in runs if not run.passed]
    passed = [run for run in runs if run.passed]
    hit = sum(flagged(run, least) for run in failed)
    false = sum(flagged(run, least) for run in passed)
    return (
        *map(str, (len(failed), len(passed), hit, false)),
        rate(hit, hit + false),
        rate(hit, len(failed)),
        per_thousand(false, len(passed)),
    )


def _rules(runs: Sequence[JudgedRun]) -> Table:
    """One row a data set and rule; call-level truth where there is some."""
    rows: list[tuple[str, ...]] = []
    for name, mine in by_set(runs):
        passed = sum(bool(run.passed) for run in mine)
        for rule_id in sorted({hit.rule_id for run in mine for hit in run.hits}):
            hits = [(run, hit) for run in mine for hit in run.hits if hit.rule_id == rule_id]
            on = {run.run_id: bool(run.passed) for run, _ in hits}
            false = sum(on.values())
            told = Counter(hit.right for _, hit in hits)
            rows.append(
                (name, rule_id, *map(str, (len(hits), len(on), len(on) - false, false)), rate(len(on) - false, len(on)),
                 f"{told[True]} of {told[True] + told[False]}", per_thousand(false, passed))
            )  # fmt: skip
    columns = ("data set", "rule", "findings", "runs", "on failed", "on passed", "precision by run", "right by the call's labels", "false alarms / 1,000 passed")  # fmt: skip
    return Table("Each rule, at every severity, in runs without an attack", columns, tuple(rows))


def _failures(runs: Sequence[JudgedRun]) -> Table:
    """Failed runs by the kinds of failure their labels name; a run may show several."""
    rows: list[tuple[str, ...]] = []
    for name, mine in by_set(runs):
        if not any(run.failures for run in mine):
            continue
        for kind, _ in failure_kinds(mine):
            some = [run for run in mine if kind in _kinds_of(run)]
            hit = sum(flagged(run, "high") for run in some)
            rows.append((name, kind, str(len(some)), str(hit), str(len(some) - hit), rate(hit, len(some))))
    columns = ("data set", "kind of failure", "runs", "flagged at high", "missed", "recall")
    return Table("Failed runs by kind of failure", columns, tuple(rows))


def failure_kinds(runs: Sequence[JudgedRun]) -> list[tuple[str, int]]:
    """The kinds of failure of failed runs with how many runs show them, the most frequent first."""
    counts = Counter(kind for run in runs for kind in _kinds_of(run))
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _kinds_of(run: JudgedRun) -> tuple[str, ...]:
    if run.passed is not False:
        return ()
    return tuple(kind.replace("_", " ") for kind in run.failures) or ("not said",)


def _calls(runs: Sequence[JudgedRun]) -> Table:
    rows: list[tuple[str, ...]] = []
    for name, mine in by_set(runs):
        for kind in dict.fromkeys(kind for run in mine for kind in run.known):
            there, found = (sum(run.known.get(kind, (0, 0))[i] for run in mine) for i in (0, 1))
            if there:
                rows.append((name, kind, str(there), str(found), rate(found, there)))
    return Table("Calls that are wrong by the labels", ("data set", "kind", "calls", "flagged", "recall"), tuple(rows))
