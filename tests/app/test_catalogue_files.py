"""Tools from files of any kind, and from what was stored."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from otelmon.app.catalogue_files import latest, read_catalogue, tools_of
from otelmon.store.results import ToolVersion
from otelmon.vocabulary.errors import UserError

TOOL = {
    "name": "pay",
    "description": "Pays.",
    "inputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": False},
}
FUNCTION = {"type": "function", "function": {"name": "pay", "description": "Pays.", "parameters": {"type": "object"}}}


@pytest.mark.parametrize(
    "content",
    [{"tools": [TOOL]}, {"jsonrpc": "2.0", "id": 1, "result": {"tools": [TOOL]}}, [TOOL], [FUNCTION]],
    ids=["list", "answer", "bare", "functions"],
)
@pytest.mark.parametrize("packed", [False, True])
def test_lists_of_tools(tmp_path: Path, content: Any, packed: bool) -> None:
    data = json.dumps(content).encode()
    path = tmp_path / ("tools.json.gz" if packed else "tools.json")
    path.write_bytes(gzip.compress(data) if packed else data)
    found = read_catalogue(path)
    [tool] = found.tools
    assert (tool.name, tool.description, tool.input_schema, found.complete) == (
        "pay",
        "Pays.",
        {"type": "object"},
        True,
    )


def test_an_operators_file_keeps_its_policy(tmp_path: Path) -> None:
    path = tmp_path / "tools.json"
    whole = {"version": 1, "tools": [{"name": "pay"}], "policy": [{"id": "x", "action": "forbid", "tools": ["pay"]}]}
    path.write_text(json.dumps(whole))
    assert read_catalogue(path).policy[0].id == "x"


def test_a_trace_shows_a_part(tmp_path: Path) -> None:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "x",
        "gen_ai.tool.definitions": json.dumps([TOOL]),
    }
    span = {
        "traceId": "a" * 32, "spanId": "b" * 16, "name": "chat", "startTimeUnixNano": "1", "endTimeUnixNano": "2",
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
    }  # fmt: skip
    path = tmp_path / "run.otlp.json"
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}))
    found = read_catalogue(path)
    assert ([tool.name for tool in found.tools], found.complete) == (["pay"], False)
    assert found.tools[0].annotations is not None


def test_every_entry_that_is_no_tool_is_told() -> None:
    with pytest.raises(UserError) as error:
        tools_of([TOOL, {"title": "x"}, 7, {"name": ""}], "x.json")
    assert [str(problem) for problem in error.value.problems] == [
        f"x.json: tool {number} is not one; expected an object with a name" for number in (2, 3, 4)
    ]


def test_traffic_is_what_was_seen_last() -> None:
    def version(server: str, text: str, last: int) -> ToolVersion:
        return ToolVersion(
            service_name="s", environment="", server=server, tool_name="pay", definition_hash=text, schema_hash="",
            description=text, input_schema=None, annotations={"readOnlyHint": True}, first_seen_unix_nano=0,
            last_seen_unix_nano=last,
        )  # fmt: skip

    found = latest([version("bank", "new", 9), version("bank", "old", 5), version("", "own", 1)])
    assert [(tool.server, tool.description) for tool in found] == [(None, "own"), ("bank", "new")]
    assert found[0].annotations is not None
