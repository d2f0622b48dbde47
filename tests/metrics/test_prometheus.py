"""A real Prometheus scrapes a real monitor, asks every question of the dashboard, and pages through a real Alertmanager."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from otelmon.metrics.dashboard import Panel, panels
from tests.services.monitor import Call, LiveMonitor, Talk, double_write, until
from tests.services.prometheus import Alertmanager, Prometheus

pytestmark = pytest.mark.prometheus
RULES = Path(__file__).parents[2] / "dashboards" / "alerts.yaml"
TOKEN = "only-for-tests"


class Watched:
    """A monitor behind a token, and those who watch it. `stack` stops them."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.monitor = LiveMonitor(folder / "monitor", web={"listen": "127.0.0.1:0", "token": TOKEN})
        stack.callback(self.monitor.stop)
        self.monitor.client.headers["authorization"] = f"Bearer {TOKEN}"
        self.alertmanager = Alertmanager(folder / "alertmanager")
        stack.callback(self.alertmanager.stop)
        target = self.monitor.web.removeprefix("http://")
        self.prometheus = Prometheus(folder / "prometheus", target, RULES, self.alertmanager, TOKEN)
        stack.callback(self.prometheus.stop)


def traffic(number: int) -> tuple[Talk, ...]:
    """A double write, a false success, and a run whose texts were not captured."""
    refund = Call("issue_refund", {"order_id": "W-1200", "amount": 20.0}, error="ValueError")
    said = Talk(number=number + 1, user="Refund 20.00 for order W-1200, please.", calls=(refund,), answer="I have refunded 20.00 for order W-1200.")  # fmt: skip
    hidden = Talk(number=number + 2, agent="quiet", history=False, calls=(Call("issue_refund", {"order_id": "W-5"}),))
    return double_write(number, conversation=f"c-{number}"), said, hidden


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """Scraped at zero first; then things go wrong, are scraped, and go wrong again."""
    with ExitStack() as stack:
        found = Watched(tmp_path_factory.mktemp("watched"), stack)
        until(lambda: bool(found.prometheus.query("otelmon_build_info")), "never scraped")
        found.monitor.judged(*traffic(10))
        until(lambda: bool(found.prometheus.query('otelmon_not_evaluable_total{rule="false_success"}')), "not counted")
        found.monitor.judged(*traffic(20))
        yield found


def test_the_target_is_up(watched: Watched) -> None:
    target = watched.prometheus.target()
    assert (target["health"], target["lastError"]) == ("up", "")


def test_a_double_write_pages_through_alertmanager(watched: Watched) -> None:
    until(lambda: "OtelmonDoubleWrite" in watched.prometheus.firing(), "the alert never fired")
    until(lambda: bool(watched.alertmanager.alerts()), "Alertmanager was never told")
    [alert] = [a for a in watched.alertmanager.alerts() if a["labels"]["alertname"] == "OtelmonDoubleWrite"]
    assert alert["labels"]["severity"] == "page"
    assert alert["labels"]["rule"] == "duplicate_write"
    assert alert["annotations"]["runbook_url"].endswith("/runbooks/OtelmonDoubleWrite")


def test_no_alert_fires_that_should_not(watched: Watched) -> None:
    found = {(f["finding"]["rule_id"], f["finding"]["severity"]) for f in watched.monitor.read("findings")}
    assert {rule for rule, severity in found if severity in ("high", "critical")} == {
        "duplicate_write",
        "false_success",
    }
    expected = {"OtelmonDoubleWrite", "OtelmonFalseSuccess"}
    until(lambda: watched.prometheus.firing() >= expected, "the alerts never fired")
    # A test machine may have a full disk: that one would be right.
    assert watched.prometheus.firing() - {"OtelmonDiskNearlyFull"} == expected


@pytest.mark.parametrize("panel", panels(), ids=lambda panel: panel.title)
def test_every_question_of_the_dashboard_has_an_answer(watched: Watched, panel: Panel) -> None:
    """Whatever `$__rate_interval` becomes: no error, and no panel that stays empty."""
    expr = panel.expr.replace("$__rate_interval", "1m")
    until(lambda: bool(watched.prometheus.query(expr)), f"no answer to {expr}")
