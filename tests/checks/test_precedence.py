"""Which of two rules explains one fact at one anchor."""

from __future__ import annotations

from typing import Any

import pytest

from otelmon.rules.evaluate import evaluate
from otelmon.rules.loader import builtin_rules_dir, load_rule
from tests.checks.build import view

USER = {"user": "Refund OR-771."}
REFUND: dict[str, Any] = {"tool": "refund", "args": {"order": "OR-771"}}


def rule_ids(*events: dict[str, Any], rules: tuple[str, ...]) -> list[tuple[str, int]]:
    seen = view(*events)
    places = {call.span_id: number for number, call in enumerate(seen.calls)}
    found = evaluate([load_rule(builtin_rules_dir() / f"{r}.yaml") for r in rules], seen).findings
    return [(finding.rule_id, places[finding.span_ids[0]]) for finding in found]


@pytest.mark.parametrize(
    ("winner", "loser"),
    [
        ("unsafe_retry", "duplicate_write"),
        ("maladaptive_retry", "redundant_read"),
        ("false_success", "unsupported_claim"),
    ],
)
def test_the_better_explanation_is_declared(winner: str, loser: str) -> None:
    assert loser in load_rule(builtin_rules_dir() / f"{winner}.yaml").wins_over


def test_a_double_effect_after_a_time_out_is_told_once() -> None:
    landed = {**REFUND, "result": {"ok": True}}
    seen = rule_ids(USER, landed, {**REFUND, "outcome": "unknown"}, landed, rules=("duplicate_write", "unsafe_retry"))
    assert seen == [("unsafe_retry", 2)]


def test_a_loop_stands_beside_what_else_is_wrong_with_its_calls() -> None:
    failing = {"tool": "fetch_page", "args": {"url": "https://example.com"}, "error": "connection refused"}
    seen = rule_ids(USER, *[failing] * 4, rules=("loop", "maladaptive_retry", "redundant_read"))
    assert seen == [("maladaptive_retry", 1), ("maladaptive_retry", 2), ("loop", 3), ("maladaptive_retry", 3)]
    reading = {"tool": "fetch_page", "args": {"url": "https://example.com"}, "result": "page"}
    seen = rule_ids(USER, *[reading] * 4, rules=("loop", "maladaptive_retry", "redundant_read"))
    assert seen == [("redundant_read", 1), ("redundant_read", 2), ("loop", 3), ("redundant_read", 3)]
