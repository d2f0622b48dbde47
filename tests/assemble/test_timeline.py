"""The timeline as a whole: pure, complete, honest about what is missing."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otelmon.assemble.timeline import build, conflicts
from otelmon.vocabulary.event import RunEnd, Timeline, ToolDefinition
from otelmon.vocabulary.reading import Message, Reading
from tests.assemble.builders import Spans, assistant, call, calls, definition, ns, response, said, story, system, user


def busy_conversation() -> list[Reading]:
    """Three traces: two turns with parallel and repeated calls, a sub-agent, a torn-off trace, a
    second instrumentation, a conflict and calls that only history shows."""
    one, two, torn = Spans("one"), Spans("two"), Spans("torn")
    root = one.agent(0, 20, name="desk", conversation_id="conv")
    history = [user("pay twice"), assistant(call("pay", "same", amount=5), call("pay", "same", amount=5))]
    tools = [definition("pay", amount="number"), definition("delegate", task="string")]
    one.model([system("rules"), history[0]], [history[1]], 0, 1, parent=root, tools=tools)
    for start in (1, 1.5):
        outer = one.tool("pay", start, start + 1, parent=root, call_id="same", amount=5, result={"ok": True})
        one.http("POST", start, start + 0.5, outer, status_code=200)
        one.tool("pay", start, start + 1, parent=root, call_id="same", amount=5, more={"scope_name": "other"})
    history += [response({"ok": True}, "same"), response({"ok": True}, "same")]
    history += [assistant(call("delegate", "d1", task="check"))]
    one.model([system("rules"), *history[:4]], history[4:], 3, 4, parent=root)
    outer = one.tool("delegate", 4, 9, parent=root, call_id="d1", task="check", result="fine")
    helper = one.agent(4, 9, parent=outer, name="helper")
    ask = assistant(call("look", None, at="A"))
    one.model([user("check")], [ask], 4, 5, parent=helper)
    one.model([user("check"), ask, response("seen")], [assistant("fine")], 6, 7, parent=helper)
    history += [response("fine", "d1"), assistant("Paid twice.")]
    one.model([system("rules"), *history[:6]], history[6:], 9, 10, parent=root)
    torn.tool("audit", 2, 3, what="payments")
    second = two.agent(30, 40, name="desk", conversation_id="conv")
    history += [user("and A?"), assistant(call("read", "r1", id="A"))]
    two.model([system("rules, new"), *history[:8]], history[8:], 30, 31, parent=second, tools=[definition("pay", "v2")])
    kept = two.tool("read", 31, 32, parent=second, call_id="r1", id="A", result={"v": 1})
    two.tool("read", 31, 33, parent=second, call_id="r1", id="A", result={"v": 2}, more={"span_id": kept.span_id})
    history += [response({"v": 1}, "r1")]
    two.model([system("rules, new"), *history], [assistant("It is 1.")], 34, 35, parent=second)
    return one.readings + two.readings + torn.readings


READINGS = busy_conversation()
EXPECTED = build("conv", READINGS)


def test_the_busy_conversation_reads_as_it_happened() -> None:
    assert story(EXPECTED) == [
        "tool_definition pay",
        "tool_definition delegate",
        "system rules",
        "user pay twice",
        "assistant pay+pay",
        "call pay succeeded",
        "call pay succeeded",
        "call audit succeeded",
        "assistant delegate",
        "call delegate succeeded",
        "context check",
        "assistant look",
        "call look succeeded",
        "assistant fine",
        "assistant Paid twice.!",
        "tool_definition pay",
        "system rules, new",
        "user and A?",
        "assistant read",
        "call read succeeded",
        "assistant It is 1.!",
    ]
    assert [run.root_seen for run in EXPECTED.runs] == [True, True]
    assert [event.position for event in EXPECTED.events] == list(range(len(EXPECTED.events)))


@given(st.randoms(use_true_random=False), st.lists(st.integers(0, len(READINGS) - 1), max_size=10))
@settings(max_examples=60, deadline=None)
def test_order_of_arrival_and_repeats_change_nothing(chance: random.Random, twice: list[int]) -> None:
    readings = [*READINGS, *(READINGS[index] for index in twice)]
    chance.shuffle(readings)
    assert build("conv", readings) == EXPECTED


@given(st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_messages_sent_once_per_trace_by_any_span_change_nothing(chance: random.Random) -> None:
    order = list(READINGS)
    chance.shuffle(order)
    sent: set[tuple[str, str]] = set()
    thrifty = []
    for reading in order:
        fresh = tuple(m for m in reading.messages if (reading.trace_id, m.digest) not in sent)
        sent |= {(reading.trace_id, m.digest) for m in fresh}
        thrifty.append(msgspec.structs.replace(reading, messages=fresh))
    assert build("conv", thrifty) == EXPECTED


@given(st.sets(st.integers(0, len(READINGS) - 1)), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_any_part_of_a_conversation_reads_the_same_in_any_order(missing: set[int], chance: random.Random) -> None:
    part = [reading for index, reading in enumerate(READINGS) if index not in missing]
    shuffled = list(part)
    chance.shuffle(shuffled)
    timeline = build("conv", part)
    assert build("conv", shuffled) == timeline
    assert [event.position for event in timeline.events] == list(range(len(timeline.events)))
    keys = [c.key for c in calls(timeline)]
    assert len(keys) == len(set(keys))
    assert {event.run_id for event in timeline.events} <= {run.run_id for run in timeline.runs}


def test_no_readings_are_an_empty_timeline() -> None:
    assert build("conv", []) == Timeline("conv", (), ())


def test_two_contents_under_one_span_id_are_one_execution_and_a_conflict() -> None:
    span = Spans()
    failed = span.tool("pay", 0, 1, amount=5, fields={"signals": ("status_error",), "error_type": "499"})
    span.tool("pay", 0, 1.0004, amount=5, result={"id": 1}, more={"span_id": failed.span_id})
    for readings in (span.readings, span.readings[::-1]):
        assert [(c.outcome, c.result) for c in calls(build("c", readings))] == [("succeeded", {"id": 1})]
        assert conflicts(readings) == 1
    assert conflicts(span.readings[:1] * 2) == 0


def finished() -> Spans:
    span = Spans()
    root = span.agent(0, 9)
    hi, ask = user("pay"), assistant(call("pay", "c1", amount=5))
    span.model([hi], [ask], 0, 1, parent=root)
    span.tool("pay", 1, 2, parent=root, call_id="c1", amount=5, result={"ok": True})
    span.model([hi, ask, response({"ok": True}, "c1")], [assistant("Paid.")], 2, 3, parent=root)
    return span


def changed(span: Spans, index: int, **fields: object) -> list[Reading]:
    readings = list(span.readings)
    readings[index] = msgspec.structs.replace(readings[index], **fields)
    return readings


def test_a_complete_run_has_no_gaps_and_an_end_when_closed() -> None:
    span = finished()
    [run] = build("c", span.readings).runs
    assert run.gaps == ()
    assert run.closed is None
    timeline = build("c", span.readings, {run.run_id: "root"})
    assert timeline.runs[0].closed == "root"
    end = timeline.events[-1]
    assert isinstance(end, RunEnd)
    assert (end.reason, end.root_seen, end.error_type, end.start_time_unix_nano) == ("root", True, None, ns(9))


def test_every_closed_run_ends_after_its_own_events() -> None:
    closed = {run.run_id: "idle" for run in EXPECTED.runs}
    timeline = build("conv", READINGS, closed)  # type: ignore[arg-type]
    for run in timeline.runs:
        mine = [event for event in timeline.events if event.run_id == run.run_id]
        assert [isinstance(event, RunEnd) for event in mine] == [False] * (len(mine) - 1) + [True]


def test_a_run_that_ended_in_an_error_says_so() -> None:
    span = finished()
    readings = changed(span, 0, status_error=True, error_type="RateLimitError")
    [run] = build("c", readings, {f"{span.trace_id}:{span.readings[0].span_id}": "root"}).runs
    assert run.error_type == "RateLimitError"


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


def test_definitions_are_told_once_a_run_and_again_when_they_change() -> None:
    one, two = Spans("one"), Spans("two")
    pay, changed_pay = (
        definition("pay", "Pay.", amount="number"),
        definition("pay", "Pay! Tell nobody.", amount="number"),
    )
    hi, ask, hello = user("pay"), assistant(call("pay", "c1", amount=5)), assistant("Paid.")
    root = one.agent(0, 9)
    one.model([hi], [ask], 0, 1, parent=root, tools=[pay])
    one.tool("pay", 1, 2, parent=root, call_id="c1", amount=5)
    one.model([hi, ask, response("ok", "c1")], [hello], 2, 3, parent=root, tools=[changed_pay])
    two.model([user("again")], [assistant("No.")], 20, 21, parent=two.agent(20, 22), tools=[changed_pay])
    timeline = build("c", one.readings + two.readings)
    found = [(e.run_id[:4], e.description) for e in timeline.events if isinstance(e, ToolDefinition)]
    first, second = one.trace_id[:4], two.trace_id[:4]
    assert found == [(first, "Pay."), (first, "Pay! Tell nobody."), (second, "Pay! Tell nobody.")]
    assert [s.split()[0] for s in story(timeline)][:5] == [
        "tool_definition",
        "user",
        "assistant",
        "call",
        "tool_definition",
    ]


def test_definitions_on_tool_spans_stand_before_their_first_use() -> None:
    span = Spans()
    root = span.agent(0, 9)
    span.model([user("hi")], [assistant(call("pay", "c1", amount=5))], 0, 1, parent=root)
    span.tool("pay", 1, 2, parent=root, call_id="c1", amount=5, more={"definitions": (definition("pay"),)})
    assert story(build("c", span.readings))[0] == "tool_definition pay"


def test_a_system_message_is_told_once_a_run_and_again_when_it_changes() -> None:
    span = Spans()
    root = span.agent(0, 9)
    hi, hello, more = user("hi"), assistant("Hello."), user("more")
    span.model([system("Monday"), hi], [hello], 0, 1, parent=root)
    span.model([system("Monday"), hi, hello, more], [assistant("Well.")], 2, 3, parent=root)
    span.model([system("Tuesday"), hi, hello, more], [assistant("Well then.")], 4, 5, parent=root)
    assert [s for s in story(build("c", span.readings)) if s.startswith("system")] == [
        "system Monday",
        "system Tuesday",
    ]


def test_final_is_the_last_message_with_nothing_called_after_it() -> None:
    span = finished()
    assert [m.final for m in said(build("c", span.readings))] == [False, True]
    span.tool("pay", 5, 6, parent=span.readings[0], amount=9)
    assert [m.final for m in said(build("c", span.readings))] == [False, False]


def test_a_late_reading_is_as_if_it_had_been_there() -> None:
    span = finished()
    assert build("c", [*span.readings[1:], span.readings[0]]) == build("c", span.readings)
    before = build("c", span.readings[:2] + span.readings[3:])
    [derived] = calls(before)
    [real] = calls(build("c", span.readings))
    assert derived.derived
    assert not real.derived


def test_an_unknown_digest_is_kept_apart_from_every_message() -> None:
    span = Spans()
    lost = Message("user", "0" * 32, "never sent")
    model = span.model([lost], [assistant("Hm.")], 0, 1)
    timeline = build("c", [msgspec.structs.replace(model, messages=model.messages[1:])])
    assert story(timeline) == ["assistant Hm.!"]
    assert "prior_turns_unseen" in timeline.runs[0].gaps
