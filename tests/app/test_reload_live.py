"""A monitor whose rules change while it works: what is judged after it, what stays, what is shown."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from otelmon.app.reload import LawSource
from otelmon.app.runtime import Monitor
from otelmon.detect import conversations, engine
from otelmon.detect.engine import Judgement, Laws
from otelmon.vocabulary.event import Timeline
from tests.app.distributions import acme
from tests.app.test_dry_run import a_draft
from tests.app.test_plugins import site as site
from tests.cli.conftest import COMMAND, Otelmon
from tests.cli.conftest import otelmon as otelmon
from tests.services.monitor import Call, Talk, request, until
from tests.system.monitor import free_port

RULES = ("any_charge", "some_charge")


def write(folder: Path, severity: str) -> None:
    """Both rules, of one severity."""
    for rule_id in RULES:
        text = a_draft(folder, rule_id).read_text()
        text = text.replace("status: draft", "status: stable").replace("severity: high", f"severity: {severity}")
        (folder / f"{rule_id}.yaml").write_text(text)


class Watching:
    """A monitor in this process that watches a folder of two rules."""

    def __init__(self, folder: Path, stages: tuple[str, ...] = ("receive", "assemble", "detect", "store")) -> None:
        self.rules = folder / "mine"
        self.rules.mkdir(parents=True)
        write(self.rules, "high")
        self.file = folder / "otelmon.toml"
        self.web = f"127.0.0.1:{free_port()}"
        self.http = f"127.0.0.1:{free_port()}"
        self.file.write_text(
            f'data = "{folder / "data"}"\nrules_dirs = ["{self.rules}"]\n'
            f'[receive]\ngrpc = ""\nhttp = "{self.http}"\n[web]\nlisten = "{self.web}"\n'
            "[assemble]\nsettle_seconds = 0.3\nidle_seconds = 3\n[store]\nbatch_seconds = 0.1\n[spool]\nfsync = false\n"
        )
        source = LawSource(self.file, {}, {})
        self.loaded = source.load()
        self.monitor = Monitor(self.loaded.settings.config, self.loaded.laws, stages)
        self.monitor.watch(source, self.loaded)
        self.monitor.start()

    def get(self, path: str) -> httpx.Response:
        return httpx.get(f"http://{self.web}{path}", trust_env=False, timeout=30)

    def send(self, *talks: Talk) -> None:
        headers = {"content-type": "application/json"}
        answer = httpx.post(f"http://{self.http}/v1/traces", content=request(*talks), headers=headers, trust_env=False)
        assert answer.status_code == 200

    def findings(self, **given: str) -> list[dict[str, Any]]:
        answer = httpx.get(
            f"http://{self.web}/api/v1/findings", params={"limit": "100000", **given}, trust_env=False, timeout=30
        )
        return [row["finding"] for row in answer.json() if row["finding"]["rule_id"] in RULES]

    def of(self, talk: int) -> dict[str, dict[str, Any]]:
        return {f["rule_id"]: f for f in self.findings(status="open") if f["trace_id"] == f"{talk:032x}"}


@pytest.fixture
def watching(tmp_path: Path) -> Iterator[Watching]:
    made = Watching(tmp_path)
    yield made
    made.monitor.stop()


def charge(number: int, conversation: str = "") -> Talk:
    call = Call("charge_card", {"amount": number}, {"ok": True})
    return Talk(number=number, user=f"charge {number}", calls=(call,), answer="I looked.", conversation=conversation)


def test_after_a_reload_news_are_judged_by_the_new_rules_and_what_was_found_keeps_its_version(
    watching: Watching,
) -> None:
    watching.send(charge(1, "c-1"), charge(2, "c-2"))
    until(lambda: len(watching.of(1)) == len(watching.of(2)) == 2)
    until(lambda: [r["run"]["closed"] for r in watching.get("/api/v1/runs").json()] == ["root", "root"])
    before = {rule_id: f["rule_version"] for rule_id, f in watching.of(1).items()}
    assert before == {r: watching.loaded.laws.rules.rules[r].version for r in RULES}
    write(watching.rules, "critical")
    until(lambda: watching.get("/api/v1/rules").json()["version"] != watching.loaded.laws.rules.version)
    now = {r["id"]: r["version"] for r in watching.get("/api/v1/rules").json()["rules"] if r["id"] in RULES}
    assert set(now.values()).isdisjoint(before.values())
    watching.send(charge(3, "c-1"), charge(4, "c-4"))
    until(lambda: len(watching.of(3)) == len(watching.of(4)) == 2)
    until(lambda: {f["severity"] for f in watching.of(1).values()} == {"critical"})  # its conversation has news
    for talk in (1, 3, 4):
        assert {r: f["rule_version"] for r, f in watching.of(talk).items()} == now
    assert {r: f["rule_version"] for r, f in watching.of(2).items()} == before
    assert {f["severity"] for f in watching.of(2).values()} == {"high"}
    run = next(f["run_id"] for f in watching.of(4).values())
    assert f'<span class="small">version {now["any_charge"]}</span>' in watching.get(f"/runs/{run}").text
    page = watching.get("/rules/any_charge").text
    assert f"version {now['any_charge']}, folder" in page
    assert f'otelmon_build_info{{rules="{watching.monitor.laws.rules.version}"' in watching.get("/metrics").text


def test_a_rule_that_is_removed_takes_back_what_it_said_where_there_is_news(watching: Watching) -> None:
    watching.send(charge(1, "c-1"))
    until(lambda: len(watching.of(1)) == 2)
    (watching.rules / "some_charge.yaml").unlink()
    until(lambda: "some_charge" not in watching.monitor.laws.rules.rules)
    assert len(watching.of(1)) == 2
    watching.send(charge(2, "c-1"))
    until(lambda: list(watching.of(2)) == list(watching.of(1)) == ["any_charge"])


def test_mistakes_are_shown_until_they_are_gone(watching: Watching) -> None:
    whole = (watching.rules / "any_charge.yaml").read_text()
    (watching.rules / "any_charge.yaml").write_text(whole.replace("severity: high", "severity: hihg"))
    until(lambda: "otelmon_rules_last_reload_success 0.0" in watching.get("/metrics").text)
    state = watching.get("/api/v1/rules").json()
    assert state["version"] == watching.loaded.laws.rules.version
    [mistake] = state["reload"]["mistakes"]
    assert mistake.startswith(f"{watching.rules}/any_charge.yaml:4:1: severity is ")
    assert "hihg" in watching.get("/rules").text
    assert watching.get("/readyz").status_code == 200  # it works, by the old rules
    assert 'otelmon_rules_reload_total{result="failure"} 1.0' in watching.get("/metrics").text
    (watching.rules / "any_charge.yaml").write_text(whole)
    until(lambda: "otelmon_rules_last_reload_success 1.0" in watching.get("/metrics").text)
    assert "hihg" not in watching.get("/rules").text


def test_a_new_rule_has_its_zero_series_from_the_reload_on(watching: Watching) -> None:
    text = (watching.rules / "any_charge.yaml").read_text().replace("any_charge", "third_charge")
    (watching.rules / "third_charge.yaml").write_text(text)
    until(lambda: 'otelmon_check_errors_total{rule="third_charge"} 0.0' in watching.get("/metrics").text)


def test_a_rule_put_on_trial_by_a_reload_opens_no_incident_any_more(watching: Watching) -> None:
    for rule_id in RULES:
        file = watching.rules / f"{rule_id}.yaml"
        file.write_text(file.read_text().replace("status: stable", "status: test"))
    until(lambda: watching.monitor.laws.rules.rules["any_charge"].status == "test")
    watching.send(charge(1))
    until(lambda: len(watching.of(1)) == 2)
    until(lambda: 'rule="any_charge",severity="high",status="test"} 1.0' in watching.get("/metrics").text)
    incidents = watching.get("/api/v1/incidents").json()["incidents"]
    assert not any(set(RULES) & set(one["rule_ids"]) for one in incidents)


def test_a_swap_under_load_never_mixes_two_sets_in_one_judgement(
    watching: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both rules are of one severity in each set: findings of one judgement that differ come from parts of two."""
    first = watching.loaded.laws
    write(watching.rules, "critical")
    until(lambda: watching.monitor.laws.rules.version != first.rules.version)
    second = watching.monitor.laws
    judgements: list[set[str]] = []

    def judge(timeline: Timeline, laws: Laws) -> Judgement:
        found = engine.judge(timeline, laws)
        judgements.append({f.severity for f in found.findings if f.rule_id in RULES})
        return found

    monkeypatch.setattr(conversations, "judge", judge)
    stop = threading.Event()

    def swap() -> None:
        for laws in itertools.cycle((first, second)):
            watching.monitor.change_laws(laws)
            if stop.wait(0.003):
                return

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        for n in range(100, 300, 10):
            watching.send(*(charge(k, f"c-{k % 40}") for k in range(n, n + 10)))
            time.sleep(0.1)
        until(lambda: len({f["trace_id"] for f in watching.findings(status="open")}) == 200)
    finally:
        stop.set()
        swapper.join()
    assert set(map(len, judgements)) <= {0, 1}
    assert {severity for severities in judgements for severity in severities} == {"high", "critical"}
    for finding in watching.findings(status="open"):
        laws = first if finding["severity"] == "high" else second
        assert finding["rule_version"] == laws.rules.rules[finding["rule_id"]].version
    assert watching.monitor.problems() == []
    assert sum(w.counters()["stage_restarts", w.name] for w in watching.monitor.workers) == 0


