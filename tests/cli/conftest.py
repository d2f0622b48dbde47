"""The command line as people use it: a process of its own, in a folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from otelmon.cli import cli, common

Answer = subprocess.CompletedProcess[str]
Otelmon = Callable[..., Answer]
COMMAND = Path(sys.executable).with_name("otelmon")


@pytest.fixture
def process(tmp_path: Path) -> Otelmon:
    """Run `otelmon ARGUMENTS` as a process; keyword arguments are environment variables."""

    def run(*arguments: str | Path, **environment: str) -> Answer:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("OTELMON_", "OTEL_"))}
        return subprocess.run(
            [COMMAND, *arguments], cwd=tmp_path, env={**kept, **environment}, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip

    return run


@pytest.fixture
def otelmon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Otelmon:
    """The same in this process, because starting many takes long."""
    monkeypatch.chdir(tmp_path)
    for key in [key for key in os.environ if key.startswith(("OTELMON_", "OTEL_"))]:
        monkeypatch.delenv(key)

    def run(*arguments: str | Path) -> Answer:
        monkeypatch.setattr(sys, "argv", ["otelmon", *map(str, arguments)])
        capfd.readouterr()
        code = common.run(cli)
        said = capfd.readouterr()
        return subprocess.CompletedProcess(arguments, code, said.out, said.err)

    return run


def call(tool: str, call_id: str, **arguments: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}


def transcript(record_id: str, *messages: dict[str, Any]) -> str:
    """One line of a transcript file."""
    return json.dumps({"id": record_id, "tools": [], "messages": list(messages)}, ensure_ascii=False) + "\n"


def refund(record_id: str = "one", times: int = 2, text: str = "Refund 18.50 on OR-771.") -> str:
    """A conversation in which one refund is wanted and `times` are made."""
    calls = [call("issue_refund", f"c{n}", order="OR-771", amount=18.5) for n in range(times)]
    answers = [
        {"role": "tool", "tool_call_id": f"c{n}", "content": json.dumps({"ref": f"RF-{n}"})} for n in range(times)
    ]
    return transcript(
        record_id,
        {"role": "user", "content": text},
        {"role": "assistant", "content": None, "tool_calls": calls},
        *answers,
        {"role": "assistant", "content": "Refunded 18.50 on OR-771."},
    )


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    """A file with a double refund and a right one."""
    file = tmp_path / "runs.jsonl"
    file.write_text(refund() + refund("two", times=1), encoding="utf-8")
    return file


@pytest.fixture
def right(tmp_path: Path) -> Path:
    file = tmp_path / "right.jsonl"
    file.write_text(refund("two", times=1), encoding="utf-8")
    return file
