"""The telemetry cases of real failure reports, sent to a served monitor over its real doors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.system.conftest import Serve
from tests.system.wire import ASSERTS, WireRun

pytestmark = [pytest.mark.data, pytest.mark.timeout(600)]

ELSEWHERE = {"same_findings_as", "quality", "max_message_bytes"}
"""Looked at below over variants; notes whose names are only suggestions; limits of a broker's messages."""


@pytest.fixture(scope="session")
def cases(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the bodies of every case. OTELMON_WIRE_CASES names another program that writes them."""
    out = tmp_path_factory.mktemp("wire")
    program = os.environ.get("OTELMON_WIRE_CASES", str(shared / "tools" / "wire_cases.py"))
    subprocess.run([sys.executable, program, "--out", str(out)], check=True)
    return out


def failures(run: WireRun) -> list[str]:
    """A line for every assertion that does not hold."""
    found = []
    for key, wanted in run.variant["assert"].items():
        if key in ELSEWHERE:
            continue
        try:
            ASSERTS[key](run, wanted)
        except AssertionError as error:
            found.append(f"{key}: {error}"[:2000])
    return found


def said(run: WireRun) -> set[tuple[str, str]]:
    """What was found, without the ids of a variant's own spans."""
    return {(finding["rule_id"], finding["summary"]) for finding in run.findings()}


def played(serve: Serve, folder: Path, variant: dict[str, Any], encoding: str) -> WireRun:
    run = WireRun(serve(), folder, variant, encoding)
    run.play()
    return run


@pytest.mark.parametrize("encoding", ["pb", "json"])
def test_every_case_behaves_as_it_must(cases: Path, serve: Serve, encoding: str) -> None:
    wrong: list[str] = []
    for path in sorted(cases.glob("*/expected.json")):
        found: dict[str, set[tuple[str, str]]] = {}
        for variant in json.loads(path.read_text())["variants"]:
            if encoding == "json" and not any("json" in step for step in variant["sequence"]):
                continue
            where = f"{path.parent.name} {variant['name']}"
            run = played(serve, path.parent, variant, encoding)
            wrong += [f"{where}: {line}" for line in failures(run)]
            found[variant["name"]] = said(run)
            like = variant["assert"].get("same_findings_as")
            if like and found[like] != found[variant["name"]]:
                wrong.append(f"{where}: other findings than {like}")
            answer = run.monitor.otelmon("doctor")
            if answer.returncode:
                wrong.append(f"{where}: {answer.stdout}{answer.stderr}")
            assert run.monitor.stop() == 0
    assert wrong == []
