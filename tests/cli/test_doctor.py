"""otelmon doctor AGENT: what can be evaluated for an agent, as text and as JSON."""

from __future__ import annotations

import json

from tests.cli.conftest import Otelmon
from tests.services.full import full as full
from tests.services.monitor import LiveMonitor


def test_doctor_says_what_can_be_evaluated_for_an_agent_and_what_would_change_it(
    otelmon: Otelmon, full: LiveMonitor
) -> None:
    where = ("--set", f"web.listen={full.web.removeprefix('http://')}")
    done = otelmon(*where, "doctor", "quiet")
    assert done.returncode == 0, done.stderr
    assert "never" in done.stdout
    assert "content_off in 1 runs" in done.stdout
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY" in done.stdout
    document = json.loads(otelmon(*where, "doctor", "quiet", "--json").stdout)
    assert document["agent_name"] == "quiet"
    never = {rule["rule_id"]: rule["reasons"] for rule in document["rules"] if rule["evaluated"] == "never"}
    assert never["false_success"][0]["runs"] == 1
    assert never["false_success"][0]["settings"]


def test_doctor_lists_the_coverage_of_every_agent(otelmon: Otelmon, full: LiveMonitor) -> None:
    done = otelmon("--set", f"web.listen={full.web.removeprefix('http://')}", "doctor")
    assert "coverage of quiet: " in done.stdout
    assert "otelmon doctor quiet" in done.stdout


def test_doctor_refuses_an_agent_nobody_has_seen(otelmon: Otelmon, full: LiveMonitor) -> None:
    done = otelmon("--set", f"web.listen={full.web.removeprefix('http://')}", "doctor", "nobody")
    assert done.returncode == 2
    assert "'quiet'" in done.stderr
