"""The checks of writes and validity on real labelled runs: they are silent where nothing went wrong."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from otelmon.app.offline import Checker
from otelmon.detect.engine import Laws
from otelmon.receive.files import World
from otelmon.rules.loader import builtin_rules_dir, load_rule
from otelmon.rules.model import RuleSet
from otelmon.vocabulary.config import Config
from otelmon.vocabulary.finding import Finding, level

RULES = ("duplicate_write", "unsafe_retry", "schema_violation", "unparseable_arguments", "unknown_tool",
         "forbidden_write", "missing_confirmation")  # fmt: skip


def _laws() -> Laws:
    return Laws(RuleSet({r: load_rule(builtin_rules_dir() / f"{r}.yaml") for r in RULES}, "test"))


def _runs(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt") as lines:
        yield from map(json.loads, lines)


def _judge(record: dict[str, Any], laws: Laws) -> list[Finding]:
    checker = Checker(laws, Config())
    checker.add(World(record["id"], transcript={k: record[k] for k in ("id", "tools", "messages")}))
    report = checker.finish()
    assert report.check_errors == {}
    return report.findings


@pytest.mark.data
@pytest.mark.parametrize("name", ["taubench", "tau2_es"])
def test_passing_runs_raise_next_to_no_alarm(shared: Path, name: str) -> None:
    laws, passed, alarmed = _laws(), 0, Counter[str]()
    for record in _runs(shared / "datasets" / name / "dev.jsonl.gz"):
        if record["labels"].get("success"):
            passed += 1
            findings = _judge(record, laws)
            alarmed.update({f.rule_id for f in findings if level(f.severity) >= level("high")})
    assert passed > 100
    assert sum(alarmed.values()) / passed <= 0.015, alarmed
