"""otelmon check over files: whose word on approvals counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from otelmon.cli import cli

CATALOGUE = """
version: 1
tools: [{name: close_account, effect: destructive}]
policy: [{id: closing, tools: [close_account], action: forbid, unless_approved: true, reason: closing is final}]
"""


def attribute(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value}}


def trace() -> dict[str, Any]:
    """One call that says of itself that it was approved."""
    said = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "close_account",
        "gen_ai.tool.call.arguments": '{"account": "AC-40"}',
        "gen_ai.tool.call.result": '{"closed": true}',
        "otelmon.approval.decision": "approved",
        "otelmon.approval.source": "user",
    }
    span = {
        "traceId": "ab" * 16, "spanId": "cd" * 8, "name": "execute_tool close_account", "kind": 1,
        "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000001000000000",
        "attributes": [attribute(key, value) for key, value in said.items()],
    }  # fmt: skip
    return {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "otelmon"}, "spans": [span]}]}]}


def rules_found(folder: Path, *options: str) -> set[str]:
    file, catalogue = folder / "trace.json", folder / "catalogue.yaml"
    file.write_text(json.dumps(trace()), encoding="utf-8")
    catalogue.write_text(CATALOGUE, encoding="utf-8")
    asked = ["check", str(file), "--catalog", str(catalogue), "--format", "json", *options]
    said = CliRunner().invoke(cli, asked)
    return {finding["rule_id"] for finding in json.loads(said.stdout)["findings"]}


def test_approvals_in_files_count_unless_told_otherwise(tmp_path: Path) -> None:
    assert "forbidden_write" not in rules_found(tmp_path)
    assert "forbidden_write" in rules_found(tmp_path, "--no-trust-approvals")
