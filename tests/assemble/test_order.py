"""Order: every message once, at its causal place, whatever the histories repeat and clocks say."""

from __future__ import annotations

from otelmon.assemble.timeline import build
from tests.assemble.builders import Spans, asked, assistant, call, calls, ns, response, said, story, system, user


def test_a_history_that_every_model_span_repeats_is_told_once() -> None:
    span = Spans()
    root = span.agent(0, 9)
    hi, ask, answer = user("hi"), assistant(call("read", "c1", id="A")), response({"v": 1}, "c1")
    span.model([system("be nice"), hi], [ask], 0, 1, parent=root)
    span.tool("read", 1, 2, parent=root, call_id="c1", id="A", result={"v": 1})
    span.model([system("be nice"), hi, ask, answer], [assistant("It is 1.")], 2, 3, parent=root)
    assert story(build("c", span.readings)) == [
        "system be nice",
        "user hi",
        "assistant read",
        "call read succeeded",
        "assistant It is 1.!",
    ]


def test_turns_in_several_traces_are_one_conversation() -> None:
    one, two = Spans("one"), Spans("two")
    hi, hello, more = user("hi"), assistant("Hello."), user("more")
    one.model([hi], [hello], 0, 1, parent=one.agent(0, 2))
    two.model([hi, hello, more], [assistant("Sure.")], 10, 11, parent=two.agent(10, 12))
    timeline = build("c", two.readings + one.readings)
    assert story(timeline) == ["user hi", "assistant Hello.!", "user more", "assistant Sure.!"]
    assert [m.turn for m in asked(timeline)] == [1, 2]
    assert [e.trace_id for e in timeline.events] == [one.trace_id] * 2 + [two.trace_id] * 2


def test_a_clock_that_puts_the_second_turn_first_changes_nothing() -> None:
    one, two = Spans("one"), Spans("two")
    hi, hello, more = user("hi"), assistant("Hello."), user("more")
    one.model([hi], [hello], 50, 51, parent=one.agent(50, 52))
    two.model([hi, hello, more], [assistant("Sure.")], 10, 11, parent=two.agent(10, 12))
    timeline = build("c", one.readings + two.readings)
    assert [m.text for m in asked(timeline)] == ["hi", "more"]
    assert [m.text for m in said(timeline)] == ["Hello.", "Sure."]
    assert [m.trace_id for m in said(timeline)] == [one.trace_id, two.trace_id]


def test_the_same_word_said_twice_is_two_messages() -> None:
    span = Spans()
    root = span.agent(0, 9)
    yes, first, second = user("yes"), assistant("Sure?"), assistant("Really?")
    span.model([yes], [first], 0, 1, parent=root)
    span.model([yes, first, yes], [second], 2, 3, parent=root)
    span.model([yes, first, yes, second, yes], [assistant("Done.")], 4, 5, parent=root)
    timeline = build("c", span.readings)
    assert story(timeline) == [
        "user yes", "assistant Sure?", "user yes", "assistant Really?", "user yes", "assistant Done.!",
    ]  # fmt: skip
    assert [m.turn for m in asked(timeline)] == [1, 2, 3]


def test_user_messages_in_a_row_are_one_turn() -> None:
    span = Spans()
    span.model([user("context"), user("do it")], [assistant("Done.")], 0, 1)
    assert [m.turn for m in asked(build("c", span.readings))] == [1, 1]


def test_a_cut_history_lines_up_with_what_is_known() -> None:
    span = Spans()
    root = span.agent(0, 9)
    messages = [user("one"), assistant("first answer"), user("two"), assistant("second answer")]
    span.model(messages[:1], messages[1:2], 0, 1, parent=root)
    span.model(messages[:3], messages[3:4], 2, 3, parent=root)
    span.model([*messages[2:], user("three")], [assistant("third answer")], 4, 5, parent=root)
    timeline = build("c", span.readings)
    assert [m.text for m in asked(timeline)] == ["one", "two", "three"]
    assert len(said(timeline)) == 3


