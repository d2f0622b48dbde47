"""Every cell of the tables, computed by hand."""

from __future__ import annotations

import msgspec

from otelmon.app.bench.quality_runs import CallEffect, Hit, JudgedRun, flagged
from otelmon.app.bench.quality_table import Table, per_thousand, rate
from otelmon.app.bench.quality_tables import tables
from otelmon.vocabulary.finding import Severity


def hit(rule_id: str, severity: Severity = "high", right: bool | None = None, family: str = "effect") -> Hit:
    return Hit(rule_id, family, severity, "pay", 0, right, "")


def run(
    run_id: str,
    passed: bool | None,
    *hits: Hit,
    attack: str = "",
    known: dict[str, tuple[int, int]] | None = None,
    effects: tuple[CallEffect, ...] = (),
    declared: tuple[tuple[str, bool, str], ...] = (),
    failures: tuple[str, ...] = (),
) -> JudgedRun:
    return JudgedRun(
        data_set="set", run_id=run_id, domain="d", model="a|b", passed=passed, attack=attack,  # type: ignore[arg-type]
        calls=1, aligned=True, hits=hits, known=known or {}, effects=effects, not_evaluable=(), declared=declared,
        failures=failures,
    )  # fmt: skip


def table(title: str, *runs: JudgedRun) -> Table:
    return next(t for t in tables(runs) if t.title.startswith(title))


RUNS = (
    run("f1", False, hit("one", right=True), hit("one", right=False), known={"kind": (2, 1)}),
    run("f2", False, hit("two", "medium")),
    run("f3", False, hit("two", "low")),
    run("f4", False, known={"kind": (2, 2)}),
    run("p1", True, hit("one", right=True), hit("two", "low")),
    *(run(f"p{n}", True) for n in range(2, 11)),
    run("no label", None, hit("one")),
)


def test_bundle_rows() -> None:
    medium, high = table("All rules together", *RUNS).rows
    # 4 failed, 10 passed; medium: f1 and f2 hit, p1 false.
    assert medium == ("set", "medium and above", "4", "10", "2", "1", rate(2, 3), rate(2, 4), per_thousand(1, 10))
    assert high == ("set", "high and above", "4", "10", "1", "1", rate(1, 2), rate(1, 4), per_thousand(1, 10))


def test_rule_rows() -> None:
    one, two = table("Each rule", *RUNS).rows
    assert one == ("set", "one", "3", "2", "1", "1", rate(1, 2), "2 of 3", per_thousand(1, 10))
    assert two == ("set", "two", "3", "3", "2", "1", rate(2, 3), "0 of 0", per_thousand(1, 10))


def test_rows_of_wrong_calls() -> None:
    assert table("Calls that are wrong", *RUNS).rows == (("set", "kind", "4", "3", rate(3, 4)),)


def test_failed_runs_by_kind() -> None:
    runs = (
        run("a", False, hit("one"), failures=("write_missing", "write_wrong_args")),
        run("b", False, failures=("write_missing",)),
        run("c", False),
        run("d", True, hit("one"), failures=("write_missing",)),
    )
    assert table("Failed runs by kind", *runs).rows == (
        ("set", "write missing", "2", "1", "1", rate(1, 2)),
        ("set", "not said", "1", "0", "1", rate(0, 1)),
        ("set", "write wrong args", "1", "1", "0", rate(1, 1)),
    )
    assert all(t.title != "Failed runs by kind of failure" for t in tables(RUNS))


def test_domains_and_models_at_high_only() -> None:
    assert [row[:6] for row in table("By domain", *RUNS).rows] == [("set d", "high and above", "4", "10", "1", "1")]
    assert table("By model", *RUNS).rows[0][0] == "set a/b"


def test_attacked_runs_are_no_runs_of_the_bundle() -> None:
    runs = (run("b", True), run("r", True, hit("one"), attack="resisted"), run("s", False, attack="succeeded"))
    assert table("All rules together", *runs).rows[1][2:6] == ("0", "1", "0", "0")


def test_thresholds_and_kinds() -> None:
    low = run("x", True, hit("one", "medium"))
    assert flagged(low, "medium")
    assert not flagged(low, "high")
    assert not flagged(low, "low", lambda h: h.family == "attack")


def test_rates_with_their_intervals() -> None:
    assert rate(0, 0) == per_thousand(0, 0) == "–"
    assert rate(1, 10) == "0.100 (0.018–0.404)"
    assert per_thousand(1, 10) == "100.0 (17.9–404.2)"


def test_markdown() -> None:
    assert Table("T", ("a", "b"), (("x", "1"),)).markdown() == "### T\n\n| a | b |\n| --- | --: |\n| x | 1 |"
    folded = Table("T", ("a", "b"), (("x", "1"),), "What it says.", folded=True).markdown()
    assert folded.startswith("### T\n\nWhat it says.\n\n<details><summary>1 rows</summary>\n\n| a | b |\n")
    assert folded.endswith("| x | 1 |\n\n</details>")


def test_a_long_table_is_folded() -> None:
    many = [run(f"r{n}", True) for n in range(17)]
    models = [msgspec.structs.replace(each, model=str(n)) for n, each in enumerate(many)]
    assert table("By model", *models).folded
    assert not table("By domain", *models).folded
