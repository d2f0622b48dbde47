"""Real labelled runs, judged as `otelmon check` judges them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from otelmon.app.laws import load_laws
from otelmon.app.offline import check_paths
from otelmon.vocabulary.config import Config
from otelmon.vocabulary.finding import Finding


def records(path: Path) -> list[dict[str, Any]]:
    """The transcripts of a data set."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def findings(runs: Iterable[dict[str, Any]], rule_id: str, folder: Path) -> list[list[Finding]]:
    """The findings of one rule, run by run."""
    config = Config()
    laws = load_laws(config)
    found = []
    for number, run in enumerate(runs):
        file = folder / f"{number}.jsonl"
        file.write_text(json.dumps(run), encoding="utf-8")
        report = check_paths([file], laws, config)
        assert not report.problems
        assert not report.check_errors
        found.append([finding for finding in report.findings if finding.rule_id == rule_id])
    return found