def test_a_summary_in_place_of_old_turns_is_context_and_no_new_turn() -> None:
    span = Spans()
    root = span.agent(0, 9)
    messages = [user("one"), assistant("first answer"), user("two"), assistant("second answer")]
    span.model(messages[:1], messages[1:2], 0, 1, parent=root)
    span.model(messages[:3], messages[3:4], 2, 3, parent=root)
    summary = user("Summary: he asked about one.")
    span.model([summary, *messages[2:], user("three")], [assistant("third answer")], 4, 5, parent=root)
    timeline = build("c", span.readings)
    assert [m.text for m in asked(timeline)] == ["one", "two", "three"]
    assert "context Summary: he asked about one." in story(timeline)


def test_a_history_that_can_not_be_lined_up_does_not_call_twice() -> None:
    span = Spans()
    hi, ask = user("hi"), assistant(call("pay", "c1", amount=5))
    span.model([hi], [ask], 0, 1)
    span.model([hi, ask, response({"ok": True}, "c1")], [assistant("Paid.")], 2, 3)
    span.model([user("You are the reviewer."), ask, response({"ok": True}, "c1")], [assistant("Fine.")], 4, 5)
    assert len(calls(build("c", span.readings))) == 1


def test_a_history_without_the_models_own_messages_still_answers_them() -> None:
    span = Spans()
    hi, bad = user("hi"), response("Error: no such order")
    span.model([hi], [assistant(call("cancel", "c1", id="A"))], 0, 1)
    span.model([hi, bad], [assistant(call("cancel", "c2", id="A"))], 2, 3)
    span.model([hi, bad, bad], [assistant("I could not.")], 4, 5)
    timeline = build("c", span.readings)
    assert story(timeline) == [
        "user hi",
        "assistant cancel",
        "call cancel failed",
        "assistant cancel",
        "call cancel failed",
        "assistant I could not.!",
    ]


def test_a_tool_message_without_a_call_is_context_and_earlier_turns_are_unseen() -> None:
    span = Spans()
    span.model([response("ticket 7: broken pump", "c9"), user("and now?")], [assistant("Hm.")], 0, 1)
    timeline = build("c", span.readings)
    assert story(timeline)[0] == "context ticket 7: broken pump"
    assert "prior_turns_unseen" in timeline.runs[0].gaps


def test_calls_stand_between_request_and_response_whatever_the_clock_of_the_tool_host_says() -> None:
    span = Spans()
    root = span.agent(0, 9)
    hi, ask = user("hi"), assistant(call("reserve", "c1", sku="B"))
    then = assistant(call("stock", "c2", sku="B"))
    first = span.model([hi], [ask], 0, 5, parent=root)
    span.tool("reserve", -34, -33, parent=first, call_id="c1", sku="B", result={"ok": True}, more={"host": "behind"})
    span.model([hi, ask, response({"ok": True}, "c1")], [then], 6.5, 7, parent=root)
    span.tool("stock", 7, 7.2, parent=root, call_id="c2", sku="B", result={"left": 12})
    assert [c.tool_name for c in calls(build("c", span.readings))] == ["reserve", "stock"]


def test_parallel_calls_stand_in_the_order_in_which_they_were_asked_for() -> None:
    span = Spans()
    span.model([user("hi")], [assistant(call("a", "c1", x=1), call("b", "c2", x=1))], 0, 1)
    span.tool("b", 1, 2, call_id="c2", x=1)
    span.tool("a", 1.5, 2, call_id="c1", x=1)
    timeline = build("c", span.readings)
    assert [c.tool_name for c in calls(timeline)] == ["a", "b"]
    assert {c.batch for c in calls(timeline)} == {1}


def test_a_second_execution_of_a_batch_stands_after_the_whole_batch() -> None:
    span = Spans()
    span.model([user("hi")], [assistant(call("send", "c1", x=1), call("ask", "c2", x=1))], 0, 1)
    for start in (1, 90):
        span.tool("send", start, start + 0.3, call_id="c1", x=1)
        span.tool("ask", start, start + 0.1, call_id="c2", x=1)
    assert [(c.tool_name, c.start_time_unix_nano) for c in calls(build("c", span.readings))] == [
        ("send", ns(1)), ("ask", ns(1)), ("send", ns(90)), ("ask", ns(90)),
    ]  # fmt: skip


