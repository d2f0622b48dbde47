"""`rules new`: both files load at once, and the tests are red until they are filled."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from otelmon.checks.registry import declared_in
from otelmon.rules.examples import run_rule_tests
from otelmon.rules.loader import builtin_rules_dir, load_rule
from otelmon.rules.mutate import survivors
from otelmon.rules.templates import GENERIC, new_rule
from otelmon.vocabulary.errors import UserError


@pytest.mark.parametrize("generic", GENERIC)
def test_a_rule_of_a_generic_check_is_one_file_whose_tests_pass_and_test_every_parameter(
    tmp_path: Path, generic: str
) -> None:
    files = new_rule("my_rule", tmp_path / "none", tmp_path, generic)
    assert (files.check, files.files) == (None, (tmp_path / "my_rule.yaml",))
    rule = load_rule(files.rule)
    assert (rule.status, rule.check.name) == ("draft", generic)
    assert [str(result) for result in run_rule_tests(rule) if result.verdict != "pass"] == []
    assert [mutant.change for mutant in survivors(rule)] == []


def test_every_generic_check_has_a_template() -> None:
    """Those that the packs of examples use, none of which is the name of a built-in rule."""
    packs = builtin_rules_dir() / "examples"
    used = {load_rule(path).check.name for path in packs.rglob("*.yaml")}
    assert used <= set(GENERIC)


def test_the_files_load_and_their_tests_are_green(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = new_rule("retry_storm", tmp_path, tmp_path)
    assert (files.check, files.rule) == (tmp_path / "retry_storm.py", tmp_path / "retry_storm.yaml")
    assert files.check is not None
    spec = importlib.util.spec_from_file_location("retry_storm", files.check)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "retry_storm", module)
    spec.loader.exec_module(module)
    rule = load_rule(files.rule, checks=declared_in("retry_storm"))
    assert [result.verdict for result in run_rule_tests(rule)] == ["pass", "pass"]
    assert [mutant.change for mutant in survivors(rule)] == []


def test_the_check_is_clean_by_the_rules_of_the_house(tmp_path: Path) -> None:
    check = new_rule("retry_storm", tmp_path, tmp_path).check
    assert check is not None
    config = Path(__file__).parents[2] / "pyproject.toml"
    for command in (["check", "--no-cache"], ["format", "--check", "--no-cache"]):
        done = subprocess.run([sys.executable, "-m", "ruff", *command, "--config", config, check], capture_output=True, text=True, check=False)  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "loops.yaml").write_text("mine")
    with pytest.raises(UserError) as caught:
        new_rule("loops", tmp_path, tmp_path)
    assert str(caught.value) == f"{tmp_path / 'loops.yaml'}: is there already; choose another id"
    assert not (tmp_path / "loops.py").exists()


@pytest.mark.parametrize("rule_id", ["x", "Loop", "a-b", "1ab", "../ab", "import", ""])
def test_an_id_that_can_not_be_one_is_refused(tmp_path: Path, rule_id: str) -> None:
    with pytest.raises(UserError, match="can not be an id"):
        new_rule(rule_id, tmp_path, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_folders_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        new_rule("loops", tmp_path / "no", tmp_path)
    assert (
        str(caught.value)
        == f"{tmp_path / 'no'}: is no folder; run this in the source tree, or name another: --checks, --rules"
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("call.arguments.amount", "call.argments.amount", ["my_rule.yaml:12:3: call has no field argments; did you mean arguments?"]),
        ("double(order.total)", "double(ordr.total)", ["my_rule.yaml:12:3: unknown variable ordr; did you mean order?"]),
        ("double(call.arguments.amount) > double(order.total)", "call.name > 5", ["my_rule.yaml:12:3: compares values of different types; convert with string(), int() or double()"]),
        ("double(call.arguments.amount) > double(order.total)", "call.name", ["my_rule.yaml:12:3: gives str; write a condition: true or false"]),
        ("tools: [issue_refund]}", "tools: issue_refund}", ['my_rule.yaml:9:11: tools is "issue_refund"; expected a list']),
        ("  summary:", "  sumary:", ["my_rule.yaml:13:3: unknown field sumary; did you mean summary?"]),
        ("where: result.id", "wher: result.id", ["my_rule.yaml:11:33: unknown field wher; did you mean where?"]),
        ("tags: []", "tags: [atlas.aml.t0110.003]", ["my_rule.yaml:16:8: unknown tag atlas.aml.t0110.003; did you mean atlas.aml.t0110.002?"]),
        ("{tool: get_order, args: {id: A-1}, result: {id: A-1, total: 50}}", "{tol: get_order}", [
            f"my_rule.yaml:{line}:9: the event is not one of the known kinds; expected exactly one of system, user, context, assistant, tool, define; did you mean tool?"
            for line in (32, 38)
        ]),
    ],
)  # fmt: skip
def test_a_mistake_inside_a_condition_or_a_test_has_its_place_too(
    tmp_path: Path, old: str, new: str, expected: list[str]
) -> None:
    file = new_rule("my_rule", tmp_path, tmp_path, "match").rule
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(UserError) as caught:
        load_rule(file, "my_rule.yaml")
    assert [str(problem) for problem in caught.value.problems] == expected
