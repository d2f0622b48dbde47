"""The tables of changed tools: what is counted as what, and one incident a release through the product."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import msgspec
import pytest

from otelmon.app.bench.quality_drift import drift_tables
from otelmon.app.bench.quality_table import Table


def schema(*names: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string"} for name in names}}


def tool(name: str, *names: str, text: str = "Does it.") -> dict[str, Any]:
    return {"name": name, "description": text, "inputSchema": schema(*names)}


def change(before: Any, after: Any, *kinds: str, breaking: bool = False, text_only: bool = False) -> dict[str, Any]:
    labels = {"changes": list(kinds), "breaking": breaking, "text_only": text_only}
    return {"id": "x", "tool": "t", "before": before, "after": after, "labels": labels}


def release(day: int, diff: dict[str, int], *tools: dict[str, Any]) -> dict[str, Any]:
    return {"tag": f"v{day}", "date": f"2026-03-{day:02}T10:00:00+00:00", "diff_to_prev": diff, "tools": list(tools)}


def write(path: Path, *records: dict[str, Any]) -> Path:
    path.write_bytes(gzip.compress(b"\n".join(msgspec.json.encode(record) for record in records)))
    return path


def rows(tables: list[Table], title: str) -> dict[str, tuple[str, ...]]:
    [table] = [table for table in tables if table.title == title]
    return {row[1]: row[2:] for row in table.rows}


def test_changes_are_counted_by_their_labels_and_by_what_was_told(tmp_path: Path) -> None:
    path = write(
        tmp_path / "some.jsonl.gz",
        change(tool("t", "a", "b"), tool("t", "a"), "param_removed", breaking=True),
        change(tool("t"), tool("t", text="Does that."), "description_changed", text_only=True),
        change(tool("t"), tool("t"), "format_only"),
        change(tool("t"), tool("t", text="Mislabelled."), "format_only"),
    )
    found = rows(drift_tables([path]), "Changes of tools")
    assert found["breaking"][:2] + found["breaking"][3:] == ("1", "1", "1", "0", "0", "0")
    assert found["text only"][:2] == ("1", "1")
    assert (found["form only"][:2], found["form only"][4]) == (("2", "1"), "1")
    assert rows(drift_tables([path]), "Changes of tools by each label")["format only"] == ("2", "1", "1")


def test_a_release_that_changes_many_tools_is_one_incident(tmp_path: Path) -> None:
    names = [f"tool_{n}" for n in range(30)]
    path = write(
        tmp_path / "many.jsonl.gz",
        release(1, {}, *(tool(name, "a", "b") for name in names)),
        release(5, {"param_removed": 30, "tools_changed": 30}, *(tool(name, "a") for name in names)),
        release(6, {}, *(tool(name, "a") for name in names[:10])),
        release(7, {"param_added_optional": 30, "tools_changed": 30}, *(tool(name, "a", "c") for name in names)),
        release(9, {"description_changed": 1, "tools_changed": 1}, tool(names[0], "a", "c", text="Anew.")),
    )
    found = rows(drift_tables([path]), "Releases of a server with changed tools")
    assert found["breaks calls, changes texts or annotations"] == ("2", "2", "0", "0")
    assert found["adds or removes"] == ("1", "0", "0", "1")
    assert found["nothing, or form only"] == ("2", "0", "0", "2")


@pytest.mark.data
def test_the_labelled_changes_and_releases(shared: Path) -> None:
    folder = shared / "datasets" / "tooldrift"
    tables = drift_tables([folder / "dev.jsonl.gz", folder / "releases.jsonl.gz"])
    changes = rows(tables, "Changes of tools")
    assert changes["breaking"][:2] == ("42", "42")
    assert changes["annotations only"][:2] == ("88", "88")
    assert changes["text only"][:2] == ("29", "28")  # the other one differs in white space alone
    assert changes["form only"][:2] == ("89", "1")  # which lost two conditions on its arguments
    found = rows(tables, "Releases of a server with changed tools")
    assert found["breaks calls, changes texts or annotations"] == ("29", "29", "0", "0")
    assert found["nothing, or form only"] == ("25", "0", "0", "25")
