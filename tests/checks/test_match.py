"""Rules written as data: conditions over a call and what was looked up for it, and how mistakes in them are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from otelmon.checks.lib.conditions import compile_condition
from otelmon.checks.lib.expressions import ExpressionError
from otelmon.rules.examples import run_rule_tests
from otelmon.rules.loader import load_rule, load_rules, with_params
from otelmon.rules.mutate import survivors
from otelmon.vocabulary.config import RuleConfig
from otelmon.vocabulary.errors import UserError

EXAMPLES = Path(__file__).parents[2] / "rules" / "examples"
PACKS = sorted(folder for folder in EXAMPLES.iterdir() if folder.is_dir())
FILES = sorted(EXAMPLES.glob("*/*.yaml"))
RUNBOOK = "## Meaning\nx\n## Impact\nx\n## Diagnosis\nx\n## Mitigation\nx\n"

LOOK = {"tool": "get_plan", "args": {"id": "P-1"}, "result": {"id": "P-1", "owner": "kim", "open": True}}
CLOSED = {"tool": "get_plan", "args": {"id": "P-1"}, "result": {"id": "P-1", "owner": "kim", "open": False}}
CLOSE = {"tool": "close_plan", "args": {"id": "P-1"}, "result": {"ok": True}}
HELLO = {"user": "Close plan P-1."}
PLAN = {"plan": {"tools": ["get_*"], "where": "result.id == call.arguments.id"}}


def write(folder: Path, params: dict[str, Any], *cases: tuple[list[dict[str, Any]], list[Any]]) -> Path:
    """A rule file; besides its own cases it holds one that fires and one that is silent, as all must."""
    tests = [{"name": f"case {n}", "events": events, "fires": fires} for n, (events, fires) in enumerate(cases)]
    fillers = [{"name": f"filler {n}", "events": [HELLO], "fires": fires} for n, fires in enumerate(([1], []))]
    rule = {
        "id": "own_rule", "title": "t", "status": "stable", "severity": "high", "family": "policy", "description": "d",
        "check": "match", "params": params, "scope": "conversation", "needs": ["arguments"], "runbook": RUNBOOK,
        "tests": tests or fillers,
    }  # fmt: skip
    path = folder / "own_rule.yaml"
    path.write_text(yaml.safe_dump(rule, sort_keys=False))
    return path


def verdicts(path: Path) -> list[str]:
    return [str(result) for result in run_rule_tests(load_rule(path)) if result.verdict != "pass"]


def holds(tmp_path: Path, params: dict[str, Any], fires: list[dict[str, Any]], silent: list[dict[str, Any]]) -> None:
    """The rule fires at the last event of the first sequence and not in the second."""
    assert verdicts(write(tmp_path, params, (fires, [len(fires)]), (silent, []))) == []


def test_the_latest_look_up_counts(tmp_path: Path) -> None:
    params = {"calls": {"tools": ["close_*"]}, "let": PLAN, "when": "plan.open"}
    holds(tmp_path, params, [HELLO, CLOSED, LOOK, CLOSE], [HELLO, LOOK, CLOSED, CLOSE])


def test_a_look_up_of_another_record_is_none(tmp_path: Path) -> None:
    params = {"calls": {"tools": ["close_*"]}, "let": PLAN, "when": "!known.plan"}
    other = {"tool": "get_plan", "args": {"id": "P-2"}, "result": {"id": "P-2"}}
    holds(tmp_path, params, [HELLO, other, CLOSE], [HELLO, LOOK, CLOSE])


def test_a_failed_look_up_and_a_later_one_are_none(tmp_path: Path) -> None:
    params = {"calls": {"tools": ["close_*"]}, "let": PLAN, "when": "!known.plan"}
    failed = {"tool": "get_plan", "args": {"id": "P-1"}, "error": "down"}
    assert verdicts(write(tmp_path, params, ([HELLO, failed, CLOSE, LOOK], [3]), ([HELLO, LOOK, CLOSE], []))) == []


def test_one_name_may_lead_to_the_next(tmp_path: Path) -> None:
    let = {**PLAN, "owner": {"tools": ["get_user"], "where": "arguments.name == plan.owner"}}
    params = {"calls": {"tools": ["close_*"]}, "let": let, "when": "owner.locked"}
    kim = {"tool": "get_user", "args": {"name": "kim"}, "result": {"locked": True}}
    lee = {"tool": "get_user", "args": {"name": "lee"}, "result": {"locked": True}}
    holds(tmp_path, params, [HELLO, LOOK, kim, CLOSE], [HELLO, LOOK, lee, CLOSE])


def test_all_results_as_a_list_oldest_first(tmp_path: Path) -> None:
    let = {"plans": {"tools": ["get_*"], "pick": "all"}}
    params = {"calls": {"tools": ["close_*"]}, "let": let, "when": "size(plans) == 2 && plans[0].open"}
    holds(tmp_path, params, [HELLO, LOOK, CLOSED, CLOSE], [HELLO, CLOSED, LOOK, CLOSE])


def test_a_result_may_be_text(tmp_path: Path) -> None:
    let = {"state": {"tools": ["get_state"]}}
    params = {"calls": {"tools": ["close_*"]}, "let": let, "when": "state == 'locked'"}
    locked = {"tool": "get_state", "args": {}, "result": "locked"}
    holds(tmp_path, params, [HELLO, locked, CLOSE], [HELLO, {**locked, "result": "free"}, CLOSE])


def test_words_that_were_said_last(tmp_path: Path) -> None:
    let = {"now": {"said_by": "system", "pattern": r"today is (?P<day>\d+)"}}
    params = {"calls": {"tools": ["close_*"]}, "let": let, "when": "int(now.day) > 20"}
    early, late = {"system": "It is so: today is 19."}, {"system": "From now on today is 21."}
    holds(tmp_path, params, [early, late, HELLO, CLOSE], [late, early, HELLO, CLOSE])


def test_what_the_user_said(tmp_path: Path) -> None:
    params = {
        "calls": {"tools": ["close_*"]},
        "when": "said.user.contains('P-1') && !said.last.contains('P-1') && call.name == 'close_plan'",
    }
    holds(tmp_path, params, [HELLO, {"user": "Do it."}, CLOSE], [{"user": "Do it."}, HELLO, CLOSE])


def test_the_result_of_the_call_itself(tmp_path: Path) -> None:
    params = {"calls": {"tools": ["close_*"]}, "when": "result.ok"}
    holds(tmp_path, params, [HELLO, CLOSE], [HELLO, {**CLOSE, "result": {"ok": False}}])


def test_a_yes_to_the_call(tmp_path: Path) -> None:
    params = {"calls": {"tools": ["close_*"]}, "when": "!confirmed"}
    proposal = {"assistant": "I would close plan P-1 now. Do you confirm?"}
    holds(tmp_path, params, [HELLO, CLOSE], [HELLO, proposal, {"user": "Yes, please close it."}, CLOSE])


def test_which_calls_are_meant(tmp_path: Path) -> None:
    failed = {"tool": "close_plan", "args": {"id": "P-1"}, "error": "refused"}
    holds(tmp_path, {"calls": {"tools": ["close_*"]}, "when": "true"}, [HELLO, CLOSE], [HELLO, failed, LOOK])
    params = {"calls": {"outcomes": ["failed"], "when": "call.arguments.id == 'P-1'"}, "when": "true"}
    holds(tmp_path, params, [HELLO, failed], [HELLO, CLOSE, {**failed, "args": {"id": "P-2"}}])
    holds(tmp_path, {"calls": {"effects": ["read"]}, "when": "true"}, [HELLO, LOOK], [HELLO, CLOSE])


def test_what_was_not_found_makes_a_condition_undecided() -> None:
    condition = compile_condition("plan.open || true == false", frozenset(("plan",)))
    assert not condition.holds({})
    assert condition.failures.total() == 1


def test_loops_in_loops_are_not_run_over_long_lists() -> None:
    condition = compile_condition("plan.a.exists(x, plan.a.exists(y, x == y))", frozenset(("plan",)))
    assert condition.holds({"plan": {"a": list(range(500))}})
    assert not condition.holds({"plan": {"a": list(range(501))}})
    assert condition.failures["too_large"] == 1


def test_a_condition_with_a_mistake_is_refused() -> None:
    with pytest.raises(ExpressionError, match="unknown variable plam"):
        compile_condition("plam.open", frozenset(("plan",)))


@pytest.mark.parametrize(
    ("params", "said"),
    [
        (
            {"calls": {}, "when": "plan.open"},
            "unknown variable plan; known: approved, call, confirmed, known, result, said",
        ),
        ({"calls": {}, "when": "call.argments.id == 1"}, "call has no field argments; did you mean arguments?"),
        ({"calls": {"when": "result.ok"}, "when": "true"}, "unknown variable result; the only variable is call"),
        ({"calls": {}, "let": {"a": {"tools": ["x"], "where": "b.c"}}, "when": "true"}, "unknown variable b"),
        ({"calls": {}, "let": {"call": {"tools": ["x"]}}, "when": "true"}, "call can not be a name here"),
        ({"calls": {}, "let": {"a": {}}, "when": "true"}, "give `tools`, or `said_by` and `pattern`"),
        ({"calls": {}, "let": {"a": {"pattern": "(?P<x>.)"}}, "when": "true"}, "`said_by` and `pattern` go together"),
        ({"calls": {}, "let": {"a": {"said_by": "user", "pattern": "("}}, "when": "true"}, "no regular expression"),
        ({"calls": {}, "let": {"a": {"said_by": "user", "pattern": "x"}}, "when": "true"}, "has no named group"),
        ({"calls": {"tool": ["x"]}, "when": "true"}, "did you mean tools"),
    ],
)
def test_mistakes_are_told_with_their_place(tmp_path: Path, params: dict[str, Any], said: str) -> None:
    path = write(tmp_path, params)
    with pytest.raises(UserError) as refused:
        load_rule(path)
    text = str(refused.value)
    assert said in text
    assert text.startswith(f"{path}:")


def test_the_place_of_a_mistake_is_the_line_of_the_condition(tmp_path: Path) -> None:
    path = write(tmp_path, {"calls": {}, "let": {"a": {"tools": ["x"], "where": "b.c"}}, "when": "true"})
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if "where:" in text)
    with pytest.raises(UserError, match=f"own_rule.yaml:{line}:"):
        load_rule(path)


def test_an_override_with_a_mistake_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, {"calls": {}, "when": "true"})
    with pytest.raises(UserError, match="unknown variable plan"):
        with_params(load_rule(path), {"when": "plan.open"})
    with pytest.raises(UserError, match=r"otelmon.toml:3.*unknown variable plan"):
        load_rules(
            [tmp_path],
            {"own_rule": RuleConfig(params={"when": "plan.open"})},
            {"rules.own_rule.params": "otelmon.toml:3"},
        )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_example_does_what_its_tests_say(path: Path) -> None:
    rule = load_rule(path)
    assert [str(result) for result in run_rule_tests(rule) if result.verdict != "pass"] == []
    assert [str(mutant) for mutant in survivors(rule)] == []


@pytest.mark.parametrize("pack", PACKS, ids=lambda pack: pack.name)
def test_a_pack_loads_as_a_whole(pack: Path) -> None:
    assert len(load_rules([pack]).rules) == len(list(pack.glob("*.yaml")))
