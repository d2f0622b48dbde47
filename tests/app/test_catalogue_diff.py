"""Two catalogues compared: which entries are one tool, and what rests on what changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from otelmon.app.catalogue_diff import ToolDiff, diff
from otelmon.app.laws import load_laws
from otelmon.vocabulary.catalogue import Catalogue, IdempotencyKey, Policy, Tool
from otelmon.vocabulary.config import Config

ROOT = Path(__file__).parents[2]


def tool(name: str, *params: str, **fields: Any) -> Tool:
    return Tool(name=name, input_schema={"properties": {param: {"type": "string"} for param in params}}, **fields)


def catalogue(*tools: Tool, complete: bool = True, policy: tuple[Policy, ...] = ()) -> Catalogue:
    return Catalogue(version=1, complete=complete, tools=tools, policy=policy)


def shown(found: list[ToolDiff]) -> list[tuple[str, str | None, str]]:
    return [(one.tool, one.server, one.of) for one in found]


def test_a_name_is_enough_where_one_side_names_no_server() -> None:
    bare, named = catalogue(tool("a", "x")), catalogue(tool("a", "x", "y", server="depot"))
    assert shown(diff(bare, named)) == [("a", "depot", "compatible")]
    assert shown(diff(named, bare)) == [("a", None, "breaking")]


def test_tools_of_two_servers_are_two_tools() -> None:
    both = catalogue(tool("a", server="depot"), tool("a", "x", server="shop"))
    assert diff(both, both) == []
    moved = catalogue(tool("a", server="depot"), tool("a", server="shop"))
    assert shown(diff(both, moved)) == [("a", "shop", "breaking")]


@pytest.mark.parametrize(
    ("before_complete", "after_complete", "expected"),
    [
        (True, True, ["gone", "new"]),
        (True, False, ["new"]),
        (False, True, ["gone"]),
        (False, False, []),
    ],
)
def test_only_a_whole_list_says_what_is_not_there(before_complete: bool, after_complete: bool, expected: list[str]) -> None:  # fmt: skip
    before = catalogue(tool("gone", "a"), complete=before_complete)
    after = catalogue(tool("new", "b"), complete=after_complete)
    assert [one.tool for one in diff(before, after)] == expected


def test_a_tool_that_takes_the_same_under_another_name_was_renamed() -> None:
    found = diff(catalogue(tool("move_stock", "sku"), tool("b")), catalogue(tool("moveStock", "sku", "bin"), tool("b")))
    assert [(one.tool, one.changes.changes[0].kind) for one in found] == [("move_stock", "tool_renamed")]
    other = diff(catalogue(tool("move_stock", "sku")), catalogue(tool("burn_stock", "bin")))
    assert [one.changes.changes[0].kind for one in other] == ["tool_added", "tool_removed"]


def test_what_rests_on_a_tool_and_what_loses_an_argument() -> None:
    policy = (
        Policy(id="freeze", action="forbid", tools=("move_*",)),
        Policy(id="far", action="forbid", tools=("*",), when="call.arguments['bin'] == 'far'"),
        Policy(id="near", action="forbid", tools=("move_stock",), when="call.arguments.sku == 'x'"),
        Policy(id="others", action="forbid", tools=("pay",), when="call.arguments.bin == 'x'"),
    )
    mine = tool("move_stock", "sku", "bin", identity=("bin",), idempotency_key=IdempotencyKey(argument="key"))
    before = catalogue(mine, tool("pay", sources={"amount": "move_stock.cost"}), policy=policy)
    after = catalogue(tool("move_stock", "sku"), tool("pay"))
    [found] = [one for one in diff(before, after) if one.tool == "move_stock"]
    assert found.touches == ("policy freeze", "policy far", "policy near", "sources of pay")
    assert found.loses == ("policy far", "entry of move_stock")


def test_rules_that_name_the_tool_are_touched() -> None:
    laws = load_laws(Config(rules_dirs=(str(ROOT / "rules" / "examples" / "airline"),)))
    found = diff(catalogue(tool("update_reservation_baggages", "a")), catalogue(tool("update_reservation_baggages")), rules=laws.rules.rules.values())  # fmt: skip
    assert "rule airline_bag_fee" in found[0].touches
    assert not any("duplicate_write" in touched for touched in found[0].touches)


def test_arguments_that_bound_nothing_are_told_when_they_are_new() -> None:
    one, other = catalogue(tool("run", "sql")), catalogue(tool("run", "sql", "command"))
    assert [one.broad for one in diff(one, other)] == [("command takes a command of any kind",)]