def test_calls_nobody_was_seen_to_ask_for_are_placed_by_time_in_their_run() -> None:
    span = Spans()
    root = span.agent(0, 9)
    span.model([user("hi")], [assistant("Let me look.")], 0, 1, parent=root)
    span.tool("read", 1, 2, parent=root, id="A")
    span.model([user("hi"), assistant("Let me look.")], [assistant("Found.")], 3, 4, parent=root)
    timeline = build("c", span.readings)
    assert story(timeline) == ["user hi", "assistant Let me look.", "call read succeeded", "assistant Found.!"]
    assert calls(timeline)[0].turn == 1


def test_calls_without_any_messages_are_ordered_by_start() -> None:
    span = Spans()
    for start in (3, 1, 2):
        span.tool(f"t{start}", start, start + 0.5, id="A")
    assert [c.tool_name for c in calls(build("c", span.readings))] == ["t1", "t2", "t3"]
    assert [c.batch for c in calls(build("c", span.readings))] == [1, 2, 3]


def test_a_call_approved_in_a_later_turn_stands_after_that_turn() -> None:
    one, two = Spans("one"), Spans("two")
    hi, ask, yes = user("delete it"), assistant(call("delete", "c1", id="A")), user("yes")
    one.model([hi], [ask], 0, 1, parent=one.agent(0, 2))
    root = two.agent(10, 19)
    two.tool("delete", 11, 12, parent=root, call_id="c1", id="A", result={"ok": True})
    two.model([hi, ask, yes, response({"ok": True}, "c1")], [assistant("Deleted.")], 13, 14, parent=root)
    assert story(build("c", one.readings + two.readings)) == [
        "user delete it", "assistant delete", "user yes", "call delete succeeded", "assistant Deleted.!",
    ]  # fmt: skip


def test_a_rerun_of_one_trigger_answers_the_same_user_message_again() -> None:
    one, two = Spans("one", trigger="job-7"), Spans("two", trigger="job-7")
    hi, ask = user("append"), assistant(call("run", "c1", command="x"))
    for span, at in ((one, 0), (two, 30)):
        root = span.agent(at, at + 9)
        span.model([hi], [ask], at, at + 1, parent=root)
        span.tool("run", at + 1, at + 2, parent=root, call_id="c1", command="x", result={"exit": 0})
        span.model([hi, ask, response({"exit": 0}, "c1")], [assistant("Appended.")], at + 3, at + 4, parent=root)
    timeline = build("c", one.readings + two.readings)
    assert [m.turn for m in asked(timeline)] == [1]
    assert [(c.trace_id, c.turn) for c in calls(timeline)] == [(one.trace_id, 1), (two.trace_id, 1)]
    assert [m.final for m in said(timeline)] == [False, True, False, True]


def test_the_same_request_after_an_answer_is_a_new_turn() -> None:
    one, two = Spans("one"), Spans("two")
    hi, ask = user("append"), assistant(call("run", "c1", command="x"))
    for span, at in ((one, 0), (two, 30)):
        root = span.agent(at, at + 9)
        span.model([hi], [ask], at, at + 1, parent=root)
        span.tool("run", at + 1, at + 2, parent=root, call_id="c1", command="x", result={"exit": 0})
        span.model([hi, ask, response({"exit": 0}, "c1")], [assistant("Appended.")], at + 3, at + 4, parent=root)
    timeline = build("c", one.readings + two.readings)
    assert [m.turn for m in asked(timeline)] == [1, 2]
    assert [c.turn for c in calls(timeline)] == [1, 2]


def test_a_regenerated_answer_keeps_both_and_follows_the_one_that_was_used() -> None:
    span = Spans()
    root = span.agent(0, 9)
    hi = user("hi")
    span.model([hi], [assistant("First try.")], 0, 1, parent=root)
    used = assistant(call("read", "c1", id="A"))
    span.model([hi], [used], 2, 3, parent=root)
    span.model([hi, used, response({"v": 1}, "c1")], [assistant("It is 1.")], 4, 5, parent=root)
    timeline = build("c", span.readings)
    assert [m.text for m in said(timeline)] == ["First try.", "", "It is 1."]
    assert len(asked(timeline)) == 1
    assert len(calls(timeline)) == 1


