"""What each source sends is read as the calls it made."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from otelmon.app.offline import Checker
from otelmon.detect.engine import Laws
from otelmon.receive.files import read_worlds
from otelmon.rules.loader import load_rules
from otelmon.vocabulary.config import Config
from otelmon.vocabulary.messages import TraceRecord
from tests.system.monitor import ServedMonitor

ROOT = Path(__file__).parents[2] / "collectors"
FIXTURES = sorted(ROOT.glob("*/fixture.otlp.json"))


def calls_of(file: Path) -> list[dict[str, Any]]:
    checker = Checker(Laws(load_rules()), Config())
    for world in read_worlds(file):
        checker.add(world)
    checker.finish()
    records: list[TraceRecord] = checker.records()
    return [
        {
            "tool_name": call.tool_name, "arguments": call.arguments, "result": call.result,
            "outcome": call.outcome, "effect": record.effects[call.key][0],
        }
        for record in records
        for call in sorted(record.calls, key=lambda call: call.position)
    ]  # fmt: skip


def test_there_are_fixtures() -> None:
    assert FIXTURES


@pytest.mark.parametrize("file", FIXTURES, ids=lambda file: file.parent.name)
def test_a_fixture_is_read_as_the_calls_it_holds(file: Path) -> None:
    assert calls_of(file) == json.loads((file.parent / "expected.json").read_text())


def test_the_python_example_reaches_a_monitor(tmp_path: Path) -> None:
    monitor = ServedMonitor(tmp_path)
    monitor.start()
    try:
        subprocess.run([sys.executable, str(ROOT / "python" / "agent.py"), monitor.endpoint], check=True, timeout=60)
        monitor.wait_until_through(3)
        run = monitor.read("runs")[0]["run"]
        detail = monitor.read("run", id=run["run_id"])
        assert [item["call"]["outcome"] for item in detail["timeline"] if "call" in item] == ["succeeded", "unknown"]
        assert detail["run"]["gaps"] == []
        assert monitor.findings() == set()
    finally:
        monitor.stop()
