"""Alerts: promtool proves each one both ways, and each has its page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from otelmon.metrics.alerts import ALERTS, Alert, rules_yaml, runbook
from otelmon.metrics.dashboard import panels
from otelmon.metrics.table import METRICS, Metric, full_name
from otelmon.vocabulary.finding import FAMILIES
from tests.services.prometheus import promtool

ROOT = Path(__file__).parents[2]
RULES, CASES = ROOT / "dashboards" / "alerts.yaml", ROOT / "dashboards" / "alerts_test.yaml"
QUERIES = {alert.name: alert.expr for alert in ALERTS} | {panel.title: panel.expr for panel in panels()}
SHOWN = {name: metric for metric in METRICS for name in (
    [full_name(metric)] if metric.kind != "histogram" else [f"{full_name(metric)}_{part}" for part in ("bucket", "sum", "count")]
)}  # fmt: skip


@pytest.mark.prometheus
def test_promtool_reads_the_rules() -> None:
    done = promtool("check", "rules", RULES)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(ALERTS)} rules found" in done.stdout


@pytest.mark.prometheus
def test_every_case_of_promtool_holds() -> None:
    done = promtool("test", "rules", CASES)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.prometheus
@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_the_cases_of_an_alert_tell_it_from_nothing_and_from_always(alert: Alert, tmp_path: Path) -> None:
    """With the alert's question replaced by one that never, or always, has an answer, its cases fail."""
    for expr in ("absent(vector(1))", "vector(1)"):
        other = yaml.safe_load(RULES.read_text())
        [rule] = [r for group in other["groups"] for r in group["rules"] if r["alert"] == alert.name]
        rule["expr"] = expr
        (tmp_path / "alerts.yaml").write_text(yaml.safe_dump(other))
        cases = yaml.safe_load(CASES.read_text())
        cases["tests"] = [case for case in cases["tests"] if case["alert_rule_test"][0]["alertname"] == alert.name]
        (tmp_path / "cases.yaml").write_text(yaml.safe_dump(cases))
        assert promtool("test", "rules", tmp_path / "cases.yaml").returncode == 1


def test_every_alert_fires_in_one_case_and_is_silent_in_another_and_has_its_page() -> None:
    tests = [check for case in yaml.safe_load(CASES.read_text())["tests"] for check in case["alert_rule_test"]]
    names = {alert.name for alert in ALERTS}
    assert {check["alertname"] for check in tests if check["exp_alerts"]} == names
    assert {check["alertname"] for check in tests if not check["exp_alerts"]} == names
    assert {path.stem for path in (ROOT / "docs" / "runbooks").glob("*.md")} == names
    assert len(names) == len(ALERTS)


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_a_page_says_what_it_means_and_what_to_do(alert: Alert) -> None:
    page = runbook(alert)
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == ["Meaning", "Impact", "Diagnosis", "Mitigation"]
    assert alert.expr in page
    assert all((alert.meaning, alert.impact, alert.diagnosis, alert.mitigation))
    assert alert.severity in ("page", "ticket")


def test_the_rule_file_names_the_page_of_each_alert() -> None:
    for group in yaml.safe_load(rules_yaml())["groups"]:
        for rule in group["rules"]:
            assert rule["annotations"]["runbook_url"].endswith(f"/runbooks/{rule['alert']}")
            assert rule["annotations"]["summary"]


@pytest.mark.parametrize("title", QUERIES)
def test_questions_name_metrics_and_labels_of_the_table_only(title: str) -> None:
    expr = QUERIES[title]
    named = re.findall(r"otelmon_\w+", expr)
    assert named
    assert set(named) <= SHOWN.keys()
    metrics = [SHOWN[name] for name in named]
    for label in _labels(expr):
        assert any(label in _known(metric) for metric in metrics), f"{label} in {expr}"


def _labels(expr: str) -> set[str]:
    matched = {name for selector in re.findall(r"\{([^}]*)\}", expr) for name in re.findall(r"(\w+)\s*[=!]", selector)}
    grouped = {name.strip() for names in re.findall(r"by \(([^)]*)\)", expr) for name in names.split(",")}
    return matched | grouped


def _known(metric: Metric) -> set[str]:
    return {*metric.labels, "__name__", *(["le"] if metric.kind == "histogram" else [])}


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_texts_use_only_labels_that_the_question_keeps(alert: Alert) -> None:
    used = set(re.findall(r"\$labels\.(\w+)", alert.summary + alert.meaning + alert.impact))
    kept = {name.strip() for names in re.findall(r"by \(([^)]*)\)", alert.expr) for name in names.split(",")}
    metric: Any = SHOWN[re.findall(r"otelmon_\w+", alert.expr)[0]]
    assert used <= (kept or set(metric.labels))


def test_every_family_has_one_alert_and_effect_policy_and_truth_page() -> None:
    alerts = {alert.name: alert for alert in ALERTS if "otelmon_findings_total" in alert.expr}
    for family in FAMILIES:
        [name] = [name for name, alert in alerts.items() if _about(alert.expr, family)]
        assert alerts[name].severity == ("page" if family in ("effect", "policy", "truth") else "ticket")


def _about(expr: str, family: str) -> bool:
    [(how, families)] = re.findall(r'family(=|!~)"([^"]*)"', expr)
    return (family in families.split("|")) is (how == "=")
