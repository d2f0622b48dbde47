"""otelmon doctor AGENT: what can be evaluated for an agent, as text and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import httpx

from tests.cli.conftest import Otelmon
from tests.services.full import full as full
from tests.services.monitor import LiveMonitor, Talk, request, until


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


def test_doctor_tells_what_the_doors_refused(otelmon: Otelmon, tmp_path: Path) -> None:
    live = LiveMonitor(tmp_path / "m", receive={"grpc": "", "http": "127.0.0.1:0", "max_span_bytes": 3000})
    try:
        where = ("--set", f"web.listen={live.web.removeprefix('http://')}")
        live.judged(Talk(number=1, user="hello", answer="hello"))
        assert "refused at the doors" not in otelmon(*where, "doctor").stdout
        assert live.monitor.doors is not None
        url, big = f"http://{live.monitor.doors.http}/v1/traces", request(Talk(number=2, user="x" * 5000, answer="no"))
        headers = {"content-type": "application/json"}
        for _ in range(2):
            assert "rejectedSpans" in httpx.post(url, content=big, headers=headers, trust_env=False).text
        until(lambda: live.read("refused")[:1] and live.read("refused")[0]["amount"] == 2)
        [refused] = live.read("refused")
        assert (refused["stage"], refused["reason"]) == ("receive", "span_too_large")
        assert "-      refused at the doors: 2 span too large (last 20" in otelmon(*where, "doctor").stdout
    finally:
        live.stop()
