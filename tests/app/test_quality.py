"""Labelled runs end to end: the product's pipeline, the labels beside it, the command."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from otelmon.app.bench.quality import chosen, label_of, measure, opinions, sources
from otelmon.app.bench.quality_runs import JudgedRun
from otelmon.app.bench.quality_tables import tables
from otelmon.cli import cli
from otelmon.rules.settings import load_settings
from otelmon.vocabulary.errors import UserError

CHARGE = {
    "name": "charge_card",
    "description": "Charge a card.",
    "inputSchema": {
        "type": "object",
        "properties": {"account_id": {"type": "string"}, "amount": {"type": "number"}},
        "required": ["account_id", "amount"],
    },
}


def charge(call_id: str, account: str, amount: Any) -> dict[str, Any]:
    arguments = json.dumps({"account_id": account, "amount": amount})
    return {"id": call_id, "name": "charge_card", "arguments": arguments}


def record(run_id: str, turns: list[tuple[list[dict[str, Any]], list[str]]], **labels: Any) -> dict[str, Any]:
    """A run: the user asks for one charge, then each turn is calls and what came back for them."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Charge 30 to account ACC-7731."}]
    for calls, results in turns:
        messages.append({"role": "assistant", "content": "", "tool_calls": calls})
        messages.extend(
            {"role": "tool", "tool_call_id": call["id"], "name": call["name"], "content": text}
            for call, text in zip(calls, results, strict=True)
        )
    messages.append({"role": "assistant", "content": "All right."})
    return {"id": run_id, "domain": "shop", "model": "m", "tools": [CHARGE], "messages": messages, "labels": labels}


