"""The timeline as a whole: pure, complete, honest about what is missing."""

from __future__ import annotations

import random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from otelmon.assemble.timeline import build, conflicts
from otelmon.vocabulary.event import RunEnd, Timeline, ToolDefinition
from otelmon.vocabulary.reading import Message, Reading
from tests.assemble.builders import (
    Spans,
    assistant,
    call,
    calls,
    changed,
    definition,
    finished,
    ns,
    response,
    said,
    story,
    system,
    user,
)


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
