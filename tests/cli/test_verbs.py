"""Every verb over what the demo left behind: text, JSON, exit codes, mistakes."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from otelmon.cli import VERBS
from tests.cli.conftest import COMMAND, Otelmon, refund
from tests.demo import Demo
from tests.system.monitor import free_port


def incidents(otelmon: Otelmon, demo: Demo) -> list[dict[str, Any]]:
    done = otelmon(*demo.arguments, "incidents", "list", "--json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["incidents"]
    return found


def incident_of(otelmon: Otelmon, demo: Demo, words: str) -> dict[str, Any]:
    return next(i for i in incidents(otelmon, demo) if words in i["title"])


# -- help ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(otelmon: Otelmon, verb: str) -> None:
    done = otelmon(verb, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: otelmon {verb}")
    for inner in re.findall(r"^  ([a-z-]+)  ", done.stdout.partition("Commands:")[2], re.M):
        assert otelmon(verb, inner, "-h").stdout.startswith(f"Usage: otelmon {verb} {inner}")


def test_help_names_every_verb_and_loads_little() -> None:
    code = (
        "import sys; from otelmon.cli import cli, common; sys.argv = ['otelmon', '--version']; common.run(cli);"
        "print(sorted({'grpc', 'kafka', 'uvicorn', 'starlette'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    top = subprocess.run([COMMAND, "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
    assert set(VERBS) <= set(re.findall(r"^  ([a-z]+) ", top, re.M))


# -- reading -------------------------------------------------------------------------------------
def test_incidents_are_listed(otelmon: Otelmon, demo: Demo) -> None:
    done = otelmon(*demo.arguments, "incidents", "list")
    assert done.returncode == 0, done.stderr
    heading, *rows = done.stdout.splitlines()
    assert heading.split() == ["incident", "severity", "state", "findings", "last", "seen", "what"]
    assert len(rows) == len(incidents(otelmon, demo)) >= 4
    one = otelmon(*demo.arguments, "incidents", "list", "--limit", "1").stdout.splitlines()
    assert len(one) == 3
    assert "more; --limit" in one[-1]
    none = otelmon(*demo.arguments, "incidents", "list", "--agent", "nobody", "--json")
    assert json.loads(none.stdout)["incidents"] == []


def test_an_incident_shows_both_calls(otelmon: Otelmon, demo: Demo) -> None:
    found = incident_of(otelmon, demo, "charge_card")
    done = otelmon(*demo.arguments, "incidents", "show", found["incident_id"][:10])
    assert done.returncode == 0, done.stderr
    assert "attempt-1" in done.stdout
    assert "attempt-2" in done.stdout
    assert "timeout" in done.stdout
    detail = json.loads(otelmon(*demo.arguments, "incidents", "show", found["incident_id"], "--json").stdout)
    assert detail["incident"]["incident_id"] == found["incident_id"]


def test_an_incident_that_is_not_there(otelmon: Otelmon, demo: Demo) -> None:
    done = otelmon(*demo.arguments, "incidents", "show", "nothing")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no incident whose id starts so" in done.stderr
    assert otelmon(*demo.arguments, "incidents", "list", "--severity", "awful").returncode == 2


def test_a_run_is_explained_by_any_id_that_leads_to_it(otelmon: Otelmon, demo: Demo) -> None:
    found = incident_of(otelmon, demo, "charge_card")
    done = otelmon(*demo.arguments, "explain", found["incident_id"])
    assert done.returncode == 0, done.stderr
    assert "user: Please charge customer C-80 59.90" in done.stdout
    assert "! high unsafe_retry" in done.stdout
    [detail] = json.loads(otelmon(*demo.arguments, "explain", found["incident_id"], "--json").stdout)
    by_run = otelmon(*demo.arguments, "explain", detail["run"]["run_id"])
    assert by_run.stdout == done.stdout
    assert otelmon(*demo.arguments, "explain", "nothing").returncode == 2


def test_incidents_are_acknowledged_labelled_and_resolved(otelmon: Otelmon, demo: Demo) -> None:
    found = incident_of(otelmon, demo, "delete_customer")["incident_id"]
    for arguments in (["ack"], ["label", "true_positive"], ["resolve"]):
        verb, *more = arguments
        done = otelmon(*demo.arguments, "incidents", verb, found, *more, "--note", "seen \x1b[1m")
        assert done.returncode == 0, done.stderr
    shown = otelmon(*demo.arguments, "incidents", "show", found).stdout
    assert "resolved" in shown
    assert "true_positive" in shown
    assert "\x1b" not in shown
    assert otelmon(*demo.arguments, "incidents", "label", found, "perhaps").returncode == 2


def test_sql_answers_in_text_and_json_and_changes_nothing(otelmon: Otelmon, demo: Demo) -> None:
    query = "SELECT tool_name, count(*) AS n FROM tool_calls GROUP BY ALL ORDER BY ALL"
    rows = json.loads(otelmon(*demo.arguments, "sql", query, "--json").stdout)
    assert {row["tool_name"]: row["n"] for row in rows}["charge_card"] == 4
    assert otelmon(*demo.arguments, "sql", query).stdout.splitlines()[0].split() == ["tool_name", "n"]
    assert "more than 1 rows" in otelmon(*demo.arguments, "sql", query, "--max-rows", "1").stderr
    for bad in ("SELEC 1", "SELECT * FROM nowhere", "DELETE FROM tool_calls", "SELECT * FROM read_csv('/etc/passwd')"):
        done = otelmon(*demo.arguments, "sql", bad)
        assert done.returncode == 2, bad
        assert "Traceback" not in done.stderr


def test_doctor_accounts_for_every_span(otelmon: Otelmon, demo: Demo) -> None:
    done = otelmon(*demo.arguments, "doctor")
    assert done.returncode == 0, done.stdout
    assert re.search(r"^ok     account of otelmon\.spans/\d+: (\d+) received = \1 stored \+ 0 again", done.stdout, re.M)
    answers = json.loads(otelmon(*demo.arguments, "doctor", "--json").stdout)
    assert {answer["ok"] for answer in answers} == {True, None}


def test_doctor_names_what_is_wrong(otelmon: Otelmon, tmp_path: Path) -> None:
    done = otelmon("--set", "catalogue=nowhere.yaml", "--set", f"data={tmp_path / 'd'}", "doctor")
    assert done.returncode == 3
    assert re.search(r"^WRONG  rules and catalogue: .*nowhere\.yaml", done.stdout, re.M)


def test_the_catalogue_is_shown_from_file_and_traffic(otelmon: Otelmon, demo: Demo, tmp_path: Path) -> None:
    (tmp_path / "tools.yaml").write_text("version: 1\ncomplete: false\ntools: [{name: pay, effect: destructive}]\n")
    document = json.loads(otelmon(*demo.arguments, "catalog", "show", "--catalog", "tools.yaml", "--json").stdout)
    assert [tool["name"] for tool in document["operator"]] == ["pay"]
    assert "charge_card" in {tool["tool_name"] for tool in document["traffic"]}
    text = otelmon(*demo.arguments, "catalog", "show", "--tool", "charge_card").stdout
    assert "traffic (demo-shop)" in text
    assert "get_order" not in text


def test_a_golden_task_is_mined_listed_and_shown(otelmon: Otelmon, demo: Demo, tmp_path: Path) -> None:
    found = incident_of(otelmon, demo, "charge_card")["incident_id"]
    done = otelmon(*demo.arguments, "golden", "mine", found, "--out", "tasks/demo.jsonl")
    assert done.returncode == 0, done.stderr
    [line] = (tmp_path / "tasks" / "demo.jsonl").read_text().splitlines()
    task = json.loads(line)
    assert "unsafe_retry" in task["rules"]
    [listed] = json.loads(otelmon(*demo.arguments, "golden", "list", "--json").stdout)
    assert listed["id"] == task["id"]
    assert task["id"] in otelmon(*demo.arguments, "golden", "list").stdout
    assert json.loads(otelmon(*demo.arguments, "golden", "show", task["id"][:12]).stdout)["id"] == task["id"]
    assert otelmon(*demo.arguments, "golden", "show", "nothing").returncode == 2
    assert otelmon(*demo.arguments, "golden", "mine", "nothing").returncode == 2


@pytest.mark.parametrize("verb", [["incidents", "list"], ["explain", "x"], ["sql", "SELECT 1"], ["golden", "list"]])
def test_without_a_server_or_data_reading_is_unreachable(otelmon: Otelmon, tmp_path: Path, verb: list[str]) -> None:
    place = ["--set", f"web.listen=127.0.0.1:{free_port()}", "--set", f"data={tmp_path / 'nothing'}"]
    done = otelmon(*place, *verb)
    assert (done.returncode, done.stdout) == (3, "")
    assert "otelmon serve" in done.stderr
    assert not (tmp_path / "nothing").exists()


# -- rules, configuration ------------------------------------------------------------------------
def test_rules_are_listed_shown_and_tested(otelmon: Otelmon) -> None:
    listed = json.loads(otelmon("rules", "list", "--json").stdout)
    assert {"duplicate_write", "unsafe_retry", "false_success"} <= {rule["rule"] for rule in listed}
    headings = ["rule", "severity", "status", "family", "version", "origin", "title"]
    assert otelmon("rules", "list").stdout.splitlines()[0].split() == headings
    facts = next(rule for rule in listed if rule["rule"] == "duplicate_write")
    assert (facts["origin"], facts["overridden"], len(facts["version"])) == ("built-in", [], 12)
    changed = json.loads(otelmon("--set", "rules.duplicate_write.severity=low", "rules", "list", "--json").stdout)
    other = next(rule for rule in changed if rule["rule"] == "duplicate_write")
    assert (other["severity"], other["overridden"]) == ("low", ["severity"])
    assert other["version"] != facts["version"]
    shown = otelmon("rules", "show", "duplicate_write").stdout
    assert "window_seconds=900" in shown
    assert f"version      {facts['version']}, which findings of it carry" in shown
    assert "from         built-in: " in shown
    assert "## Mitigation" in shown
    assert json.loads(otelmon("rules", "show", "duplicate_write", "--json").stdout)["id"] == "duplicate_write"
    assert otelmon("rules", "test", "duplicate_write").returncode == 0
    unknown = otelmon("rules", "show", "duplicate_writ")
    assert unknown.returncode == 2
    assert "duplicate_write" in unknown.stderr


def test_a_new_rule_is_two_files_and_none_is_overwritten(otelmon: Otelmon, tmp_path: Path) -> None:
    (tmp_path / "checks").mkdir()
    (tmp_path / "mine").mkdir()
    arguments = ("rules", "new", "my_rule", "--checks", "checks", "--rules", "mine")
    assert otelmon(*arguments).returncode == 0
    assert {path.name for path in tmp_path.rglob("my_rule.*")} == {"my_rule.py", "my_rule.yaml"}
    again = otelmon(*arguments)
    assert again.returncode == 2
    assert "my_rule" in again.stderr
    generic = ("rules", "new", "my_limit", "--check", "threshold", "--rules", "mine")
    assert otelmon(*generic).stdout == "mine/my_limit.yaml\n"
    assert (
        otelmon("--set", "rules_dirs=mine", "rules", "test", "my_limit", "--mutate").returncode == 2
    )  # my_rule's check
    (tmp_path / "mine" / "my_rule.yaml").unlink()
    done = otelmon("--set", "rules_dirs=mine", "rules", "test", "my_limit", "--mutate")
    assert (done.returncode, done.stdout) == (0, "3 passed\n")


def test_a_rule_file_with_mistakes_is_refused_at_the_place(otelmon: Otelmon, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "broken.yaml").write_text("id: broken\ntitle: x\nseverty: high\n")
    (tmp_path / "otelmon.toml").write_text('rules_dirs = ["other"]\n')
    done = otelmon("rules", "list")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.search(r"broken\.yaml:3\b.*severty.*severity", done.stderr)


def test_every_setting_says_where_it_came_from(
    otelmon: Otelmon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "otelmon.toml").write_text('[receive]\nhttp = "127.0.0.1:1"\ngrpc = "127.0.0.1:2"\n')
    monkeypatch.setenv("OTELMON_RECEIVE__GRPC", "127.0.0.1:3")
    shown = json.loads(otelmon("--set", "web.listen=127.0.0.1:4", "config", "show", "--json").stdout)
    for key, value, origin in (
        ("receive.http", "127.0.0.1:1", "otelmon.toml"), ("receive.grpc", "127.0.0.1:3", "OTELMON_RECEIVE__GRPC"),
        ("web.listen", "127.0.0.1:4", "--set"), ("bus", "embedded", "default"),
    ):  # fmt: skip
        assert shown[key]["value"] == value
        assert origin in shown[key]["from"]
    assert "receive.http" in otelmon("config", "show").stdout


def test_secrets_are_not_shown(otelmon: Otelmon) -> None:
    for form in ([], ["--json"]):
        done = otelmon(
            "--set", "web.token=hunter2-secret", "--set", "kafka.sasl_password=hunter3-secret", "config", "show", *form
        )
        assert done.returncode == 0
        assert "hunter" not in done.stdout


# -- sending -------------------------------------------------------------------------------------
def test_replay_needs_a_server_and_one_source(otelmon: Otelmon, tmp_path: Path) -> None:
    assert otelmon("replay").returncode == 2
    assert otelmon("replay", "x.jsonl", "--from", "2026-01-01").returncode == 2
    done = otelmon("replay", "--from", "yesterday")
    assert done.returncode == 2
    assert "ISO time" in done.stderr
    nobody = f"127.0.0.1:{free_port()}"
    done = otelmon("--set", f"web.listen={nobody}", "replay", "--from", "2026-01-01")
    assert done.returncode == 3
    assert nobody in done.stderr
    (tmp_path / "talk.jsonl").write_text(refund())
    done = otelmon("replay", "talk.jsonl", "--endpoint", f"http://{nobody}")
    assert done.returncode == 2
    assert "a chat transcript holds no spans" in done.stderr


def test_serve_refuses_what_can_not_work(otelmon: Otelmon, tmp_path: Path) -> None:
    done = otelmon("serve", "detect")
    assert done.returncode == 2
    assert "--bus kafka" in done.stderr
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = otelmon("serve", "--data", tmp_path / "d", "--listen", address)
        assert done.returncode == 3
        assert address in done.stderr


def test_build_wants_the_source_tree(otelmon: Otelmon) -> None:
    done = otelmon("build", "--check")
    assert done.returncode == 2
    assert "source tree" in done.stderr


def test_kafka_that_is_not_there(otelmon: Otelmon) -> None:
    started = time.monotonic()
    done = otelmon("--set", f"kafka.bootstrap=127.0.0.1:{free_port()}", "kafka", "init")
    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr
    assert time.monotonic() - started < 60
