"""Which policies speak about a call."""

from __future__ import annotations

from typing import Any

import pytest

from otelmon.checks.lib.policy import policies_for
from tests.rules.helpers import view

TOOLS = [
    {"name": "run_sql", "effect": "write"},
    {"name": "delete_user", "effect": "destructive"},
    {"name": "get_user", "effect": "read"},
]
STEP = {
    "tool": "run_sql",
    "args": {"sql": "update prod.t"},
    "agent": "ops-1",
    "principal": "ann",
    "environment": "prod",
}


def matched(policy: dict[str, Any], *actions: Any, **changes: Any) -> bool:
    whole = {"id": "p", "action": "forbid", **policy}
    seen = view({**STEP, **changes}, catalogue={"tools": TOOLS, "policy": [whole]})
    return bool(policies_for(seen, seen.calls[0], *actions))


@pytest.mark.parametrize(
    ("policy", "changes", "expected"),
    [
        ({}, {}, True),
        ({"tools": ["run_sql"]}, {}, True),
        ({"tools": ["delete_*", "run_*"]}, {}, True),
        ({"tools": ["delete_*"]}, {}, False),
        ({"tools": ["RUN_SQL"]}, {}, False),
        ({"effects": ["write", "destructive"]}, {}, True),
        ({"effects": ["destructive"]}, {}, False),
        ({"effects": ["write"]}, {"tool": "get_user"}, False),
        ({"agents": ["ops-*"]}, {}, True),
        ({"agents": ["dev-*"]}, {}, False),
        ({"agents": ["ops-*"]}, {"agent": None}, False),
        ({"principals": ["ann"]}, {}, True),
        ({"principals": ["bob"]}, {}, False),
        ({"environments": ["prod"]}, {}, True),
        ({"environments": ["prod"]}, {"environment": "staging"}, False),
        ({"when": "call.arguments.sql.contains('prod')"}, {}, True),
        ({"when": "call.arguments.sql.contains('dev')"}, {}, False),
        ({"when": "call.arguments.table == 'x'"}, {}, False),
        ({"tools": ["run_sql"], "effects": ["write"], "agents": ["ops-1"], "when": "call.environment == 'prod'"}, {}, True),
        ({"tools": ["run_sql"], "effects": ["write"], "agents": ["x"], "when": "call.environment == 'prod'"}, {}, False),
    ],
)  # fmt: skip
def test_every_selector_must_match(policy: dict[str, Any], changes: dict[str, Any], expected: bool) -> None:
    assert matched(policy, **changes) is expected


def test_policies_can_be_asked_for_by_action() -> None:
    assert matched({"action": "confirm"}, "confirm", "after")
    assert not matched({"action": "confirm"}, "forbid")


def test_they_come_in_the_order_of_the_file() -> None:
    policies = [{"id": i, "action": "forbid"} for i in ("b", "a", "c")]
    seen = view(STEP, catalogue={"tools": TOOLS, "policy": policies})
    assert [p.id for p in policies_for(seen, seen.calls[0])] == ["b", "a", "c"]


def test_without_a_catalogue_nothing_is_said() -> None:
    seen = view(STEP)
    assert policies_for(seen, seen.calls[0]) == []
