"""The bars: what each figure must reach, beside what it is. The bars are data, in bars.toml."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.resources import files

import msgspec

from otelmon.app.bench.quality_claims import Statement, counted
from otelmon.app.bench.quality_drift import CHANGES, GROUPS, RELEASES
from otelmon.app.bench.quality_effects import calls_right, tools_right, writes_called_read
from otelmon.app.bench.quality_runs import ATTACK, JudgedRun, flagged
from otelmon.app.bench.quality_table import Table, rate
from otelmon.app.bench.quality_truth import FORM_KIND, INVENTED, INVENTED_KIND

Counts = tuple[int, int]


class Bar(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"packs": "with"}):
    """One bar. `sets` are the folders of data sets, `packs` the rule folders loaded beside the built-in ones. `note`
    is shown where the bar is not met and it is known why."""

    what: str
    sets: tuple[str, ...]
    measure: str
    packs: tuple[str, ...] = ()
    at_least: float | None = None
    at_most: float | None = None
    note: str = ""

    def met(self, part: int, whole: int) -> bool:
        """Whether a share reaches the bar."""
        share = part / whole
        return (self.at_least is None or share >= self.at_least) and (self.at_most is None or share <= self.at_most)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    bar: tuple[Bar, ...]


class Measured(msgspec.Struct, frozen=True):
    """What is measured on: the judged runs, the statements read by hand, the tables on changes of tools."""

    runs: Sequence[JudgedRun]
    statements: Sequence[Statement] = ()
    drift: Sequence[Table] = ()


@lru_cache(maxsize=1)
def bars() -> tuple[Bar, ...]:
    """All bars, in the order of the file."""
    text = (files("otelmon.app.bench") / "bars.toml").read_bytes()
    return msgspec.toml.decode(text, type=_File).bar


def bars_table(measured: Measured, packs: Sequence[str]) -> Table:
    """A row for each bar of these packs that the data can answer."""
    rows, notes = [], []
    for bar in bars():
        if set(bar.packs) != set(packs):
            continue
        part, whole = figure(bar, measured)
        if whole:
            wanted = f"≥ {bar.at_least:g}" if bar.at_least is not None else f"≤ {bar.at_most:g}"
            met = "yes" if bar.met(part, whole) else "**no**"
            if bar.note and not bar.met(part, whole):
                notes.append(f"{bar.what[:1].upper()}{bar.what[1:]}: {bar.note}")
            rows.append((bar.what, ", ".join(bar.sets), wanted, rate(part, whole), f"{part} of {whole}", met))
    return Table("Bars", ("what", "data sets", "bar", "measured", "counts", "met"), tuple(rows), "\n\n".join(notes))


def figure(bar: Bar, measured: Measured) -> Counts:
    """(part, whole) of one bar; (0, 0) when its data are not there."""
    runs = [run for run in measured.runs if run.data_set.split("/")[0] in bar.sets]
    return MEASURES[bar.measure](Measured(runs, measured.statements, measured.drift)) if runs else (0, 0)


def _share(of: Sequence[JudgedRun], wanted: Callable[[JudgedRun], bool]) -> Counts:
    return sum(map(wanted, of)), len(of)


def _at_high(run: JudgedRun) -> bool:
    return flagged(run, "high")


def _attack_at_high(run: JudgedRun) -> bool:
    return flagged(run, "high", lambda hit: hit.family == ATTACK)


def _with_label(measured: Measured, passed: bool | None = None) -> list[JudgedRun]:
    labelled = [run for run in measured.runs if run.passed is not None and not run.attack]
    return [run for run in labelled if passed is None or run.passed is passed]


def _precision(measured: Measured) -> Counts:
    return _share([run for run in _with_label(measured) if _at_high(run)], lambda run: not run.passed)


def _recall(measured: Measured) -> Counts:
    return _share(_with_label(measured, passed=False), _at_high)


def _false_alarms(measured: Measured) -> Counts:
    return _share(_with_label(measured, passed=True), _at_high)


def _invented_right(measured: Measured) -> Counts:
    told = [hit.right for run in measured.runs for hit in run.hits if hit.rule_id in INVENTED]
    told = [right for right in told if right is not None]
    return sum(map(bool, told)), len(told)


def _known(kind: str) -> Callable[[Measured], Counts]:
    def count(measured: Measured) -> Counts:
        there, found = (sum(run.known.get(kind, (0, 0))[i] for run in measured.runs) for i in (0, 1))
        return found, there

    return count


def _attacks(attack: str) -> Callable[[Measured], Counts]:
    def count(measured: Measured) -> Counts:
        return _share([run for run in measured.runs if run.attack == attack], _attack_at_high)

    return count


def _attacks_not_followed(measured: Measured) -> Counts:
    return _share([run for run in measured.runs if run.attack == "resisted" and not run.acted], _attack_at_high)


def _writes_called_read(measured: Measured) -> Counts:
    return len(writes_called_read(measured.runs)), tools_right(measured.runs)[1]


def _changes(*groups: str) -> Callable[[Measured], Counts]:
    """Changes of tools of these groups: those that are told of, and all."""

    def count(measured: Measured) -> Counts:
        rows = [row for table in measured.drift if table.title == CHANGES for row in table.rows if row[1] in groups]
        return sum(int(row[3]) for row in rows), sum(int(row[2]) for row in rows)

    return count


def _one_incident(measured: Measured) -> Counts:
    rows = [row for table in measured.drift if table.title == RELEASES for row in table.rows if row[1] == GROUPS[0]]
    return sum(int(row[3]) for row in rows), sum(int(row[2]) for row in rows)


MEASURES: dict[str, Callable[[Measured], Counts]] = {
    "precision": _precision,
    "recall": _recall,
    "false_alarms": _false_alarms,
    "invented_right": _invented_right,
    "invented_found": _known(INVENTED_KIND),
    "refused_found": _known(FORM_KIND),
    "statements_found": lambda measured: counted(measured.runs, measured.statements)[0],
    "statements_accused": lambda measured: counted(measured.runs, measured.statements)[1],
    "attacks_found": _attacks("succeeded"),
    "attacks_imagined": _attacks(""),
    "attacks_not_followed": _attacks_not_followed,
    "tools_right": lambda measured: tools_right(measured.runs),
    "calls_right": lambda measured: calls_right(measured.runs),
    "writes_called_read": _writes_called_read,
    "changes_told": _changes("breaking", "text only"),
    "forms_told": _changes("form only"),
    "one_incident": _one_incident,
}