OK = '{"ok": true}'
RUNS = [
    record("once", [([charge("a", "ACC-7731", 30)], [OK])], success=True, mutating_calls=[0]),
    record(
        "twice",
        [([charge("a", "ACC-7731", 30)], [OK]), ([charge("b", "ACC-7731", 30)], [OK])],
        success=False,
        mutating_calls=[0, 1],
    ),
    record("invented", [([charge("a", "ACC-5518", 30)], [OK])], success=True, mutating_calls=[0]),
    record("missed", [], success=False, mutating_calls=[]),
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    path = folder / "dev.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, RUNS)).encode()))
    return path


def settings() -> Any:
    return load_settings(None, {}, {})


def judged(path: Path, processes: int = 1) -> list[JudgedRun]:
    return measure([path], settings().config, {}, processes)


def test_findings_stand_beside_the_labels_of_their_calls(data: Path) -> None:
    runs = {run.run_id: run for run in judged(data)}
    assert runs["once"].hits == ()
    assert [(h.rule_id, h.call, h.right) for h in runs["twice"].hits] == [("duplicate_write", 1, True)]
    assert [(h.rule_id, h.call, h.right) for h in runs["invented"].hits] == [("ungrounded_argument", 0, True)]
    assert runs["twice"].known["equal write that changed something again"] == (1, 1)
    assert runs["invented"].known["invented id in a call"] == (1, 1)
    assert all(run.aligned and run.data_set == "shop/dev" for run in runs.values())


def test_every_process_count_gives_the_same_runs(data: Path) -> None:
    assert judged(data, 2) == judged(data, 1)


def test_the_bundle_row_by_hand(data: Path) -> None:
    bundle = tables(judged(data))[0]
    # 2 failed (one flagged), 2 passed (one flagged): precision 1/2, recall 1/2, 500 false alarms in 1,000.
    assert bundle.rows[1] == (
        "shop/dev", "high and above", "2", "2", "1", "1",
        "0.500 (0.095–0.905)", "0.500 (0.095–0.905)", "500.0 (94.5–905.5)",
    )  # fmt: skip


def test_the_runs_behind_each_cell(data: Path) -> None:
    runs = judged(data)
    assert [run.run_id for run in chosen(runs, "false-alarms", "high")] == ["invented"]
    assert [run.run_id for run in chosen(runs, "hits", "high")] == ["twice"]
    assert [run.run_id for run in chosen(runs, "misses", "high")] == ["missed"]


def test_a_call_that_was_asked_for_and_never_made_is_no_call_of_ours(tmp_path: Path) -> None:
    run = record("cut", [([charge("a", "ACC-7731", 30)], [OK])], success=True)
    run["messages"][-1] = {"role": "assistant", "content": "", "tool_calls": [charge("b", "ACC-7731", 31)]}
    path = tmp_path / "cut.jsonl"
    path.write_text(json.dumps(run))
    found = judged(path)[0]
    assert (found.calls, found.aligned) == (1, True)


Command = Callable[..., tuple[str, str]]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs the command in a folder of its own: what it says, and the file it wrote (or "none")."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[str, str]:
        result = CliRunner().invoke(cli, ["bench", "quality", *arguments, "--processes", "1"])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.output
        written = Path("docs/measurements.md")
        return result.stdout, written.read_text() if written.exists() else "none"

    return run


def test_the_command_writes_its_tables(tmp_path: Path, data: Path, command: Command) -> None:
    said, written = command(str(data), "--show", "misses")
    assert "| shop/dev | high and above | 2 | 2 | 1 | 1 |" in said
    assert "\nmissed  shop  m  passed=False" in said
    assert "\nonce " not in said
    assert "## Quality\n\n`otelmon bench quality shop/dev`" in written
    assert "| shop/dev | duplicate_write | 1 | 1 | 1 | 0 |" in written
    assert "ACC-" not in written
    assert said.rstrip().endswith("missed runs by kind of failure:\n  shop/dev  not said: 1")
    assert str(tmp_path) not in written


def test_a_dry_run_and_a_part_write_nothing(data: Path, command: Command) -> None:
    assert command(str(data), "--dry-run")[1] == "none"
    assert command(str(data), "--first", "2")[1] == "none"


def test_json_holds_tables_and_runs(data: Path, command: Command) -> None:
    answer = json.loads(command(str(data), "--dry-run", "--json", "--show", "hits")[0])
    assert answer["tables"][0]["title"] == "All rules together"
    assert [run["run_id"] for run in answer["runs"]] == ["twice"]


@pytest.mark.parametrize(
    ("content", "wrong"),
    [("{", "dev.jsonl:1: is not JSON"), ('{"id": "x", "messages": []}', "dev.jsonl:1: is no labelled run")],
)
def test_what_is_no_data_set_is_refused_by_line(tmp_path: Path, content: str, wrong: str) -> None:
    path = tmp_path / "dev.jsonl"
    path.write_text(content)
    with pytest.raises(UserError, match=wrong):
        judged(path)


def test_a_list_of_tools_is_measured_by_its_hints(tmp_path: Path) -> None:
    tools = [
        {"name": "get_page", "annotations": {"readOnlyHint": True}},
        {"name": "delete_page", "annotations": {"readOnlyHint": False}},
        {"name": "odd"},
    ]
    path = tmp_path / "tools.jsonl"
    path.write_text(json.dumps({"tag": "v1", "tools": tools}))
    (run,) = judged(path)
    assert (run.run_id, run.declared) == ("v1", (("delete_page", True, "destructive"), ("get_page", False, "read")))


def test_declared_kinds_come_from_the_labels_too(tmp_path: Path) -> None:
    run = record("kinds", [], tool_types={"charge_card": "WRITE", "get_card": "READ", "hand_over": "GENERIC"})
    path = tmp_path / "dev.jsonl"
    path.write_text(json.dumps(run))
    assert [(name, writes) for name, writes, _ in judged(path)[0].declared] == [
        ("charge_card", True),
        ("get_card", False),
    ]


def test_a_tool_before_and_after_a_change_is_measured_too(tmp_path: Path) -> None:
    page = {"name": "get_page", "annotations": {"readOnlyHint": True}}
    path = tmp_path / "changes.jsonl"
    path.write_text(json.dumps({"id": "c1", "before": None, "after": page, "labels": {}}))
    (run,) = judged(path)
    assert (run.run_id, run.declared) == ("c1", (("get_page", False, "read"),))


def test_data_sets_are_sorted_by_what_they_hold(tmp_path: Path, data: Path) -> None:
    tools, claims = tmp_path / "tools.jsonl", tmp_path / "claims_dev.json"
    tools.write_text(json.dumps({"tag": "v1", "tools": []}))
    claims.write_text(json.dumps({"items": [{"id": "once", "msg": 3, "verdict": False}]}))
    found = sources([data, tools])
    assert (found.runs, found.definitions) == ((data,), (tools,))
    assert found.statements == sources([data, tools, claims]).statements == (claims.resolve(),)
    assert sources([tools]).statements == ()


def test_opinions_of_models_are_a_source_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "judges.jsonl"
    record = {"simulation_id": "once", "judges": {"quick": {"verdict": "fail", "cost_usd": 0.5}, "broken": None}}
    path.write_text(json.dumps(record))
    assert sources([path]).opinions == (path,)
    assert [(o.run_id, o.judge, o.failed, o.cost) for o in opinions(path)] == [("once", "quick", True, 0.5)]
    path.write_text(json.dumps(record) + "\n{}")
    with pytest.raises(UserError, match=r"judges.jsonl:2: holds no opinion"):
        opinions(path)


def test_a_finding_on_a_message_knows_its_place(tmp_path: Path) -> None:
    run = record("claims", [([charge("a", "ACC-7731", 30)], ["Error: card declined"])], success=False)
    run["messages"][-1]["content"] = "I have charged 30 to account ACC-7731."
    path = tmp_path / "dev.jsonl"
    path.write_text(json.dumps(run))
    assert [(h.rule_id, h.call, h.message) for h in judged(path)[0].hits] == [("false_success", None, 3)]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="can not be read"):
        judged(tmp_path / "none.jsonl")


def test_a_broken_archive(tmp_path: Path) -> None:
    path = tmp_path / "dev.jsonl.gz"
    path.write_bytes(gzip.compress(b"{}" * 1000)[:-10])
    with pytest.raises(UserError, match="can not be read"):
        judged(path)


def test_the_label_of_a_file_says_nothing_of_the_machine() -> None:
    assert label_of(Path("/a/b/tau2/dev.jsonl.gz")) == "tau2/dev"
    assert label_of(Path("dev.jsonl")) == "dev"


@pytest.mark.data
@pytest.mark.parametrize("name", ["tau2", "taubench", "tau2_es", "agentdojo"])
def test_thirty_real_runs_of_each_set(shared: Path, name: str) -> None:
    runs = measure([shared / "datasets" / name / "dev.jsonl.gz"], settings().config, {}, 1, most=30)
    assert len(runs) == 30
    assert all(run.aligned for run in runs)
    assert sum(run.calls for run in runs) > 30
    assert tables(runs)[0].title == "All rules together"
