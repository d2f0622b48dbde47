"""Rules tried on stored runs: what they would find, open and page, beside the rules in force."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otelmon.app.dry_run import DAY, forecast, with_tried, would_open
from otelmon.app.laws import load_laws
from otelmon.app.offline import Report
from otelmon.app.reader import open_reader
from otelmon.rules.loader import load_rule, with_params
from otelmon.store.results import Payload
from otelmon.vocabulary.config import Config, IncidentsConfig, Suppression, WebConfig
from otelmon.web.stored import frames, read_frames
from tests.app.test_reload import a_rule
from tests.cli.conftest import Otelmon
from tests.cli.conftest import otelmon as otelmon
from tests.services.full import full as full
from tests.services.monitor import LiveMonitor
from tests.system.monitor import free_port


def a_draft(folder: Path, rule_id: str = "any_charge", when: str = "call.name == 'charge_card'") -> Path:
    """A draft that fires on each charge."""
    text = f"""\
id: {rule_id}
title: A charge
status: draft
severity: high
family: policy
description: Somebody charges.
check: match
scope: run
params: {{calls: {{tools: ["*"]}}, when: "{when}", summary: "a charge"}}
needs: []
runbook: |
  ## Meaning
  A charge.
  ## Impact
  Money.
  ## Diagnosis
  Look.
  ## Mitigation
  Ask.
tests:
  - name: fires
    events:
      - {{tool: charge_card, args: {{amount: 1}}, result: {{}}}}
    fires: [1]
  - name: silent
    events:
      - {{tool: get_order, args: {{}}, result: {{}}}}
    fires: []
"""
    path = folder / f"{rule_id}.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def at(server: LiveMonitor) -> tuple[str, str]:
    return "--set", f"web.listen={server.web.removeprefix('http://')}"


def test_a_draft_on_what_a_server_has_stored(otelmon: Otelmon, full: LiveMonitor, tmp_path: Path) -> None:
    done = otelmon(*at(full), "rules", "dry-run", a_draft(tmp_path), "--json", "--show", "100")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["source"].startswith("the server on ")
    assert document["left_out_from"] == 0
    [rule] = document["rules"]
    assert (rule["rule_id"], rule["status"], rule["gone"], rule["changed"]) == ("any_charge", "stable", 0, 0)
    charges = [c for c in sql(full, "charge_card")]
    assert rule["findings"] == rule["new"] == len(rule["examples"]) == len(charges) > 1
    assert rule["runs"] == len({run for run, _ in charges})
    assert rule["incidents"] >= rule["pages"] >= 1
    assert {e["kind"] for e in rule["examples"]} == {"new"}
    text = otelmon(*at(full), "rules", "dry-run", tmp_path / "any_charge.yaml", "--show", "1").stdout
    assert f"the rules in force: {len(charges)} new, 0 gone, 0 changed" in text
    assert text.count("\n  new ") == 1


def sql(server: LiveMonitor, tool: str) -> list[tuple[str, str]]:
    database = server.monitor.database
    assert database is not None
    with database.read() as cursor:
        return cursor.execute("SELECT run_id, call_key FROM tool_calls WHERE tool_name = ?", [tool]).fetchall()


def test_the_rules_in_force_find_what_the_server_found(otelmon: Otelmon, full: LiveMonitor, tmp_path: Path) -> None:
    catalogue = ("--set", f"catalogue={full.monitor.config.catalogue}")
    done = otelmon(*at(full), *catalogue, "rules", "dry-run", "--json")
    assert done.returncode == 0, done.stderr
    counted = {rule["rule_id"]: rule["findings"] for rule in json.loads(done.stdout)["rules"] if rule["findings"]}
    stored: dict[str, int] = {}
    for row in full.read("findings", limit=1000, status="open"):
        stored[row["finding"]["rule_id"]] = stored.get(row["finding"]["rule_id"], 0) + 1
    assert counted == stored
    assert "silent     " in otelmon(*at(full), *catalogue, "rules", "dry-run").stdout


def test_without_a_server_the_data_folder_is_read_and_a_part_is_said_to_be_one(
    otelmon: Otelmon, tmp_path: Path
) -> None:
    folder = tmp_path / "m"
    from tests.services.monitor import double_write

    server = LiveMonitor(folder)
    server.judged(double_write(1), double_write(2))
    server.judged(double_write(3))
    server.stop()
    given = ("--set", f"data={folder / 'data'}", "--set", f"web.listen=127.0.0.1:{free_port()}")
    done = otelmon(*given, "rules", "dry-run", a_draft(tmp_path), "--json")
    document = json.loads(done.stdout)
    assert document["source"] == f"the data folder {folder / 'data'}"
    assert (document["runs"], document["rules"][0]["findings"]) == (3, 6)
    later = otelmon(*given, "rules", "dry-run", "any_charge.yaml", "--since", "2999-01-01", "--json")
    assert json.loads(later.stdout)["runs"] == 0
    config = msgspec.structs.replace(
        Config(), data=str(folder / "data"), web=WebConfig(listen=given[3].partition("=")[2])
    )
    with open_reader(config, 0) as reader:
        sizes = [len(payload.value) for payload in reader.payloads(None, None)]
        from otelmon.app.dry_run import dry_run_stored

        [report], left_out_from = dry_run_stored(reader.payloads(None, None), [load_laws(config)], config, sizes[0])
    assert report.runs == 2
    assert left_out_from > 0


def test_nothing_to_read_is_unreachable_and_a_wrong_name_is_a_mistake(otelmon: Otelmon, tmp_path: Path) -> None:
    nowhere = ("--set", "data=nowhere", "--set", f"web.listen=127.0.0.1:{free_port()}")
    assert otelmon(*nowhere, "rules", "dry-run", "loop").returncode == 3
    (tmp_path / "bad.yaml").write_text("id: bad\n")
    done = otelmon(*nowhere, "rules", "dry-run", "lop", "bad.yaml", "none.yaml")
    assert done.returncode == 2
    assert "lop: there is no such rule" in done.stderr
    assert "bad.yaml:1:1: title is missing" in done.stderr
    assert "none.yaml: can not be read" in done.stderr
    both = otelmon(*nowhere, "rules", "dry-run", "loop", "--on", "bad.yaml", "--since", "2026-01-01")
    assert (both.returncode, "do not go with --on" in both.stderr) == (2, True)


def a_run(number: int, day: int, tool: str, times: int) -> str:
    """A transcript line: `times` calls of a tool, on a day of May 2026."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go", "timestamp": f"2026-05-{day:02d}T08:00:00Z"}]
    for call in range(times):
        wish = {"id": f"c{number}-{call}", "type": "function", "function": {"name": tool, "arguments": '{"amount": 5}'}}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [wish], "timestamp": f"2026-05-{day:02d}T08:00:0{call}Z"},
            {"role": "tool", "tool_call_id": wish["id"], "content": '{"ok": true}', "timestamp": f"2026-05-{day:02d}T08:00:0{call}Z"},
        ]  # fmt: skip
    messages.append({"role": "assistant", "content": "I looked.", "timestamp": f"2026-05-{day:02d}T08:01:00Z"})
    return json.dumps({"id": f"run-{number}", "tools": [], "messages": messages}) + "\n"


