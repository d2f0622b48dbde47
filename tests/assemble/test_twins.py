"""One run in two traces: what joins two views of it, and what keeps two runs apart."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import msgspec
import pytest

from otelmon.assemble.timeline import build
from otelmon.vocabulary.event import UserMessage
from otelmon.vocabulary.reading import Message, Reading
from tests.assemble.builders import Spans, assistant, calls, ns, response, user
from tests.assemble.builders import call as asked


def view(trace: str, scope: str, late: float = 0.0, hi: Message | None = None, **changes: Any) -> list[Reading]:
    """A run of nine seconds as one instrumentation tells it, in a trace of its own, `late` seconds after the other."""
    hi = hi or user("refund A-1")
    request = assistant(asked("refund", "c1", order="A-1"))
    span = Spans(trace)
    root = span.agent(late, 9 - late)
    span.model([hi], [request], late, 1, parent=root)
    span.tool("refund", 1 + late, 2, call_id="c1", order="A-1", result={"ok": True}, parent=root)
    span.model([hi, request, response({"ok": True}, "c1")], [assistant("Done.")], 2 + late, 3, parent=root)
    return [msgspec.structs.replace(r, scope_name=scope, dialect=scope, **changes) for r in span.readings]


ONE = view("a" * 32, "openinference")


def test_two_views_are_one_run_whatever_came_first() -> None:
    two = view("b" * 32, "genai", 0.001)
    timelines = [build("c", [r for part in order for r in part]) for order in permutations([ONE, two])]
    assert timelines[0] == timelines[1]
    [run] = timelines[0].runs
    assert (run.trace_id, run.spans, run.dialects) == (ONE[0].trace_id, 8, ("genai", "openinference"))
    assert [len(call.span_ids) for call in calls(timelines[0])] == [2]
    assert [e.text for e in timelines[0].events if isinstance(e, UserMessage)] == ["refund A-1"]


def test_three_views_are_one_run() -> None:
    readings = [*ONE, *view("b" * 32, "genai", 0.001), *view("c" * 32, "openllmetry", 0.002)]
    timeline = build("c", readings)
    assert [run.spans for run in timeline.runs] == [12]
    assert [len(call.span_ids) for call in calls(timeline)] == [3]


@pytest.mark.parametrize(
    "other",
    [
        view("b" * 32, "openinference", 0.001),
        view("b" * 32, "genai", 4.0),
        view("b" * 32, "genai", 0.001, service_name="another"),
        view("b" * 32, "genai", 0.001, host="another"),
    ],
    ids=["one instrumentation", "another time", "another service", "another host"],
)
def test_two_runs_stay_two(other: list[Reading]) -> None:
    assert len(build("c", [*ONE, *other]).runs) == 2


def test_runs_that_share_no_message_and_no_call_stay_two() -> None:
    bare = [
        msgspec.structs.replace(r, input=(), output=(), messages=(), tool=r.tool and msgspec.structs.replace(r.tool, call_id=None))
        for r in view("b" * 32, "genai", 0.001)
    ]  # fmt: skip
    assert len(build("c", [*ONE, *bare]).runs) == 2


def test_very_short_runs_begin_together() -> None:
    def short(readings: list[Reading], at: float) -> list[Reading]:
        times = {"start_time_unix_nano": ns(at), "end_time_unix_nano": ns(at + 0.001)}
        return [msgspec.structs.replace(r, **times) for r in readings]

    two = view("b" * 32, "genai")
    assert len(build("c", [*short(ONE, 0), *short(two, 0.002)]).runs) == 1
    assert len(build("c", [*short(ONE, 0), *short(two, 0.02)]).runs) == 2
