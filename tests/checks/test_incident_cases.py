"""Retold failure reports in every dialect and form: what must be found, where, and what must stay silent."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from otelmon.app.laws import load_laws
from otelmon.app.offline import check_paths
from otelmon.cli.formats import FORMATS
from otelmon.vocabulary.config import Config

pytestmark = pytest.mark.data

# Form of the spans, and what may be missed at most of what is expected: without tool spans, arguments that differ from
# the request, and executions that only spans show, can not be seen; without content hardly anything can.
FORMS: dict[str, tuple[dict[str, Any], float]] = {
    "genai": ({}, 0.05),
    "openinference": ({"dialect": "openinference"}, 0.05),
    "openllmetry": ({"dialect": "openllmetry"}, 0.05),
    "one trace": ({"one_trace": True}, 0.05),
    "no shim attributes": ({"shim_attrs": False}, 0.15),
    "no tool spans": ({"tool_spans": False}, 0.25),
    "no content": ({"content": False}, 1.0),
}


@pytest.fixture(scope="module")
def scorer(shared: Path) -> ModuleType:
    """The scorer of the cases, which knows nothing of ours, with the converter beside it."""
    for name in ("to_otlp", "score_cases"):
        spec = importlib.util.spec_from_file_location(name, shared / "tools" / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("form", FORMS)
def test_what_must_be_found_is_found_and_nothing_else(
    form: str, scorer: ModuleType, shared: Path, tmp_path: Path
) -> None:
    settings, missed = FORMS[form]
    lines = (shared / "incidents" / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [case for case in map(json.loads, lines) if case.get("family", "A") == "A"]
    scores = [_score(case, scorer, settings, tmp_path) for case in cases]
    totals = scorer.totals(scores)
    alarms = [(score.id, alarm["rule"], alarm["summary"]) for score in scores for alarm in score.alarms]
    not_located = [(s.id, e["rule"], e["at"]) for s in scores for e in s.expects if e["state"] != "located"]
    assert not alarms
    assert totals["total"]["located"] >= (1 - missed) * totals["total"]["expected"], not_located


def _score(case: dict[str, Any], scorer: ModuleType, settings: dict[str, Any], folder: Path) -> Any:
    converter = sys.modules["to_otlp"]
    result = converter.build(case, converter.Options(**settings))
    spans, catalogue = folder / f"{case['id']}.otlp.json", folder / f"{case['id']}.catalog.json"
    spans.write_text(converter.dumps(result.request), encoding="utf-8")
    if result.catalog:
        catalogue.write_text(converter.dumps(result.catalog), encoding="utf-8")
    config = Config(catalogue=str(catalogue) if result.catalog else "")
    laws = msgspec.structs.replace(load_laws(config), trust_approvals=True)
    report = check_paths([spans], laws, config)
    assert not report.problems
    assert not report.check_errors
    return scorer.judge(case, json.loads(FORMATS["json"](report))["findings"], result.index)
