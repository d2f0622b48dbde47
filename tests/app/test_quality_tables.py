"""Every cell of the tables, computed by hand."""

from __future__ import annotations

from otelmon.app.bench.quality_runs import Hit, JudgedRun
from otelmon.app.bench.quality_tables import Table, flagged, per_thousand, rate, tables
from otelmon.vocabulary.finding import Severity


def hit(rule_id: str, severity: Severity = "high", right: bool | None = None, family: str = "effect") -> Hit:
    return Hit(rule_id, family, severity, "pay", 0, right, "")


def run(
    run_id: str,
    passed: bool | None,
    *hits: Hit,
    attack: str = "",
    known: dict[str, tuple[int, int]] | None = None,
    effects: tuple[tuple[str, bool, str], ...] = (),
    declared: tuple[tuple[str, bool, str], ...] = (),
) -> JudgedRun:
    return JudgedRun(
        data_set="set", run_id=run_id, domain="d", model="a|b", passed=passed, attack=attack,  # type: ignore[arg-type]
        calls=1, aligned=True, hits=hits, known=known or {}, effects=effects, not_evaluable=(), declared=declared,
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


def test_domains_and_models_at_high_only() -> None:
    assert [row[:6] for row in table("By domain", *RUNS).rows] == [("set d", "high and above", "4", "10", "1", "1")]
    assert table("By model", *RUNS).rows[0][0] == "set a/b"


def test_attacks_are_counted_apart() -> None:
    runs = (
        run("b", True),
        run("r", True, hit("one"), attack="resisted"),
        run("s1", True, hit("poison", family="attack"), attack="succeeded"),
        run("s2", False, hit("poison", "medium", family="attack"), attack="succeeded"),
    )
    assert table("Attacks", *runs).rows == (
        ("set", "benign", "1", "0", rate(0, 1), "0", rate(0, 1)),
        ("set", "attacked, resisted", "1", "0", rate(0, 1), "1", rate(1, 1)),
        ("set", "attacked, succeeded", "2", "1", rate(1, 2), "1", rate(1, 2)),
    )
    assert table("All rules together", *runs).rows[1][2:6] == ("0", "1", "0", "0")


def test_no_attack_no_table() -> None:
    assert all(t.title != "Attacks" for t in tables(RUNS))


def test_words_for_effects() -> None:
    effects = (("pay", True, "destructive"), ("pay", True, "write"), ("look", False, "read"), ("peek", True, "read"))
    more = (("send", True, "external_send"), ("odd", True, "unknown"))
    assert table("Calls that changed", run("e", True, effects=effects + more)).rows == (
        ("set", "5", "3", "1", "1", rate(3, 5), "2 of 4"),
    )


def test_tools_as_declared_count_once() -> None:
    one = (("get", False, "read"), ("look", False, "unknown"), ("pay", True, "destructive"))
    two = (("get", False, "read"), ("scan", False, "write"), ("poke", True, "read"), ("odd", True, "unknown"))
    # 3 reads: 1 called read, 1 write, 1 unknown; 3 writes: 1 called write, 1 read, 1 unknown.
    assert table("Tools by the word", run("a", None, declared=one), run("b", None, declared=two)).rows == (
        ("set", "3", "1", "1", "1", "3", "1", "1", "1", rate(2, 6)),
    )


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