def test_agent_messages_stand_in_where_model_spans_show_none() -> None:
    span = Spans()
    root = span.agent(0, 9, saw=[user("refund A")], said=[assistant("Refunded.")])
    span.tool("refund", 2, 3, parent=root, order="A")
    assert story(build("c", span.readings)) == ["user refund A", "call refund succeeded", "assistant Refunded.!"]


def test_agent_messages_are_not_told_beside_those_of_model_spans() -> None:
    span = Spans()
    root = span.agent(0, 9, saw=[user("refund A")], said=[assistant("Refunded: done")])
    span.model([user("refund A")], [assistant("Refunded.")], 1, 2, parent=root)
    assert story(build("c", span.readings)) == ["user refund A", "assistant Refunded.!"]


def test_the_answer_is_taken_from_the_root_when_the_model_spans_stop_at_a_request() -> None:
    span = Spans()
    root = span.agent(0, 9, saw=[user("refund A")], said=[assistant("Refunded.")])
    span.model([user("refund A")], [assistant(call("refund", "c1", order="A"))], 1, 2, parent=root)
    span.tool("refund", 2, 3, parent=root, call_id="c1", order="A")
    timeline = build("c", span.readings)
    assert story(timeline) == [
        "user refund A", "assistant refund", "call refund succeeded", "assistant Refunded.!",
    ]  # fmt: skip
    assert timeline.runs[0].gaps == ()


def test_nested_agents_that_repeat_each_other_speak_once() -> None:
    span = Spans()
    outer = span.agent(0, 9, saw=[user("hi")], said=[assistant("Hello.")])
    span.agent(1, 8, parent=outer, name="inner", saw=[user("hi")], said=[assistant("Hello.")])
    assert story(build("c", span.readings)) == ["user hi", "assistant Hello.!"]


def test_a_span_that_took_no_time_saw_before_it_said() -> None:
    span = Spans()
    span.model([user("hi")], [assistant("Hello.")], 1, 1)
    assert story(build("c", span.readings)) == ["user hi", "assistant Hello.!"]


def test_one_answer_in_several_messages_is_one_batch() -> None:
    span = Spans()
    hi, text = user("both"), assistant("Let me.")
    a, b = assistant(call("a", "c1", x=1)), assistant(call("b", "c2", x=1))
    span.model([hi], [text, a, b], 0, 1)
    span.model([hi, text, a, b, response("1", "c1"), response("2", "c2")], [assistant("Done.")], 2, 3)
    timeline = build("c", span.readings)
    assert [s.split()[0] for s in story(timeline)] == ["user", *["assistant"] * 3, "call", "call", "assistant"]
    assert {c.batch for c in calls(timeline)} == {1}


def test_a_second_rerun_goes_on_from_its_own_line() -> None:
    traces = [Spans(f"t{index}", trigger="job-7") for index in range(3)]
    hi, ask = user("append"), assistant(call("run", "c1", command="x"))
    for index, span in enumerate(traces):
        at = 30 * index
        root = span.agent(at, at + 9)
        span.model([hi], [ask], at, at + 1, parent=root)
        span.model([hi, ask, response(f"exit {index}", "c1")], [assistant("Appended.")], at + 3, at + 4, parent=root)
    timeline = build("c", [reading for span in traces for reading in span.readings])
    assert [(c.trace_id, c.result_text) for c in calls(timeline)] == [
        (span.trace_id, f"exit {index}") for index, span in enumerate(traces)
    ]
    assert len(asked(timeline)) == 1


def test_documents_of_other_spans_are_context() -> None:
    span = Spans()
    root = span.agent(0, 9)
    document = user("Refunds take 3 days.")
    span.other("retrieve", 0, 0.5, parent=root, output=(document.digest,), messages=(document,))
    span.model([user("hi")], [assistant("3 days.")], 1, 2, parent=root)
    assert "context Refunds take 3 days." in story(build("c", span.readings))
