"""Traces of many frameworks from another vendor's store: what we read is the chat that the vendor read.

Where the two differ by design: a wrapper span (a graph's node or edge) is no call of a model here, so only model,
agent and tool spans are compared; of an agent's output only the answer counts; instructions that stand in an
attribute of their own are messages here; roles are ours (`model` is the assistant, a tool's name is the tool). What the
vendor could not place itself (no role) is not compared.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from otelmon.vocabulary.reading import Reading
from tests.assemble.builders import calls
from tests.assemble.frameworks import Row, as_text, opened, ours, readings_of, theirs
from tests.assemble.test_timeline_data import conversations

pytestmark = pytest.mark.data

Record = dict[str, Any]


@pytest.fixture(scope="session")
def records(shared: Path) -> list[Record]:
    with gzip.open(shared / "datasets" / "frameworks" / "dev.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def expected(record: Record, observation_id: str, side: str) -> list[dict[str, Any]]:
    found = record["expected_chatml"].get(observation_id, {}).get(side)
    return found["data"] if isinstance(found, dict) and found.get("success") else []


def normal(rows: list[Row], asked: set[str]) -> list[Row]:
    """The vendor's rows with our roles; `asked` are the names of tools that the chat asked for."""
    roles = {"model": "assistant", **dict.fromkeys(asked, "tool")}
    return [(roles.get(role, role), *rest) for role, *rest in rows]  # type: ignore[misc]


def asked_for(rows: list[Row]) -> set[str]:
    return {call[1] for row in rows for call in row[2]}


def differences(record: Record, observation: Record, reading: Reading) -> tuple[int, list[Any]]:
    """(messages compared, [(side, theirs, ours)] where they differ)."""
    compared, wrong = 0, []
    for side in ("input", "output"):
        rows = theirs(expected(record, observation["id"], side))
        want = normal(rows, asked_for(rows))
        have = ours(reading, getattr(reading, side))
        if reading.kind == "agent" and side == "output":
            want, have = want[-1:], have[-1:]
        while have and have[0][0] == "system" and want and want[0][0] != "system":
            have = have[1:]
        compared += len(want)
        if want and want != have:
            wrong.append((side, want, have))
    return compared, wrong


def test_messages_are_those_the_vendor_read(records: list[Record]) -> None:
    compared: Counter[str] = Counter()
    wrong = []
    for record in records:
        readings = readings_of(record["trace"])
        for observation in record["trace"]["observations"]:
            reading = readings[observation["id"]]
            if reading.kind in ("model", "agent"):
                number, differing = differences(record, observation, reading)
                compared[reading.dialect] += number
                wrong += [(record["id"], observation["name"], *rest) for rest in differing]
    assert wrong == []
    assert sum(compared.values()) >= 40
    assert len(+compared) >= 5  # dialects


def test_every_call_of_a_model_is_read_as_one(records: list[Record]) -> None:
    for record in records:
        readings = readings_of(record["trace"])
        for observation in record["trace"]["observations"]:
            if observation["type"] == "GENERATION":
                reading = readings[observation["id"]]
                assert (reading.kind, bool(reading.input), bool(reading.output)) == ("model", True, True), (
                    record["id"],
                    observation["name"],
                )


def test_the_tools_of_a_request_are_those_the_vendor_read(records: list[Record]) -> None:
    seen = 0
    for record in records:
        readings = readings_of(record["trace"])
        for observation in record["trace"]["observations"]:
            reading = readings[observation["id"]]
            first = (expected(record, observation["id"], "input") or [{}])[0]
            if reading.kind == "model" and first.get("tools"):
                want = {tool["name"]: tool["parameters"] for tool in first["tools"]}
                assert {d.name: d.input_schema for d in reading.definitions} == want, record["id"]
                seen += len(want)
    assert seen >= 4


def test_calls_are_those_the_chats_show_once_each(records: list[Record]) -> None:
    """Every call that a chat asked for and answered is one call, with these arguments."""
    total = 0
    for record in records:
        rows = [
            row
            for observation in record["trace"]["observations"]
            for side in ("input", "output")
            for row in theirs(expected(record, observation["id"], side))
        ]
        want = {call for row in rows for call in row[2]}
        found = [c for timeline in conversations(list(readings_of(record["trace"]).values())) for c in calls(timeline)]
        have = Counter((c.tool_call_id, c.tool_name, json.dumps(c.arguments, sort_keys=True)) for c in found)
        assert set(have.values()) <= {1}, record["id"]
        assert want <= set(have) | _without_ids(have, want), record["id"]
        total += len(want)
    assert total >= 5


def _without_ids(have: Counter[Any], want: set[Any]) -> set[Any]:
    """Calls wanted with an id that our spans do not have."""
    bare = {(name, arguments) for _, name, arguments in have}
    return {call for call in want if (call[1], call[2]) in bare}


def test_tool_spans_have_the_arguments_and_results_that_the_vendor_kept(records: list[Record]) -> None:
    seen = 0
    for record in records:
        readings = readings_of(record["trace"])
        for observation in record["trace"]["observations"]:
            tool = readings[observation["id"]].tool
            if tool is None:
                continue
            seen += 1
            if isinstance(opened(observation["input"]), dict):
                assert tool.arguments == opened(observation["input"]), record["id"]
            if observation["output"] and isinstance(opened(observation["output"]), list):
                assert tool.result == opened(observation["output"])
            for row in theirs(expected(record, observation["id"], "output")):
                if row[0] == "tool":
                    assert (tool.call_id, opened(tool.result_text)) == (row[3], opened(row[1])), record["id"]
                    assert as_text(tool.result_text)
    assert seen >= 5
