"""Requests of real failure reports: what the receiver must take, refuse and keep apart."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from otelmon.receive.otlp import JSON, PROTOBUF
from tests.receive.conftest import Sink

pytestmark = pytest.mark.data


@pytest.fixture(scope="session")
def cases(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the bodies of every case."""
    out = tmp_path_factory.mktemp("cases")
    subprocess.run([sys.executable, str(shared / "tools" / "wire_cases.py"), "--out", str(out)], check=True)
    return out


def send(folder: Path, sequence: list[dict[str, Any]], encoding: str) -> tuple[Sink, list[int]]:
    """What was published, and how many spans each answer refused. JSON and protobuf stand in for each other."""
    sink, rejected = Sink(), []
    receiver = sink.receiver()
    for step in sequence:
        name = step.get(encoding) or step.get("pb") or step.get("json")
        if name:
            body = (folder / name).read_bytes()
            answer = receiver.accept(body, PROTOBUF if name.endswith(".pb") else JSON)
            assert answer.outcome == "accepted"
            assert bool(answer.rejected) <= bool(answer.message)
            rejected.append(answer.rejected)
    return sink, rejected


@pytest.mark.parametrize("encoding", ["pb", "json"])
def test_every_request_is_taken_as_the_case_demands(cases: Path, encoding: str) -> None:
    checked = 0
    for path in sorted(cases.glob("*/expected.json")):
        for variant in json.loads(path.read_text())["variants"]:
            demands, where = variant["assert"], f"{path.parent.name} {variant['name']}"
            sink, rejected = send(path.parent, variant["sequence"], encoding)
            ids = [(span.trace_id, span.span_id) for span in sink.spans]
            copies = {(span.trace_id, span.span_id, span.digest) for span in sink.spans}
            found = {
                "rejected_spans": rejected,
                "accepted_spans": len(ids),
                "stored_spans": len(set(ids)),
                "duplicates": len(ids) - len(copies),
                "conflicts": len(copies) - len(set(ids)),
            }
            for key in found.keys() & demands.keys():
                assert found[key] == demands[key], where
                checked += 1
            if "invalid_text" in demands.get("quality", ()):
                assert sum(account.repaired for account in sink.accounts) > 0, where
    assert checked > 20


@pytest.mark.parametrize("encoding", ["pb", "json"])
def test_a_large_request_is_split_below_the_size_of_a_message(cases: Path, encoding: str) -> None:
    [path] = cases.glob("*too-large*/expected.json")
    many, one = json.loads(path.read_text())["variants"]
    sink, _ = send(path.parent, many["sequence"], encoding)
    assert all(len(message.value) <= many["assert"]["max_message_bytes"] for message, _ in sink.published)
    sink, _ = send(path.parent, one["sequence"], encoding)
    large = [message.spans for message, _ in sink.published if len(message.value) > one["assert"]["max_message_bytes"]]
    assert large == [1]