def test_a_stage_made_again_after_a_swap_judges_by_the_new_laws(watching: Watching) -> None:
    write(watching.rules, "critical")
    until(lambda: watching.monitor.laws.rules.rules["any_charge"].severity == "critical")
    detect = next(worker for worker in watching.monitor.workers if worker.name == "detect")
    stage = detect.stage
    assert stage is not None
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(stage, "step", lambda _: 1 / 0)
        until(lambda: detect.stage is not stage and detect.stage is not None)
    watching.send(charge(1))
    until(lambda: {f["severity"] for f in watching.of(1).values()} == {"critical"})


def test_what_is_accepted_undecided_and_raised_is_told(watching: Watching) -> None:
    odd = a_draft(watching.rules, "odd_charge", when="call.arguments.nothing > 3").read_text()
    (watching.rules / "odd_charge.yaml").write_text(odd.replace("status: draft", "status: stable"))
    for rule, expires, reason in (
        ("any_charge", "2999-01-01", "known"),
        ("loop", "2999-01-01", "idle"),
        ("*", "2020-01-01", "over"),
    ):
        with watching.file.open("a") as file:
            file.write(f'[[suppress]]\nrule = "{rule}"\nreason = "{reason}"\nexpires = "{expires}"\n')
    until(lambda: len(watching.monitor.laws.suppress) == 3 and "odd_charge" in watching.monitor.laws.rules.rules)
    watching.send(charge(1))
    until(lambda: list(watching.of(1)) == ["some_charge"])
    until(lambda: watching.get("/api/v1/rules").json()["suppressed"] == {"any_charge": 1})
    state = watching.get("/api/v1/rules").json()
    assert [(s["reason"], s["expired"], s["matched"]) for s in state["suppressions"]] == [
        ("known", False, True), ("idle", False, False), ("over", True, False),
    ]  # fmt: skip
    assert state["undecided"]["odd_charge"] >= 1
    metrics = watching.get("/metrics").text
    assert 'otelmon_findings_suppressed_total{rule="any_charge"} 1.0' in metrics
    assert 'otelmon_conditions_undecided_total{rule="odd_charge"} 0.0' not in metrics
    done = subprocess.run(
        [COMMAND, "--config", watching.file, "doctor"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 3  # the expired one
    lines = done.stdout.splitlines()
    assert "-      suppressed findings: any_charge 1 since the server started" in lines
    assert any(line.startswith("-      suppressed findings stored: any_charge 1: ") for line in lines)
    assert watching.get("/api/v1/suppressed").json() == [
        {"rule_id": "any_charge", "agent_name": "billing", "amount": 1}
    ]
    assert "ok     suppression of any_charge: until 2999-01-01 (known)" in lines
    assert (
        "-      suppression of loop: has kept nothing back since the server started (idle, until 2999-01-01)" in lines
    )
    assert "WRONG  suppression of *: expired on 2020-01-01 (over); remove it, or give it another date" in lines
    assert any(
        line.startswith("-      conditions: could not be decided, and counted as false: odd_charge ") for line in lines
    )
    assert any(line.startswith("ok     rules in force: version ") for line in lines)


def test_a_plugin_that_is_allowed_later_is_taken_and_what_its_check_raises_is_told(
    watching: Watching, site: Path, otelmon: Otelmon
) -> None:
    acme(site)
    with watching.file.open() as file:
        text = file.read()
    watching.file.write_text(f'plugins = ["acme-checks"]\n{text}')
    until(lambda: "acme_too_dear" in watching.monitor.laws.rules.rules)
    state = watching.get("/api/v1/rules").json()
    assert [(p["name"], p["loaded"], p["rules"]) for p in state["plugins"]] == [
        ("acme-checks", True, ["acme_too_dear"])
    ]
    call = Call("charge_card", {"amount": "five"}, {"ok": True})
    watching.send(Talk(number=1, user="charge five", calls=(call,), answer="I looked."))
    until(lambda: watching.get("/api/v1/rules").json()["check_errors"].get("acme_too_dear", 0) >= 1)
    assert watching.get("/api/v1/rules").json()["raised"]["acme_too_dear"].startswith("TypeError: ")
    until(lambda: len(watching.of(1)) == 2)  # the others go on
    done = otelmon("--config", watching.file, "doctor")
    assert "WRONG  check of acme_too_dear: raised " in done.stdout
    assert "last TypeError: " in done.stdout
    assert " at checks.py:" in done.stdout
    watching.file.write_text(text)
    until(lambda: "acme_too_dear" not in watching.monitor.laws.rules.rules)
    assert [p["loaded"] for p in watching.get("/api/v1/rules").json()["plugins"]] == [False]


def test_a_reload_needs_no_store(tmp_path: Path) -> None:
    watching = Watching(tmp_path / "one", ("receive", "assemble", "detect"))
    try:
        write(watching.rules, "low")
        until(lambda: watching.monitor.laws.rules.rules["any_charge"].severity == "low")
        assert watching.get("/api/v1/rules").json()["judges"] is True
    finally:
        watching.monitor.stop()


def test_a_served_monitor_reloads_on_a_signal_and_by_itself(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    write(tmp_path / "mine", "high")
    web = f"127.0.0.1:{free_port()}"
    settings = {
        "rules_dirs": json.dumps(["mine"]),
        "receive.grpc": "",
        "receive.http": f"127.0.0.1:{free_port()}",
        "web.listen": web,
    }
    given = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("OTELMON_", "OTEL_"))}
    errors = tmp_path / "err.log"
    with (
        errors.open("w") as log,
        subprocess.Popen(
            [COMMAND, *given, "serve"], cwd=tmp_path, env=kept, stdout=subprocess.DEVNULL, stderr=log
        ) as server,
    ):
        try:

            def state() -> dict[str, Any]:
                try:
                    found: dict[str, Any] = httpx.get(f"http://{web}/api/v1/rules", trust_env=False).json()
                except httpx.HTTPError:
                    return {"version": ""}
                return found

            until(lambda: bool(state()["version"]))
            first = state()
            server.send_signal(signal.SIGHUP)
            until(lambda: state()["reload"]["at_unix_nano"] > first["reload"]["at_unix_nano"])
            assert state()["version"] == first["version"]
            write(tmp_path / "mine", "low")
            until(lambda: state()["version"] != first["version"])
            (tmp_path / "mine" / "any_charge.yaml").write_text("id: any_charge\n")
            until(lambda: bool(state()["reload"]["mistakes"]))
            doctor = subprocess.run(
                [COMMAND, *given, "doctor"],
                cwd=tmp_path,
                env=kept,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert doctor.returncode == 3
            assert "WRONG  rules in force: version " in doctor.stdout
            assert "any_charge.yaml:1:1: title is missing" in doctor.stdout
        finally:
            server.send_signal(signal.SIGTERM)
            assert server.wait(30) == 0
    assert errors.read_text().count("any_charge.yaml:1:1: title is missing") == 1
