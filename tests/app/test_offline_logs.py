"""Files of log records beside files of traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from otelmon.app.laws import load_laws
from otelmon.app.offline import check_paths
from otelmon.detect.engine import Laws
from otelmon.vocabulary.config import Config

TRACE, OTHER = "a" * 32, "b" * 32
ASKED = {
    "stringValue": json.dumps({"message": {"tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": "{}"}}]}})
}
ANSWERED = {"stringValue": json.dumps({"id": "c1", "content": "done"})}


@pytest.fixture(scope="module")
def laws() -> Laws:
    return load_laws(Config())


def spans(trace: str = TRACE) -> str:
    """Two calls of a model that show nothing."""
    chat = [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}]
    listed = [
        {"traceId": trace, "spanId": f"{n:016x}", "name": "chat", "startTimeUnixNano": n, "endTimeUnixNano": n + 5, "attributes": chat}
        for n in (10, 20)
    ]  # fmt: skip
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": listed}]}]})


def logs(trace: str = TRACE) -> str:
    """What was said: a call was asked for and answered."""

    def record(at: int, span: int, name: str, body: Any) -> dict[str, Any]:
        return {"traceId": trace, "spanId": f"{span:016x}", "timeUnixNano": at, "eventName": name, "body": body}

    listed = [record(11, 10, "gen_ai.choice", ASKED), record(21, 20, "gen_ai.tool.message", ANSWERED)]
    return json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": listed}]}]})


def write(folder: Path, **contents: str) -> list[Path]:
    """Files by name (two underscores stand for a dot)."""
    paths = [folder / f"{name.replace('__', '.')}.otlp.json" for name in contents]
    for path, content in zip(paths, contents.values(), strict=True):
        path.write_text(content)
    return paths


def test_a_file_of_logs_completes_the_traces_it_is_named_after(tmp_path: Path, laws: Laws) -> None:
    paths = write(tmp_path, x=spans(), x__logs=logs())
    for order in (paths, paths[::-1]):
        report = check_paths(order, laws, Config())
        assert (report.problems, report.runs, report.tool_calls) == ([], 1, 1)
    assert check_paths(paths[:1], laws, Config()).tool_calls == 0


def test_each_line_of_traces_gets_the_records_of_its_own_traces(tmp_path: Path, laws: Laws) -> None:
    both = write(tmp_path, x=f"{spans()}\n{spans(OTHER)}\n", x__logs=f"{logs(OTHER)}\n{logs()}\n{logs('c' * 32)}\n")
    report = check_paths(both, laws, Config())
    assert (report.problems, report.runs, report.tool_calls) == ([], 2, 2)


def test_together_joins_whatever_the_names(tmp_path: Path, laws: Laws) -> None:
    report = check_paths(write(tmp_path, x=spans(), y=logs()), laws, Config(), together=True)
    assert (report.problems, report.tool_calls) == ([], 1)


@pytest.mark.parametrize(
    ("contents", "says"),
    [
        ({"x__logs": logs()}, "holds log records, which are judged with the spans they name"),
        ({"x": logs()}, "holds log records, which are judged with the spans they name"),
        ({"x": spans(), "x__logs": spans(OTHER)}, "is named as a file of log records and holds none"),
    ],
)
def test_files_that_do_not_fit_are_named(tmp_path: Path, laws: Laws, contents: dict[str, str], says: str) -> None:
    [problem] = check_paths(write(tmp_path, **contents), laws, Config()).problems
    assert says in str(problem)
