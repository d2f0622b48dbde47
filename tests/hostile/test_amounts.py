"""More than anybody planned for: long traces, and more open traces than are held."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.hostile.conftest import SECOND, Target, ident, served
from tests.receive.build import a_group, a_span, as_protobuf

pytestmark = pytest.mark.timeout(900)
LONG, OPEN = 10_000, 100_000
MIB = 1024 * 1024
AT_MOST = 1500 * MIB


@pytest.fixture
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A monitor that waits long for the root of a trace."""
    yield from served(tmp_path_factory.mktemp("amounts"), **{"assemble.idle_seconds": 600})


def read_span(target: Target, trace: bytes, number: int, parent: bytes, **more: Any) -> dict[str, Any]:
    attributes = {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "read_page",
        "gen_ai.tool.call.arguments": f'{{"page": {number}}}', "gen_ai.tool.call.result": f'{{"text": "page {number}"}}', **more,
    }  # fmt: skip
    start = target.begin + number * SECOND // 100
    return a_span(
        trace=trace,
        span=ident(trace, number)[:8],
        parent=parent,
        start=start,
        end=start + SECOND // 200,
        attributes=attributes,
    )


def test_a_trace_of_ten_thousand_spans_is_one_run(target: Target) -> None:
    trace, root = ident("long")[:16], ident("long", "root")[:8]
    common = {"gen_ai.conversation.id": "long"}
    good = target.good("beside-long")
    for first in range(0, LONG - 1, 2000):
        numbers = range(first, min(first + 2000, LONG - 1))
        spans = [read_span(target, trace, number, root, **common) for number in numbers]
        answer = target.post(as_protobuf([a_group(*spans)]), spans=len(spans))
        assert (answer.status, answer.refused) == (200, 0)
    end = target.begin + 1000 * SECOND
    agent = a_span(
        trace=trace,
        span=root,
        start=target.begin,
        end=end,
        attributes={**common, "gen_ai.operation.name": "invoke_agent"},
    )
    assert target.send([agent], good).status == 200
    target.assert_unhurt(good)
    target.wait_until_closed("long")
    [run] = target.monitor.read("runs", conversation="long")
    assert (run["run"]["spans"], run["run"]["closed"]) == (LONG, "root")
    assert len(target.calls("long")) == LONG - 1
    assert [f for f in target.findings("long") if f["rule_id"] != "loop"] == []
    target.assert_well()


def other_span(target: Target, trace: bytes, number: int) -> dict[str, Any]:
    start = target.begin + number * SECOND // 100
    return a_span(trace=trace, span=ident(trace)[:8], parent=b"\7" * 8, start=start, end=start + 1000, name="GET /")


def test_a_hundred_thousand_open_traces_stay_within_bounds(large: Target) -> None:
    """Every trace waits for a parent, every twentieth has a call. The oldest are closed, counted, judged, and
    nothing is lost."""
    for first in range(0, OPEN, 5000):
        traces = [(n, ident("open", n)[:16]) for n in range(first, first + 5000)]
        spans = [read_span(large, t, n, b"\7" * 8) if n % 20 == 0 else other_span(large, t, n) for n, t in traces]
        assert large.post(as_protobuf([a_group(*spans)]), spans=len(spans)).status == 200
    good = large.good("beside-open")
    assert large.send([], good).status == 200
    large.patience_s = 500
    large.assert_unhurt(good)
    large.assert_conserved()
    metrics = large.monitor.metrics()
    assert metrics["otelmon_traces_open"] <= 50_000
    assert metrics['otelmon_traces_closed_total{reason="evicted"}'] >= OPEN - 50_000
    assert metrics["otelmon_conversations"] <= 50_000
    assert large.monitor.peak_bytes() < AT_MOST
