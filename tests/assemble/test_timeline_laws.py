"""Laws over made-up conversations: whichever spans came, the calls are those that were made."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from otelmon.assemble.timeline import build
from otelmon.vocabulary.reading import Message, Reading
from tests.assemble.builders import Spans, asked, assistant, call, calls, response, said, user

Call = tuple[str, str | None, int, str]
"""name, call id, argument, result"""

few_calls = st.lists(
    st.tuples(
        st.sampled_from(["read", "pay"]),
        st.sampled_from(["same", "c1", "c2"]),
        st.integers(0, 1),
        st.sampled_from(["ok", "1", "Error: no"]),
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda item: item[1],
)
turns = st.lists(st.lists(few_calls, max_size=3), min_size=1, max_size=4)


class Script:
    """A conversation that is told as spans: one trace or one a turn, each tool span there or not."""

    def __init__(self, plan: list[list[list[Call]]], one_trace: bool, shown: random.Random, ids: bool) -> None:
        self.calls: list[tuple[str, int, str]] = []
        self.readings: list[Reading] = []
        self.users = self.answers = 0
        self._shown = shown
        self._ids = ids
        self._at = 0.0
        history: list[Message] = []
        span = Spans("all")
        root = span.agent(0, 10_000)
        for number, steps in enumerate(plan):
            if not one_trace:
                self.readings += span.readings if number else []
                span = Spans(f"turn {number}")
                root = span.agent(self._at, self._at + 900)
            history.append(user("yes"))
            self.users += 1
            for step in steps:
                self._step(span, root, step, history)
            self._say(span, root, [assistant("Done.")], history)
            self._at += 1000
        self.readings += span.readings

    def _say(self, span: Spans, root: Reading, said_now: list[Message], history: list[Message]) -> None:
        span.model(list(history), said_now, self._at, self._at + 1, parent=root)
        history += said_now
        self.answers += 1
        self._at += 1

    def _step(self, span: Spans, root: Reading, step: list[Call], history: list[Message]) -> None:
        wanted = [call(name, call_id if self._ids else None, x=x) for name, call_id, x, _ in step]
        self._say(span, root, [assistant(*wanted)], history)
        for name, call_id, x, result in step:
            known = call_id if self._ids else None
            if self._shown.random() < 0.5:
                given: dict[str, Any] = {"x": x} if self._shown.random() < 0.8 else {}
                span.tool(name, self._at, self._at + 0.5, parent=root, call_id=known, result=result, **given)
            self._at += 1
            self.calls.append((name, x, result))
            history.append(response(result, known))


@given(turns, st.booleans(), st.booleans(), st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_whichever_tool_spans_came_the_calls_are_those_that_were_made(
    plan: list[list[list[Call]]], one_trace: bool, ids: bool, chance: random.Random
) -> None:
    script = Script(plan, one_trace, chance, ids)
    readings = list(script.readings)
    chance.shuffle(readings)
    timeline = build("c", readings)
    assert [(c.tool_name, c.arguments["x"], c.result_text) for c in calls(timeline)] == script.calls
    assert len(asked(timeline)) == script.users
    assert len(said(timeline)) == script.answers
    assert sum(m.final for m in said(timeline)) == len(timeline.runs)
    assert len({c.key for c in calls(timeline)}) == len(script.calls)
    assert all(run.gaps == () for run in timeline.runs)