def test_the_volume_is_by_the_time_of_the_events(otelmon: Otelmon, tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    file.write_text("".join(a_run(day, day, "charge_card", 2) for day in range(1, 12)))
    given = ("rules", "dry-run", a_draft(tmp_path), "--on", file)
    document = json.loads(otelmon(*given, "--json").stdout)
    [rule] = document["rules"]
    assert (rule["findings"], rule["runs"], rule["severities"]) == (22, 11, {"high": 22})
    assert document["days"] == pytest.approx(10, abs=0.01)
    assert rule["findings_per_day"] == pytest.approx(2.2, abs=0.01)
    assert (rule["incidents"], rule["pages"]) == (11, 11)  # a day apart: each is a problem of its own
    assert "2.2 findings a day, 15.4 a week; 1.1 pages a day, 7.7 a week" in otelmon(*given).stdout
    assert otelmon(*given, "--max-pages", "1").returncode == 1
    assert otelmon(*given, "--max-pages", "1.2").returncode == 0


def test_data_of_less_than_an_hour_says_nothing_about_a_day(otelmon: Otelmon, tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    file.write_text(a_run(1, 1, "charge_card", 2))
    done = otelmon("rules", "dry-run", a_draft(tmp_path), "--on", file)
    assert "can not be told: the events lie less than an hour apart" in done.stdout


def test_a_rule_of_the_same_id_stands_for_the_one_in_force(otelmon: Otelmon, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    a_draft(tmp_path / "mine")
    stable = (tmp_path / "mine" / "any_charge.yaml").read_text().replace("status: draft", "status: stable")
    (tmp_path / "mine" / "any_charge.yaml").write_text(stable)
    other = a_draft(tmp_path, when="call.name == 'charge_card' && call.arguments.amount > 4 || call.name == 'pay'")
    other.write_text(other.read_text().replace('"a charge"', '"a large charge"'))
    file = tmp_path / "runs.jsonl"
    small = a_run(1, 1, "charge_card", 1).replace('\\"amount\\": 5', '\\"amount\\": 3')
    file.write_text(small + a_run(2, 2, "charge_card", 1) + a_run(3, 3, "pay", 1))
    done = otelmon("--set", "rules_dirs=mine", "rules", "dry-run", "any_charge.yaml", "--on", file, "--json")
    [rule] = json.loads(done.stdout)["rules"]
    assert (rule["new"], rule["gone"], rule["changed"], rule["findings"]) == (1, 1, 1, 2)
    assert [e["kind"] for e in rule["examples"]] == ["new", "changed", "gone"]


def test_silent_rules_open_nothing_unless_they_are_tried(tmp_path: Path) -> None:
    config = Config()
    laws = load_laws(config)
    draft = load_rule(a_draft(tmp_path))
    tried = with_tried(laws, [draft])
    assert tried.rules.rules["any_charge"].status == "stable"
    assert tried.rules.version != laws.rules.version
    assert with_tried(laws, []).rules.version == laws.rules.version
    rules = {**laws.rules.rules, "any_charge": draft}
    silent = msgspec.structs.replace(laws, rules=msgspec.structs.replace(laws.rules, rules=rules))
    from otelmon.app.dry_run import dry_run_files

    file = tmp_path / "runs.jsonl"
    file.write_text(a_run(1, 1, "charge_card", 1))
    [report] = dry_run_files([file], [silent], config, together=False)
    charges = [finding for finding in report.findings if finding.rule_id == "any_charge"]
    assert len(charges) == 1
    assert would_open(charges, silent, IncidentsConfig()) == []
    assert len(would_open(charges, tried, IncidentsConfig())) == 1


def test_what_is_accepted_is_counted_apart(tmp_path: Path) -> None:
    config = Config()
    laws = with_tried(load_laws(config), [load_rule(a_draft(tmp_path))])
    accepted = Suppression(rule="any_charge", reason="known", expires="2026-05-01")
    laws = msgspec.structs.replace(laws, suppress=(accepted,))
    from otelmon.app.dry_run import dry_run_files

    file = tmp_path / "runs.jsonl"
    file.write_text(a_run(1, 1, "charge_card", 1) + a_run(2, 2, "charge_card", 1))
    [report] = dry_run_files([file], [laws], config, together=False)
    [rule] = forecast(report, report, laws, config, ["any_charge"], 3, "here").rules
    assert (rule.findings, rule.suppressed) == (1, 1)
    assert report.last_unix_nano - report.first_unix_nano == pytest.approx(DAY, rel=0.01)


def test_nothing_judged_gives_no_times() -> None:
    laws = load_laws(Config())
    found = forecast(Report(), Report(), laws, Config(), ["loop"], 3, "nothing")
    assert (found.days, found.rules[0].findings, found.rules[0].findings_per_day) == (0, 0, None)
    assert with_params(laws.rules.rules["loop"], {}).id == "loop"


@given(st.lists(st.binary(max_size=300), max_size=8), st.integers(1, 40))
def test_frames_come_back_however_the_stream_is_cut(values: list[bytes], cut: int) -> None:
    sent = [
        Payload(topic="t", partition=1, offset=n, received_unix_nano=n, encoding="otlp_proto", value=value)
        for n, value in enumerate(values)
    ]
    data = b"".join(frames(sent))
    assert list(read_frames(data[i : i + cut] for i in range(0, len(data), cut))) == sent
    if data:
        with pytest.raises(msgspec.DecodeError):
            list(read_frames([data[:-1]]))


def test_stored_messages_are_not_for_foreign_pages(full: LiveMonitor) -> None:
    assert full.client.get("/api/v1/payloads").status_code == 400
    given = {"x-otelmon": "1"}
    assert full.client.get("/api/v1/payloads", params={"since": "soon"}, headers=given).status_code == 400
    whole = full.client.get("/api/v1/payloads", headers=given)
    assert whole.status_code == 200
    assert len(list(read_frames([whole.content]))) >= 1
    none = full.client.get("/api/v1/payloads", params={"until": "1"}, headers=given)
    assert none.content == b""


def test_a_rule_of_a_folder_is_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "mine_one.yaml").write_text(a_rule("mine_one"))
    rule = load_laws(Config(rules_dirs=(str(tmp_path),))).rules.rules["mine_one"]
    assert rule.origin == "folder"
