"""The table of metrics is exactly what the code counts: nothing is counted that nobody sees, and
nothing is shown that nobody counts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import otelmon
from otelmon.app.runtime import PER_STAGE, Monitor
from otelmon.metrics.table import METRICS
from tests.services.full import TALKS
from tests.services.monitor import LiveMonitor, until

COUNTERS = {"counters", "_counters", "_restarts"}
TABLE = {metric.name: metric for metric in METRICS}
Use = tuple[str, str, int | None, str]  # kind, metric, number of labels (None: unpacked), place


def uses() -> Iterator[Use]:
    for path in Path(otelmon.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            yield from _of(node, f"{path.name}:{getattr(node, 'lineno', 0)}")


def _of(node: ast.AST, place: str) -> Iterator[Use]:
    match node:
        case ast.Subscript(value=ast.Attribute(attr=attr), slice=ast.Tuple(elts=elts)) if attr in COUNTERS:
            yield from _key("counter", elts, place)
        case ast.Subscript(value=ast.Name(id="gauges"), slice=ast.Tuple(elts=elts)):
            yield from _key("gauge", elts, place)
        case ast.Tuple(elts=[ast.Constant(value=str(name)), *_] as elts) if name in TABLE and "runtime" in place:
            yield from _key(TABLE[name].kind, elts, place)
        case ast.Dict(values=values) if "runtime" in place:  # which counter a signal has
            names = [part.value for part in values if isinstance(part, ast.Constant)]
            yield from (("counter", str(name), None, place) for name in names if _is_counter(name))
        case ast.Call(func=ast.Attribute(attr="_add"), args=[ast.Constant(value=str(name)), _, *values]):
            yield "counter", name, len(values), place
        case ast.FunctionDef(name="stats"):
            for part in ast.walk(node):
                if isinstance(part, ast.Dict):
                    yield from _stats(part, place)


def _is_counter(name: object) -> bool:
    return isinstance(name, str) and name in TABLE and TABLE[name].kind == "counter"


def _key(kind: str, elts: list[ast.expr], place: str) -> Iterator[Use]:
    if isinstance(elts[0], ast.Constant):
        unpacked = any(isinstance(part, ast.Starred) for part in elts)
        yield kind, str(elts[0].value), None if unpacked else len(elts) - 1, place


def _stats(part: ast.Dict, place: str) -> Iterator[Use]:
    for key in part.keys:
        if isinstance(key, ast.Constant):
            name = str(key.value)
            yield ("gauge", PER_STAGE[name], 1, place) if name in PER_STAGE else ("gauge", name, 0, place)


def test_everything_counted_is_in_the_table_with_its_labels() -> None:
    for kind, name, labels, place in uses():
        assert name in TABLE, f"{place}: {name} is counted and not in the table"
        assert TABLE[name].kind == kind, f"{place}: {name}"
        assert labels is None or labels == len(TABLE[name].labels), f"{place}: {name}"


def test_everything_in_the_table_is_counted_somewhere() -> None:
    counted = {name for _, name, _, _ in uses()}
    assert {metric.name for metric in METRICS if metric.kind != "histogram"} <= counted


def test_what_a_busy_monitor_counts_is_shown(full: LiveMonitor) -> None:
    seen = _readings(full.monitor)
    for key in seen:
        assert key[0] in TABLE, key
        assert len(key) - 1 == len(TABLE[key[0]].labels), key
    assert seen["spans_read", "genai"] == sum(len(talk.calls) + talk.root for talk in TALKS)
    assert seen["runs_closed", "root"] == len(TALKS)
    assert seen["traces_closed", "root"] == len(TALKS)
    assert seen["incidents_open", "effect", "critical"] == 1


def _readings(monitor: Monitor) -> dict[tuple[str, ...], float]:
    until(lambda: monitor._readings().counters.get(("traces_closed", "root"), 0) >= len(TALKS))
    found = monitor._readings()
    return dict(found.counters) | dict(found.gauges)
