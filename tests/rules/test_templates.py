"""`rules new`: both files load at once, and the tests are red until they are filled."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from otelmon.checks.registry import declared_in
from otelmon.rules.examples import run_rule_tests
from otelmon.rules.loader import load_rule
from otelmon.rules.templates import new_rule
from otelmon.vocabulary.errors import UserError


def test_the_files_load_and_their_tests_are_red(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = new_rule("retry_storm", tmp_path, tmp_path)
    assert (files.check, files.rule) == (tmp_path / "retry_storm.py", tmp_path / "retry_storm.yaml")
    spec = importlib.util.spec_from_file_location("retry_storm", files.check)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "retry_storm", module)
    spec.loader.exec_module(module)
    results = run_rule_tests(load_rule(files.rule, checks=declared_in("retry_storm")))
    assert [r.verdict for r in results] == ["FAIL", "pass"]


def test_the_check_is_clean_by_the_rules_of_the_house(tmp_path: Path) -> None:
    check = new_rule("retry_storm", tmp_path, tmp_path).check
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
    assert str(caught.value) == f"{tmp_path / 'no'}: is no folder; run this in the source tree"
