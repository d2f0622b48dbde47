"""otelmon check: what it prints in each form, and how it ends."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.conftest import COMMAND, Otelmon, refund

HOSTILE = "\x1b[31mRefund\x1b]0;owned\x07 18.50 on OR-771.\u202e <b>&\"'</b> \x00\x08\ufffe"
FIELDS = {
    "finding_id", "rule_id", "family", "severity", "status", "trace_id", "conversation_id", "span_ids", "tool_call_id",
    "tool_name", "agent_name", "summary", "evidence",
}  # fmt: skip


def no_constants(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def test_text_names_the_finding_and_the_file_and_ends_with_one(otelmon: Otelmon, wrong: Path) -> None:
    done = otelmon("check", wrong)
    assert done.returncode == 1, done.stderr
    assert "critical duplicate_write: issue_refund took effect 2 times" in done.stdout
    assert f"{wrong}:1" in done.stdout
    assert "2 runs, 3 tool calls," in done.stdout
    assert done.stderr == ""


def test_nothing_found_ends_with_zero(otelmon: Otelmon, right: Path) -> None:
    done = otelmon("check", right)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("1 runs, 1 tool calls,")
    assert "nothing found" in done.stdout


@pytest.mark.parametrize(("severity", "code"), [("info", 1), ("high", 1), ("critical", 1)])
def test_findings_at_or_above_the_bar_end_with_one(otelmon: Otelmon, wrong: Path, severity: str, code: int) -> None:
    assert otelmon("check", wrong, "--fail-on", severity).returncode == code


def test_findings_below_the_bar_end_with_zero(otelmon: Otelmon, wrong: Path, tmp_path: Path) -> None:
    (tmp_path / "otelmon.toml").write_text('[rules.duplicate_write]\nseverity = "medium"\n')
    assert otelmon("check", wrong).returncode == 0
    assert otelmon("check", wrong, "--fail-on", "medium").returncode == 1


def test_json_is_the_contract(otelmon: Otelmon, wrong: Path) -> None:
    done = otelmon("check", wrong, "--format", "json")
    document = json.loads(done.stdout, parse_constant=no_constants)
    assert set(document) == {
        "version", "runs", "spans", "tool_calls", "findings", "not_evaluable", "suppressed", "undecided", "check_errors",
    }  # fmt: skip
    assert (document["version"], document["runs"], document["tool_calls"]) == (1, 2, 3)
    [finding] = document["findings"]
    assert set(finding) == FIELDS
    assert finding["rule_id"] == "duplicate_write"
    assert finding["tool_call_id"] == "c1"
    assert isinstance(finding["span_ids"], list)
    assert isinstance(finding["evidence"], dict)
    assert all(isinstance(n, int) for reasons in document["not_evaluable"].values() for n in reasons.values())
    assert done.returncode == 1


def test_the_same_file_gives_the_same_json(otelmon: Otelmon, wrong: Path) -> None:
    once, again = (otelmon("check", wrong, "--format", "json").stdout for _ in range(2))
    assert once == again


def test_sarif_has_what_the_standard_requires(otelmon: Otelmon, wrong: Path) -> None:
    document = json.loads(otelmon("check", wrong, "--format", "sarif").stdout)
    assert document["version"] == "2.1.0"
    [run] = document["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "otelmon"
    rules = {rule["id"] for rule in driver["rules"]}
    for result in run["results"]:
        assert result["ruleId"] in rules
        assert result["level"] in ("none", "note", "warning", "error")
        assert isinstance(result["message"]["text"], str)
        for location in result["locations"]:
            place = location["physicalLocation"]
            uri = place["artifactLocation"]["uri"]
            assert re.fullmatch(r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+", uri)
            assert uri.endswith("runs.jsonl")
            assert place["region"]["startLine"] == 1
        assert all(isinstance(value, str) for value in result["partialFingerprints"].values())
    assert len(run["results"]) == 1


def test_sarif_of_nothing_is_a_run_without_results(otelmon: Otelmon, right: Path) -> None:
    [run] = json.loads(otelmon("check", right, "--format", "sarif").stdout)["runs"]
    assert run["results"] == []


def test_junit_counts_what_failed(otelmon: Otelmon, wrong: Path, right: Path) -> None:
    suite = ElementTree.fromstring(otelmon("check", wrong, "--format", "junit").stdout)
    assert (suite.tag, suite.get("tests"), suite.get("failures")) == ("testsuite", "1", "1")
    [case] = suite
    assert case.get("classname") == "duplicate_write"
    assert case[0].tag == "failure"
    suite = ElementTree.fromstring(otelmon("check", right, "--format", "junit").stdout)
    assert (suite.get("failures"), len(suite)) == ("0", 1)


@pytest.mark.parametrize("form", ["text", "json", "sarif", "junit"])
def test_hostile_text_drives_neither_terminal_nor_parser(otelmon: Otelmon, tmp_path: Path, form: str) -> None:
    name = "issue_refund\x1b[2J<x>&\u202e"
    line = refund(text=HOSTILE).replace("issue_refund", json.dumps(name)[1:-1])
    line = line.replace('"id": "c1"', '"id": "c1\\u001b[0m\\u0000\\ufffe]]>"').replace(
        '"tool_call_id": "c1"', '"tool_call_id": "c1\\u001b[0m\\u0000\\ufffe]]>"'
    )
    file = tmp_path / "hostile \x1b[1m.jsonl"
    file.write_text(line, encoding="utf-8")
    done = otelmon("check", file, "--format", form)
    assert done.returncode == 1, done.stderr
    assert not set(done.stdout) & {"\x1b", "\x07", "\x00", "\x08"}
    assert not set(done.stderr) & {"\x1b", "\x07", "\x00", "\x08"}
    if form == "junit":
        ElementTree.fromstring(done.stdout)
    elif form != "text":
        json.loads(done.stdout, parse_constant=no_constants)
    else:
        assert "\u202e" not in done.stdout


def test_a_file_that_is_not_there(otelmon: Otelmon) -> None:
    done = otelmon("check", "missing.jsonl")
    assert (done.returncode, done.stdout) == (2, "")
    assert "missing.jsonl" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_line_that_can_not_be_read_is_named_and_its_neighbours_judged(otelmon: Otelmon, tmp_path: Path) -> None:
    file = tmp_path / "some.jsonl"
    file.write_text(refund("a", times=1) + "{broken\n" + refund("b", times=1))
    done = otelmon("check", file)
    assert done.returncode == 2
    assert "some.jsonl:2" in done.stderr
    assert "2 runs" in done.stdout


def test_a_catalogue_with_mistakes_is_refused_at_the_place(otelmon: Otelmon, right: Path, tmp_path: Path) -> None:
    (tmp_path / "tools.yaml").write_text("version: 1\ntools:\n  - name: pay\n    efect: destructive\n")
    done = otelmon("check", right, "--catalog", "tools.yaml")
    assert done.returncode == 2
    assert re.search(r"tools\.yaml:4:\d+: .*efect.*effect", done.stderr)


def test_a_catalogue_is_used(otelmon: Otelmon, right: Path, tmp_path: Path) -> None:
    (tmp_path / "tools.yaml").write_text(
        "version: 1\ncomplete: false\ntools: [{name: issue_refund, effect: destructive}]\n"
        "policy:\n  - {id: freeze, tools: [issue_refund], action: forbid, reason: freeze}\n"
    )
    done = otelmon("check", right, "--catalog", "tools.yaml")
    assert done.returncode == 1
    assert "forbidden_write" in done.stdout


def test_files_together_are_one_world(otelmon: Otelmon, tmp_path: Path) -> None:
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    first.write_text(refund("a", times=1))
    second.write_text(refund("b", times=1))
    assert otelmon("check", first, second).returncode == 0
    joined = otelmon("check", first, second, "--together")
    assert joined.returncode == 1
    assert "in two conversations" in joined.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["check"], "Missing argument"),
        (["check", "right.jsonl", "--format", "xml"], "xml"),
        (["chek"], "chek"),
        (["--set", "detect.max_bites=1", "check", "right.jsonl"], "max_bytes"),
        (["--set", "nonsense", "check", "right.jsonl"], "expected KEY=VALUE"),
        (["--config", "none.toml", "check", "right.jsonl"], "none.toml"),
        (["check", "right.jsonl", "--rules", "nowhere"], "nowhere"),
    ],
)
def test_mistakes_of_the_user_end_with_two_and_are_named(
    otelmon: Otelmon, right: Path, arguments: list[str], says: str
) -> None:
    done = otelmon(*arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_key_in_the_file_is_named_with_its_line(otelmon: Otelmon, right: Path, tmp_path: Path) -> None:
    (tmp_path / "otelmon.toml").write_text("[receive]\nhttp = '127.0.0.1:1'\nmax_dept = 3\n")
    done = otelmon("check", right)
    assert done.returncode == 2
    assert re.search(r"otelmon\.toml:3\b.*max_dept.*max_depth", done.stderr)


def test_a_reader_that_goes_away_changes_no_answer(tmp_path: Path) -> None:
    file = tmp_path / "many.jsonl"
    file.write_text("".join(refund(f"r{n}") for n in range(400)))
    piped = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{COMMAND} check {file} --format json | head -1"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (piped.stdout, piped.stderr) == ("{\n", "")
    assert piped.returncode == 1  # the answer all the same


def test_our_own_bug_shows_no_stack_trace_unless_asked(process: Otelmon, right: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import otelmon.app.offline as offline\n"
        "def broken(*_):\n    raise ZeroDivisionError('a bug')\n"
        "offline.check_paths = broken\n"
    )
    done = process("check", right, PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (70, "")
    assert "this is a bug of otelmon" in done.stderr
    assert "Traceback" not in done.stderr
    shown = process("check", right, PYTHONPATH=str(tmp_path), OTELMON_DEBUG="1")
    assert "Traceback" in shown.stderr


def test_a_reader_that_goes_away_is_no_failure_of_other_verbs(tmp_path: Path) -> None:
    piped = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{COMMAND} rules show duplicate_write | true"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (piped.returncode, piped.stderr) == (0, "")


def test_what_is_accepted_is_left_out_and_counted(otelmon: Otelmon, wrong: Path, tmp_path: Path) -> None:
    suppress = '[[suppress]]\nrule = "{}"\nreason = "{}"\nexpires = "{}"\n'
    accepted = suppress.format("duplicate_write", "known", "2999-01-01") + suppress.format("loop", "over", "2019-01-01")
    (tmp_path / "otelmon.toml").write_text(accepted)
    done = otelmon("check", wrong)
    assert done.returncode == 0
    assert "suppressed: duplicate_write (1 findings that the configuration accepts)" in done.stdout
    assert "otelmon.toml:5: the suppression of loop (over) expired on 2019-01-01" in done.stderr
    document = json.loads(otelmon("check", wrong, "--format", "json").stdout)
    assert document["findings"] == []
    assert (document["suppressed"], document["undecided"], document["check_errors"]) == ({"duplicate_write": 1}, {}, {})


def test_a_condition_that_can_not_be_decided_is_counted(otelmon: Otelmon, wrong: Path, tmp_path: Path) -> None:
    policy = "{id: small, tools: [issue_refund], action: forbid, when: 'call.arguments.nothing > 1'}"
    (tmp_path / "catalogue.yaml").write_text(f"version: 1\npolicy: [{policy}]\n")
    done = otelmon("check", wrong, "--catalog", tmp_path / "catalogue.yaml")
    assert re.search(
        r"undecided: a condition of forbidden_write could not be decided \d+ times and counted as false", done.stdout
    )
    document = json.loads(otelmon("check", wrong, "--catalog", tmp_path / "catalogue.yaml", "--format", "json").stdout)
    assert document["undecided"]["forbidden_write"] >= 3
