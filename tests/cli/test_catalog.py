"""`otelmon catalog`: real MCP servers over stdio and HTTP, files of every kind, and the answer as an exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from otelmon.rules.catalogue import load_catalogue
from tests.cli.conftest import Otelmon
from tests.services import mcp_server

SERVER = Path(mcp_server.__file__)


def command(version: str) -> str:
    return f"{sys.executable} {SERVER} {version}"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with mcp_server.http_server("new") as url:
        yield url


def tool(name: str, *params: str, **fields: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {param: {"type": "string"} for param in params}}
    return {"name": name, "description": "Does it.", "inputSchema": schema, **fields}


def listed(path: Path, *tools: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"tools": list(tools)}))
    return path


# -- pull ------------------------------------------------------------------------------------------
def test_a_server_on_stdio_is_asked_and_its_tools_are_an_operators_file(otelmon: Otelmon, tmp_path: Path) -> None:
    answer = otelmon("catalog", "pull", "--stdio", command("old"), "--out", "depot.yaml")
    assert (answer.returncode, answer.stdout) == (0, "")
    found = load_catalogue(tmp_path / "depot.yaml")
    assert [(t.name, t.server) for t in found.tools] == [
        ("get_stock", "depot"), ("move_stock", "depot"), ("run_sql", "depot")
    ]  # fmt: skip
    assert found.tools[0].annotations is not None
    assert found.tools[0].annotations.read_only_hint is True
    assert set((found.tools[1].input_schema or {})["properties"]) == {"sku", "bin"}


def test_a_server_over_http_under_a_name_of_ours(otelmon: Otelmon, address: str) -> None:
    answer = otelmon("catalog", "pull", "--url", address, "--server", "warehouse", "--json")
    tools = json.loads(answer.stdout)["tools"]
    assert next((t["name"], t["server"]) for t in tools) == ("get_stock", "warehouse")


def test_the_token_comes_from_the_environment(otelmon: Otelmon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPOT_TOKEN", "let-me-in")
    with mcp_server.http_server(token="let-me-in") as url:
        refused = otelmon("catalog", "pull", "--url", url)
        let_in = otelmon("catalog", "pull", "--url", url, "--auth-env", "DEPOT_TOKEN")
    assert (refused.returncode, let_in.returncode) == (3, 0)
    assert "get_stock" in let_in.stdout


def test_what_the_operator_wrote_stays_and_what_is_gone_goes(otelmon: Otelmon, tmp_path: Path) -> None:
    path = tmp_path / "tools.yaml"
    path.write_text(
        "version: 1\ntools:\n"
        "  - {name: move_stock, server: depot, description: Old., effect: write, identity: [sku]}\n"
        "  - {name: burn_stock, server: depot, effect: destructive}\n"
        "  - {name: pay, server: bank, effect: destructive}\n"
        "policy:\n  - {id: freeze, action: forbid, tools: [move_stock]}\n"
    )
    assert otelmon("catalog", "pull", "--stdio", command("old"), "--out", "tools.yaml").returncode == 0
    found = load_catalogue(path)
    assert sorted(t.name for t in found.tools) == ["get_stock", "move_stock", "pay", "run_sql"]
    [moved] = [t for t in found.tools if t.name == "move_stock"]
    assert (moved.effect, moved.identity, moved.description) == ("write", ("sku",), "Moves stock.")
    assert [policy.id for policy in found.policy] == ["freeze"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--stdio", f"{sys.executable} -c 'import sys; sys.exit(3)'"], 3, "is no MCP server that answers"),
        (["--stdio", f"{sys.executable} -c 'import time; time.sleep(60)'", "--timeout", "0.5"], 3, "no answer within 0.5 seconds"),
        (["--stdio", "no-such-command-anywhere"], 3, "no-such-command-anywhere: is no MCP server"),
        (["--url", "http://127.0.0.1:9/mcp"], 3, "is no MCP server that answers"),
        (["--stdio", "a 'b"], 2, "is not a command line"),
        (["--stdio", "a", "--url", "http://b"], 2, "both are given"),
        (["--stdio", "a", "--env", "NOT_SET_AT_ALL"], 2, "--env NOT_SET_AT_ALL: the variable is not set"),
        (["--url", "http://b", "--auth-env", "NOT_SET_AT_ALL"], 2, "the variable is not set"),
        ([], 2, "no server is named"),
    ],
)  # fmt: skip
def test_a_server_that_can_not_be_asked(otelmon: Otelmon, arguments: list[str], code: int, said: str) -> None:
    answer = otelmon("catalog", "pull", *arguments)
    assert (answer.returncode, answer.stdout) == (code, "")
    assert said in answer.stderr
    assert "Traceback" not in answer.stderr


def test_without_the_sdk_it_says_how_to_get_it(otelmon: Otelmon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    answer = otelmon("catalog", "pull", "--stdio", "a")
    assert (answer.returncode, answer.stderr.strip()) == (2, "catalog pull: the MCP SDK is not installed; pip install 'otelmon[mcp]'")  # fmt: skip


# -- diff and gate ---------------------------------------------------------------------------------
def test_a_diff_says_what_breaks_and_what_rests_on_it(otelmon: Otelmon, tmp_path: Path) -> None:
    before = tmp_path / "tools.yaml"
    before.write_text(
        "version: 1\ntools:\n"
        "  - {name: move_stock, effect: write, identity: [sku, bin], inputSchema: {type: object, properties: {sku: {type: string}, bin: {type: string}}}}\n"
        "  - {name: get_stock, description: Reads., inputSchema: {type: object}}\n"
        "policy:\n"
        "  - {id: no_far_bins, action: forbid, tools: ['move_*'], when: \"call.arguments.bin == 'far'\"}\n"
        "  - {id: look_first, action: after, tools: [burn_stock], calls: [get_stock]}\n"
    )
    after = listed(
        tmp_path / "new.json", tool("move_stock", "sku"), {"name": "get_stock", "description": "Reads stock."}
    )
    answer = otelmon("catalog", "diff", before, after, "--json")
    assert answer.returncode == 1
    found = {one["tool"]: one for one in json.loads(answer.stdout)["tools"]}
    assert (found["move_stock"]["class"], found["move_stock"]["severity"]) == ("breaking", "high")
    assert found["move_stock"]["loses"] == ["policy no_far_bins", "entry of move_stock"]
    assert (found["get_stock"]["class"], found["get_stock"]["touches"]) == ("text", ["policy look_first"])
    text = otelmon("catalog", "diff", before, after)
    assert "move_stock: policy no_far_bins names an argument that is gone" in text.stdout
    assert text.stdout.splitlines()[-1] == "2 tools changed, 0 in form only"


def test_form_alone_is_no_change(otelmon: Otelmon, tmp_path: Path) -> None:
    one = listed(tmp_path / "one.json", tool("a", "x", "y"))
    spaced = tool("a", "y", "x", description="Does  it. ")
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": [spaced]}}))
    answer = otelmon("catalog", "diff", one, other)
    assert answer.returncode == 0
    assert answer.stdout.splitlines()[-1] == "0 tools changed, 1 in form only"


def test_a_part_of_the_tools_says_nothing_of_the_others(otelmon: Otelmon, tmp_path: Path) -> None:
    whole = listed(tmp_path / "whole.json", tool("a"), tool("b"))
    run = tmp_path / "run.jsonl"
    run.write_text(
        json.dumps({"id": "1", "tools": [tool("a")], "messages": [{"role": "user", "content": "hi"}]}) + "\n"
    )
    assert otelmon("catalog", "diff", whole, run).returncode == 0
    assert "the tool is gone" in otelmon("catalog", "diff", whole, listed(tmp_path / "less.json", tool("a"))).stdout


def test_a_tool_with_a_new_name_is_not_two_changes(otelmon: Otelmon, tmp_path: Path) -> None:
    one = listed(tmp_path / "one.json", tool("move_stock", "sku"))
    answer = otelmon("catalog", "diff", one, listed(tmp_path / "new.json", tool("stock_move", "sku")), "--json")
    [change] = json.loads(answer.stdout)["tools"][0]["changes"]
    assert (change["kind"], change["before"], change["after"]) == ("tool_renamed", "move_stock", "stock_move")


@pytest.mark.parametrize(
    ("now", "options", "code"),
    [
        (tool("a", "x"), [], 0),
        (tool("a"), [], 1),
        (tool("a", "x", description="Does that."), [], 1),
        (tool("a", "x", "y"), [], 0),
        (tool("a", "x", annotations={"readOnlyHint": True}), [], 0),
        (tool("a", "x", annotations={"readOnlyHint": True}), ["--fail-on", "annotations"], 1),
        (tool("a", "x", description="Does that."), ["--fail-on", "breaking"], 0),
    ],
)
def test_the_gate_closes_on_its_classes(otelmon: Otelmon, tmp_path: Path, now: dict[str, Any], options: list[str], code: int) -> None:  # fmt: skip
    committed = listed(tmp_path / "committed.json", tool("a", "x"))
    assert otelmon("catalog", "gate", committed, listed(tmp_path / "now.json", now), *options).returncode == code


def test_the_gate_asks_a_live_server_about_its_own_tools(otelmon: Otelmon, tmp_path: Path, address: str) -> None:
    otelmon("catalog", "pull", "--stdio", command("old"), "--out", "tools.json")
    committed = json.loads((tmp_path / "tools.json").read_text())
    committed["tools"].append(tool("pay", server="bank"))
    (tmp_path / "tools.json").write_text(json.dumps(committed))
    same = otelmon("catalog", "gate", "tools.json", "--stdio", command("old"))
    assert (same.returncode, same.stdout) == (0, "0 tools changed, 0 in form only\n")
    changed = otelmon("catalog", "gate", "tools.json", "--url", address, "--json")
    assert changed.returncode == 1
    assert {one["tool"]: one["class"] for one in json.loads(changed.stdout)["tools"]} == {
        "get_stock": "text", "move_stock": "breaking"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[1]", "tool 1 is not one"),
        ("nonsense", "is"),
        ('{"messages": []}', "shows no tools"),
        (None, "can not be read"),
    ],
)
def test_a_file_without_tools_is_a_mistake(otelmon: Otelmon, tmp_path: Path, content: str | None, said: str) -> None:
    path = tmp_path / "x.json"
    if content is not None:
        path.write_text(content)
    answer = otelmon("catalog", "diff", path, path)
    assert (answer.returncode, said in answer.stderr) == (2, True)


# -- show, suggest, export -------------------------------------------------------------------------
def test_a_proposal_marks_its_guesses_and_loads(otelmon: Otelmon, tmp_path: Path) -> None:
    path = listed(
        tmp_path / "tools.json", tool("get_stock"), tool("delete_bin", "bin", "idempotency_key"), tool("frobnicate"),
        tool("run_sql", "sql"),
    )  # fmt: skip
    answer = otelmon("catalog", "suggest", path, "--out", "proposal.yaml")
    assert answer.returncode == 0
    text = (tmp_path / "proposal.yaml").read_text()
    assert "effect: destructive  # likely: the name says so" in text
    assert "# likely: an argument is called so" in text
    assert "# broad: sql takes SQL of any kind" in text
    assert "- name: frobnicate  # say its effect" in text
    found = {t.name: t for t in load_catalogue(tmp_path / "proposal.yaml").tools}
    assert (found["get_stock"].effect, found["frobnicate"].effect) == ("read", None)
    assert found["delete_bin"].idempotency_key is not None


def test_show_says_who_says_so_and_how_sure_that_is(otelmon: Otelmon, tmp_path: Path) -> None:
    path = tmp_path / "tools.yaml"
    path.write_text(
        "version: 1\ntools:\n  - {name: delete_bin, effect: write}\n  - {name: get_stock}\n"
        "  - {name: frobnicate, annotations: {readOnlyHint: true}}\n"
        "  - {name: run_code, inputSchema: {type: object, properties: {code: {type: string}}}}\n"
    )
    shown = {
        row["tool"]: row
        for row in json.loads(otelmon("catalog", "show", "--catalog", path, "--json").stdout)["effects"]
    }
    assert [(shown[n]["effect"], shown[n]["said_by"], shown[n]["confidence"]) for n in ("delete_bin", "get_stock", "frobnicate")] == [
        ("write", "operator", "sure"), ("read", "verb", "likely"), ("read", "hint", "guess"),
    ]  # fmt: skip
    assert shown["run_code"]["broad"] == "code takes code of any kind"


def test_export_lays_the_operators_word_over_what_files_show(otelmon: Otelmon, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("version: 1\ntools:\n  - {name: a, effect: destructive}\n")
    path = listed(tmp_path / "tools.json", tool("a", "x"))
    answer = otelmon("--set", "catalogue=mine.yaml", "catalog", "export", path, "--json")
    [only] = json.loads(answer.stdout)["tools"]
    assert (only["effect"], list(only["inputSchema"]["properties"])) == ("destructive", ["x"])


def test_without_traffic_there_is_nothing_to_export(otelmon: Otelmon) -> None:
    answer = otelmon("catalog", "export")
    assert answer.returncode == 2
    assert "no definition was stored" in answer.stderr
