"""Every rule of the project: its file, its inline tests, and that each parameter is load-bearing.

pytest tests/rules/test_every_rule.py -k <rule id>
"""

from __future__ import annotations

from pathlib import Path

import pytest

from otelmon.checks.registry import load_checks
from otelmon.rules.examples import run_rule_test
from otelmon.rules.loader import builtin_rules_dir, load_rule, load_rules, rule_files
from otelmon.rules.mutate import survivors
from otelmon.vocabulary.finding import FAMILIES, SEVERITIES

# Ids are fixed from the start; rules that come later may already be named in wins_over.
PLANNED = {
    "duplicate_run", "idempotency_key_changed", "idempotency_key_reused", "maladaptive_retry", "redundant_read", "loop",
    "near_miss_id", "wrong_source", "wrong_record", "ambiguous_selection", "denial_bypass", "ordering_violation",
    "silent_error", "unsupported_claim", "partial_as_complete", "async_claimed_done", "effect_mismatch", "tool_drift",
    "tool_name_collision", "tool_poisoning", "data_exfiltration", "unknown_argument",
}  # fmt: skip
FILES = rule_files([builtin_rules_dir()])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_inline_tests_pass(path: Path) -> None:
    rule = load_rule(path)
    results = [run_rule_test(rule, case) for case in rule.tests]
    assert [str(result) for result in results if result.verdict != "pass"] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_parameter_is_load_bearing(path: Path) -> None:
    assert [mutant.change for mutant in survivors(load_rule(path))] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_file_says_everything_a_person_needs(path: Path) -> None:
    rule = load_rule(path)
    assert rule.id == path.stem
    assert rule.severity in SEVERITIES
    assert rule.family in FAMILIES
    for text in (rule.title, rule.description):
        assert text.strip()
        assert "TODO" not in text
    assert not rule.title.endswith("."), "a title is not a sentence"
    assert list(rule.raw)[-1] == "tests", "tests stand last"


def test_the_rules_load_together() -> None:
    rules = load_rules().rules
    assert list(rules) == sorted(rules)
    for rule in rules.values():
        assert set(rule.wins_over) <= set(rules) | PLANNED, f"{rule.id} wins over rules that are not there"


def test_every_check_is_used_by_a_rule() -> None:
    packs = rule_files(sorted(folder for folder in (builtin_rules_dir() / "examples").iterdir() if folder.is_dir()))
    used = {load_rule(path).check.name for path in [*FILES, *packs]}
    assert set(load_checks()) - used == set()
