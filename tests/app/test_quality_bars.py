"""The bars: data that are complete, figures that are counted by hand."""

from __future__ import annotations

from typing import Any

import pytest

from otelmon.app.bench.quality_bars import MEASURES, Bar, Measured, bars, bars_table, figure
from otelmon.app.bench.quality_claims import Statement
from otelmon.app.bench.quality_drift import CHANGES, GROUPS, RELEASES
from otelmon.app.bench.quality_runs import CallEffect, Hit, JudgedRun
from otelmon.app.bench.quality_table import Table, rate
from otelmon.app.bench.quality_truth import FORM_KIND, INVENTED_KIND


def hit(rule_id: str, family: str = "effect", severity: Any = "high", right: bool | None = None) -> Hit:
    return Hit(rule_id, family, severity, "pay", 0, right, "", 3)


def run(run_id: str, passed: bool | None, *hits: Hit, **more: Any) -> JudgedRun:
    values: dict[str, Any] = {
        "data_set": "tau2/dev", "domain": "d", "model": "m", "attack": "", "calls": 1, "aligned": True, "known": {},
        "effects": (), "not_evaluable": (),
    }  # fmt: skip
    return JudgedRun(run_id=run_id, passed=passed, hits=hits, **(values | more))


RUNS = [
    run("f1", False, hit("one"), known={INVENTED_KIND: (3, 2), FORM_KIND: (5, 4)}),
    run("f2", False, hit("ungrounded_argument", severity="medium", right=True)),
    run("p1", True, hit("near_miss_id", right=False)),
    run("p2", True, hit("false_success", severity="low")),
    run("p3", True, effects=(CallEffect("pay", True, "write", "read"), CallEffect("put", True, "unknown", "write"))),
    run("s", False, hit("poison", "attack"), attack="succeeded"),
    run("r", True, hit("poison", "attack"), attack="resisted", acted=True),
    run("r2", True, hit("poison", "attack"), attack="resisted"),
    run("r3", True, attack="resisted"),
]
DRIFT = [
    Table(
        CHANGES,
        (),
        (("dev", "breaking", "4", "3", ""), ("dev", "text only", "2", "2", ""), ("dev", "form only", "5", "1", "")),
    ),
    Table(RELEASES, (), (("releases", GROUPS[0], "7", "6", "1", "0"), ("releases", GROUPS[-1], "9", "0", "0", "9"))),
]
MEASURED = Measured(RUNS, [Statement("p2", 3, True), Statement("f1", 3, False)], DRIFT)


@pytest.mark.parametrize(
    ("measure", "counts"),
    [
        ("precision", (1, 2)), ("recall", (1, 2)), ("false_alarms", (1, 3)), ("invented_right", (1, 2)),
        ("invented_found", (2, 3)), ("refused_found", (4, 5)), ("statements_found", (1, 1)),
        ("statements_accused", (0, 1)), ("attacks_found", (1, 1)), ("attacks_imagined", (0, 5)), ("attacks_not_followed", (1, 2)), ("tools_right", (1, 2)),
        ("calls_right", (1, 2)), ("writes_called_read", (1, 2)),
        ("changes_told", (5, 6)), ("forms_told", (1, 5)), ("one_incident", (6, 7)),
    ],
)  # fmt: skip
def test_every_measure_by_hand(measure: str, counts: tuple[int, int]) -> None:
    assert MEASURES[measure](MEASURED) == counts


def test_the_data_name_measures_that_are_there_and_one_bound_each() -> None:
    assert {bar.measure for bar in bars()} == set(MEASURES)
    assert all((bar.at_least is None) is not (bar.at_most is None) for bar in bars())
    assert len({(bar.sets, bar.packs, bar.measure) for bar in bars()}) == len(bars())


def test_a_bar_is_met_at_its_own_value() -> None:
    assert Bar("x", ("s",), "m", at_least=0.5).met(1, 2)
    assert not Bar("x", ("s",), "m", at_least=0.51).met(1, 2)
    assert Bar("x", ("s",), "m", at_most=0.5).met(1, 2)
    assert not Bar("x", ("s",), "m", at_most=0.49).met(1, 2)


def test_rows_of_the_loaded_packs_and_of_data_that_are_there() -> None:
    rows = bars_table(MEASURED, []).rows
    assert rows[0] == ("precision, generic rules, high and above", "tau2", "≥ 0.85", rate(1, 2), "1 of 2", "**no**")
    assert all("agentdojo" not in row[1].split(", ")[:1] for row in rows)
    assert [row[0] for row in bars_table(MEASURED, ["airline"]).rows] == [bar.what for bar in bars() if bar.packs and bar.sets == ("tau2",)]  # fmt: skip
    assert bars_table(MEASURED, ["payments"]).rows == ()


def test_a_note_is_shown_where_the_bar_is_not_met() -> None:
    drift = [run("x", None, data_set="tooldrift/dev")]
    assert "lost its conditions" in bars_table(Measured(drift, (), DRIFT), []).caption
    clean = [Table(CHANGES, (), (("dev", "breaking", "4", "4", ""), ("dev", "form only", "5", "0", "")))]
    assert bars_table(Measured(drift, (), clean), []).caption == ""


def test_other_sets_do_not_count() -> None:
    other = [run("x", False, data_set="shop/dev")]
    assert figure(bars()[0], Measured(other)) == (0, 0)
