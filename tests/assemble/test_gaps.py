"""What a run could not show, and what is no gap."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from otelmon.assemble.timeline import build
from otelmon.vocabulary.reading import Reading
from tests.assemble.builders import Spans, assistant, call, calls, changed, finished, response, user

Gap = Callable[[Spans], list[Reading]]


def _without_content(span: Spans) -> list[Reading]:
    return [
        msgspec.structs.replace(r, content="off", input=(), output=(), messages=()) if r.kind == "model" else r
        for r in span.readings
    ]


def _cut_message(span: Spans) -> list[Reading]:
    model = span.readings[1]
    cut = tuple(msgspec.structs.replace(m, truncated=True) for m in model.messages)
    return changed(span, 1, messages=cut)


def _lost_message(span: Spans) -> list[Reading]:
    return [
        msgspec.structs.replace(r, messages=tuple(m for m in r.messages if m.role != "user")) for r in span.readings
    ]


@pytest.mark.parametrize(
    ("change", "gap"),
    [
        (_without_content, "content_off"),
        (lambda span: changed(span, 2, content="hashed"), "hashed"),
        (lambda span: changed(span, 2, dropped=3), "truncated"),
        (_cut_message, "truncated"),
        (_lost_message, "prior_turns_unseen"),
        (lambda span: [msgspec.structs.replace(r, history_complete=False) for r in span.readings], "prior_turns_unseen"),
        (lambda span: span.readings[:3], "incomplete_run"),
        (lambda span: [*span.readings[:3], *changed(span, 3, output=())[3:]], "incomplete_run"),
    ],
)  # fmt: skip
def test_what_is_missing_is_named(change: Gap, gap: str) -> None:
    [run] = build("c", change(finished())).runs
    assert gap in run.gaps


def test_a_call_whose_arguments_stay_unknown_is_a_gap() -> None:
    span = Spans()
    root = span.agent(0, 9, saw=[user("pay")], said=[assistant("Paid.")])
    span.tool("pay", 1, 2, parent=root)
    assert build("c", span.readings).runs[0].gaps == ("content_off",)


def test_turns_whose_history_the_provider_keeps_are_complete_when_the_first_turn_is() -> None:
    span, later = finished(), Spans("later")
    root = later.agent(20, 29)
    ask = assistant(call("read", "r1", id="A"))
    later.model([user("and A?")], [ask], 20, 21, parent=root, history_complete=False)
    later.tool("read", 21, 22, parent=root, call_id="r1", id="A")
    later.model([response("it is 1", "r1")], [assistant("It is 1.")], 22, 23, parent=root, history_complete=False)
    timeline = build("c", span.readings + later.readings)
    assert [run.gaps for run in timeline.runs] == [(), ()]
    assert [(c.tool_call_id, c.turn, c.result_text) for c in calls(timeline)][1] == ("r1", 2, "it is 1")
    assert build("c", later.readings).runs[0].gaps == ("prior_turns_unseen",)


def test_a_silent_sub_agent_inside_a_call_is_no_gap() -> None:
    span = finished()
    helper = span.agent(1.2, 1.8, parent=span.readings[2], name="helper")
    span.model([], [], 1.3, 1.4, parent=helper, content="off")
    timeline = build("c", span.readings)
    assert timeline.runs[0].gaps == ()
    assert calls(timeline)[0].nested_calls == 0


def test_attributes_lost_on_a_span_without_content_are_no_gap() -> None:
    span = finished()
    span.other("step", 0, 9, parent=span.readings[0], dropped=5)
    assert build("c", span.readings).runs[0].gaps == ()
