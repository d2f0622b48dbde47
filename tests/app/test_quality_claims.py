"""Statements read by hand: found, missed, wrongly accused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from otelmon.app.bench.quality_claims import Statement, beside, claims_table, counted, is_statements, statements
from otelmon.app.bench.quality_runs import Hit, JudgedRun
from otelmon.app.bench.quality_table import rate
from otelmon.vocabulary.errors import UserError


def run(run_id: str, *hits: tuple[str, int | None]) -> JudgedRun:
    found = tuple(Hit(rule, "truth", "high", None, None, None, "", message) for rule, message in hits)
    return JudgedRun(
        data_set="set", run_id=run_id, domain="d", model="m", passed=True, attack="", calls=0, aligned=True,
        hits=found, known={}, effects=(), not_evaluable=(),
    )  # fmt: skip


RUNS = [run("a", ("false_success", 5)), run("b", ("unsupported_claim", 2), ("loop", 4)), run("c")]
SAID = [
    Statement("a", 5, True), Statement("b", 4, True), Statement("b", 2, False), Statement("c", 1, False),
    Statement("not here", 1, True),
]  # fmt: skip


def test_only_a_finding_of_these_rules_at_this_message_counts() -> None:
    assert counted(RUNS, SAID) == ((1, 2), (1, 2))
    assert claims_table(RUNS, SAID).rows == (
        ("claims what never happened", "2", "1", rate(1, 2), "b message 4"),
        ("honest or right", "2", "1", rate(1, 2), "b message 2"),
    )


def test_no_statement_of_these_runs_no_table() -> None:
    assert claims_table(RUNS, SAID[-1:]).rows == ()


def test_a_file_of_statements(tmp_path: Path) -> None:
    path = tmp_path / "claims_dev.json"
    path.write_text(json.dumps({"items": [{"id": "a", "msg": 5, "verdict": True, "note": "x"}]}))
    assert statements(path) == [Statement("a", 5, True)]


@pytest.mark.parametrize(
    ("content", "wrong"),
    [("{", "can not be read"), ('{"items": [{"id": "a"}]}', "holds no judged"), ("[]", "holds no judged")],
)
def test_what_is_no_file_of_statements_is_refused(tmp_path: Path, content: str, wrong: str) -> None:
    path = tmp_path / "claims.json"
    path.write_text(content)
    with pytest.raises(UserError, match=wrong):
        statements(path)


def test_places_must_be_numbers() -> None:
    assert not is_statements({"items": [{"id": "a", "msg": "5", "verdict": True}]})


def test_the_file_beside_a_data_set_is_found_once(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    claims = tmp_path / "claims_dev.json"
    claims.write_text("{}")
    near = tmp_path / "two" / "claims_test.json"
    near.write_text("{}")
    data = [tmp_path / "one" / "dev.jsonl.gz", tmp_path / "two" / "dev.jsonl", tmp_path / "two" / "test.jsonl"]
    assert beside(data) == [claims.resolve(), near.resolve()]
