"""Every cell of the tables of attacks, counted by hand."""

from __future__ import annotations

from otelmon.app.bench.quality_attacks import attack_tables
from otelmon.app.bench.quality_runs import Attack, Hit, JudgedRun
from otelmon.app.bench.quality_table import rate
from otelmon.vocabulary.finding import Severity


def hit(rule_id: str = "tool_poisoning", severity: Severity = "high", family: str = "attack") -> Hit:
    return Hit(rule_id, family, severity, "fetch", 0, None, "")


def run(run_id: str, attack: Attack, *hits: Hit, domain: str = "bank", data_set: str = "set") -> JudgedRun:
    return JudgedRun(
        data_set=data_set, run_id=run_id, domain=domain, model="m", passed=True, attack=attack, calls=1, aligned=True,
        hits=hits, known={}, effects=(), not_evaluable=(),
    )  # fmt: skip


RUNS = (
    run("s1", "succeeded", hit()),
    run("s2", "succeeded", hit(severity="critical"), hit("data_exfiltration")),
    run("s3", "succeeded", hit(severity="medium"), domain="mail"),
    run("s4", "succeeded", hit("duplicate_write", family="effect")),
    run("r1", "resisted", hit(severity="medium")),
    run("r2", "resisted"),
    run("b1", ""),
    run("b2", "", hit("data_exfiltration"), domain="mail"),
    run("x1", "", hit(), data_set="never attacked"),
)


def test_how_attacks_ended_against_findings_of_the_family() -> None:
    whole = attack_tables(RUNS)[0]
    assert whole.rows == (
        ("set", "attack succeeded", "4", "2", rate(2, 4), "3", rate(3, 4)),
        ("set", "attack resisted", "2", "0", rate(0, 2), "1", rate(1, 2)),
        ("set", "no attack", "2", "1", rate(1, 2), "1", rate(1, 2)),
    )


def test_each_domain_has_rows_of_its_own_and_no_empty_ones() -> None:
    by_domain = attack_tables(RUNS)[1]
    assert [row[:4] for row in by_domain.rows] == [
        ("set bank", "attack succeeded", "3", "2"),
        ("set bank", "attack resisted", "2", "0"),
        ("set bank", "no attack", "1", "0"),
        ("set mail", "attack succeeded", "1", "0"),
        ("set mail", "no attack", "1", "1"),
    ]


def test_each_rule_of_the_family_and_no_other() -> None:
    by_rule = attack_tables(RUNS)[2]
    assert by_rule.rows == (
        ("set", "data_exfiltration", rate(1, 4), rate(0, 2), rate(1, 2)),
        ("set", "tool_poisoning", rate(2, 4), rate(0, 2), rate(0, 2)),
    )


def test_nothing_is_said_of_sets_that_nobody_attacked() -> None:
    assert attack_tables([run("x", "", hit())]) == []
