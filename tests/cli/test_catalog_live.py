"""`otelmon catalog` and `doctor` beside a monitor that has seen tools: what traffic shows, and a release as one incident."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from otelmon.rules.catalogue import load_catalogue
from tests.cli.conftest import Otelmon
from tests.services.monitor import LiveMonitor, until

SECOND = 1_000_000_000
TOOLS = 12


def shown(number: int, tools: list[dict[str, Any]], at: int) -> dict[str, Any]:
    """A run that shows tools, as OTLP/JSON."""
    attributes = {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "any", "gen_ai.agent.name": "clerk",
        "gen_ai.tool.definitions": json.dumps(tools),
    }  # fmt: skip
    span = {
        "traceId": f"{number:032x}", "spanId": f"{number:016x}", "name": "chat", "kind": 3,
        "startTimeUnixNano": str(at), "endTimeUnixNano": str(at + SECOND),
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
    }  # fmt: skip
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [span]}]}]}


def tools(version: str) -> list[dict[str, Any]]:
    names = ["run_report", *(f"update_part_{number}" for number in range(TOOLS - 1))]
    schema = {"type": "object", "properties": {"sql": {"type": "string"}}}
    return [{"name": n, "description": f"Does {version} {n}.", "inputSchema": schema, "server": "depot"} for n in names]


@pytest.fixture(scope="module")
def depot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveMonitor]:
    """A monitor that saw a release of the depot: old, new, and a replica that still serves the old tools."""
    live = LiveMonitor(tmp_path_factory.mktemp("depot"), catalogue="")
    assert live.monitor.doors is not None
    start = time.time_ns() - 600 * SECOND
    for number, version in enumerate(("old", "new", "old"), 1):
        body = shown(number, tools(version), start + number * 60 * SECOND)
        answer = httpx.post(f"http://{live.monitor.doors.http}/v1/traces", json=body, trust_env=False)
        assert answer.status_code == 200, answer.text
    until(lambda: len(live.read("runs")) == 3)
    until(lambda: [i["findings"] for i in live.read("incidents")["incidents"]] == [TOOLS])
    try:
        yield live
    finally:
        live.stop()


@pytest.fixture
def beside(otelmon: Otelmon, depot: LiveMonitor) -> Otelmon:
    return lambda *arguments: otelmon("--set", f"web.listen={depot.web.removeprefix('http://')}", *arguments)


def test_a_release_is_one_incident_that_lists_its_tools(depot: LiveMonitor) -> None:
    [incident] = depot.read("incidents")["incidents"]
    assert (incident["family"], incident["agent_name"], incident["rule_ids"]) == (
        "catalogue",
        "server depot",
        ["tool_drift"],
    )
    assert "changed: its description says something else: server depot (and " in incident["title"]
    assert incident["title"].endswith(f" and {TOOLS - 4} more tools)")
    detail = depot.read("incident", id=incident["incident_id"])
    assert len({finding["finding"]["tool_name"] for finding in detail["findings"]}) == TOOLS


def test_traffic_can_be_shown_exported_proposed_and_gated(beside: Otelmon, tmp_path: Path) -> None:
    rows = json.loads(beside("catalog", "show", "--json").stdout)["effects"]
    assert len(rows) == 2 * TOOLS
    assert beside("catalog", "export", "--out", "tools.yaml").returncode == 0
    assert {(t.server, t.description[:8]) for t in load_catalogue(tmp_path / "tools.yaml").tools} == {
        ("depot", "Does old")
    }
    assert "effect: write  # likely: the name says so" in beside("catalog", "suggest").stdout
    assert beside("catalog", "gate", "tools.yaml").returncode == 0
    (tmp_path / "tools.yaml").write_text((tmp_path / "tools.yaml").read_text().replace("Does old", "Did"))
    changed = beside("catalog", "gate", "tools.yaml", "--json")
    assert (changed.returncode, json.loads(changed.stdout)["classes"]["text"]) == (1, TOOLS)


def test_doctor_names_tools_that_nobody_looked_at_and_that_take_anything(beside: Otelmon) -> None:
    said = [line for line in beside("doctor").stdout.splitlines() if "broad tools" in line]
    assert len(said) == 1
    assert "run_report (sql takes SQL of any kind)" in said[0]
    assert f"and {TOOLS - 5} more" in said[0]
