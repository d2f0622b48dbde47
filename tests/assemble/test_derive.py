"""Requests and executions: which belongs to which, what only history shows."""

from __future__ import annotations

import msgspec

from otelmon.assemble.timeline import build
from otelmon.vocabulary.reading import RequestedCall
from tests.assemble.builders import Spans, assistant, call, calls, response, said, story, user


def test_a_request_with_a_response_and_no_span_is_a_derived_call() -> None:
    span = Spans()
    hi, ask = user("pay"), assistant(call("pay", "c1", amount=5))
    first = span.model([hi], [ask], 0, 1)
    span.model([hi, ask, response({"ok": True}, "c1")], [assistant("Paid.")], 2, 3)
    [only] = calls(build("c", span.readings))
    assert only.derived
    assert only.key.startswith("derived:")
    assert (only.tool_call_id, only.arguments, only.result, only.result_text) == (
        "c1", {"amount": 5}, {"ok": True}, '{"ok": true}',
    )  # fmt: skip
    assert only.span_id == first.span_id
    assert (only.start_time_unix_nano, only.end_time_unix_nano) == (
        first.end_time_unix_nano, span.readings[1].start_time_unix_nano,
    )  # fmt: skip


def test_a_request_without_a_response_and_a_span_is_no_call() -> None:
    span = Spans()
    span.model([user("pay")], [assistant(call("pay", "c1", amount=5))], 0, 1)
    timeline = build("c", span.readings)
    assert calls(timeline) == []
    assert [request.tool_name for request in said(timeline)[0].requests] == ["pay"]


def test_a_derived_call_counts_once_over_the_traces_that_repeat_it() -> None:
    hi, ask, ok, paid = (
        user("pay"),
        assistant(call("pay", "c1", amount=5)),
        response({"ok": True}, "c1"),
        assistant("Paid."),
    )
    readings, keys = [], set()
    history = [hi]
    one = Spans("one")
    one.model(history, [ask], 0, 1)
    one.model([hi, ask, ok], [paid], 2, 3)
    history = [hi, ask, ok, paid]
    readings += one.readings
    for turn in range(3):
        span = Spans(f"turn {turn}")
        history = [*history, user(f"more {turn}")]
        answer = assistant(f"Answer {turn}.")
        span.model(history, [answer], 10 * turn + 10, 10 * turn + 11)
        history = [*history, answer]
        readings += span.readings
        [only] = calls(build("c", readings))
        keys.add(only.key)
    [late] = calls(build("c", readings[2:]))  # only the traces that repeat it came
    assert len(keys) == 1
    assert late.key in keys


def test_a_derived_call_is_never_beside_a_real_span() -> None:
    span = Spans()
    hi, ask = user("pay"), assistant(call("pay", "c1", amount=5))
    span.model([hi], [ask], 0, 1)
    span.model([hi, ask, response({"ok": True}, "c1")], [assistant("Paid.")], 2, 3)
    real = span.tool("pay", 1, 2, call_id="c1", amount=5)
    [only] = calls(build("c", span.readings))
    assert only.key == f"{real.trace_id}:{real.span_id}"
    assert not only.derived


def test_spans_without_ids_and_arguments_pair_by_name_and_order_and_are_completed() -> None:
    span = Spans()
    hi = user("add both")
    a, b = assistant(call("add", "c1", sku="A", qty=40)), assistant(call("add", "c2", sku="B", qty=12))
    span.model([hi], [a], 0, 1)
    span.tool("add", 1, 2)
    span.model([hi, a, response({"id": 1}, "c1")], [b], 2, 3)
    span.tool("add", 3, 4)
    span.model([hi, a, response({"id": 1}, "c1"), b, response({"id": 2}, "c2")], [assistant("Added.")], 4, 5)
    found = calls(build("c", span.readings))
    assert [(c.tool_call_id, c.arguments, c.result, c.derived) for c in found] == [
        ("c1", {"sku": "A", "qty": 40}, {"id": 1}, False),
        ("c2", {"sku": "B", "qty": 12}, {"id": 2}, False),
    ]
    assert build("c", span.readings).runs[0].gaps == ()


def test_a_call_id_that_repeats_pairs_by_arguments_then_order() -> None:
    span = Spans()
    hi = user("both")
    a, b = assistant(call("get", "same", id="A")), assistant(call("get", "same", id="B"))
    span.model([hi], [a], 0, 1)
    span.model([hi, a, response("one", "same")], [b], 2, 3)
    span.model([hi, a, response("one", "same"), b, response("two", "same")], [assistant("Both.")], 4, 5)
    assert [(c.arguments, c.result_text) for c in calls(build("c", span.readings))] == [
        ({"id": "A"}, "one"), ({"id": "B"}, "two"),
    ]  # fmt: skip
    second = span.tool("get", 3, 4, call_id="same", id="B")
    found = calls(build("c", span.readings))
    assert [(c.arguments, c.derived) for c in found] == [({"id": "A"}, True), ({"id": "B"}, False)]
    assert found[1].span_id == second.span_id


def test_equal_calls_under_one_repeated_id_have_keys_of_their_own() -> None:
    span = Spans()
    hi, ask, ok = user("ping twice"), assistant(call("ping", "same", id="A")), response("ok", "same")
    span.model([hi], [ask], 0, 1)
    span.model([hi, ask, ok], [ask], 2, 3)
    span.model([hi, ask, ok, ask, ok], [assistant("Pinged.")], 4, 5)
    found = calls(build("c", span.readings))
    assert len(found) == 2
    assert len({c.key for c in found}) == 2


def test_an_item_id_in_place_of_the_call_id_still_pairs() -> None:
    span = Spans()
    hi = user("pay")
    span.model([hi], [assistant(call("pay", "fc_1", amount=5))], 0, 1)
    span.tool("pay", 1, 2, call_id="call_9", amount=5)
    span.model([hi, assistant(call("pay", "call_9", amount=5)), response("ok", "call_9")], [assistant("Paid.")], 2, 3)
    timeline = build("c", span.readings)
    assert story(timeline) == ["user pay", "assistant pay", "call pay succeeded", "assistant Paid.!"]


def test_responses_without_ids_answer_by_position() -> None:
    span = Spans()
    hi, ask = user("both"), assistant(call("a", None, x=1), call("b", None, x=2))
    span.model([hi], [ask], 0, 1)
    span.model([hi, ask, response("one"), response("two")], [assistant("Both.")], 2, 3)
    assert [(c.tool_name, c.result_text) for c in calls(build("c", span.readings))] == [("a", "one"), ("b", "two")]


def test_responses_with_names_answer_by_name() -> None:
    span = Spans()
    hi, ask = user("both"), assistant(call("a", None, x=1), call("b", None, x=2))
    span.model([hi], [ask], 0, 1)
    span.model([hi, ask, response("two", None, "b"), response("one", None, "a")], [assistant("Both.")], 2, 3)
    assert [(c.tool_name, c.result_text) for c in calls(build("c", span.readings))] == [("a", "one"), ("b", "two")]


def test_equal_results_of_several_tools_answer_them_all() -> None:
    span = Spans()
    hi, ask = user("both"), assistant(call("a", None, x=1), call("b", None, x=2), call("c", None, x=3))
    one = response("{}", None, "b")
    span.model([hi], [ask], 0, 1)
    span.model([hi, ask, one, one, one], [assistant("Nothing.")], 2, 3)
    assert [(c.tool_name, c.result_text) for c in calls(build("c", span.readings))] == [
        ("a", "{}"), ("b", "{}"), ("c", "{}"),
    ]  # fmt: skip


def test_one_text_from_different_tools_is_not_taken_for_either() -> None:
    span = Spans()
    hi, a, b = user("both"), assistant(call("a", None, x=1)), assistant(call("b", None, x=1))
    of_a = response("None", None, "a", is_error=True)
    of_b = msgspec.structs.replace(response("None", None, "b"), digest=of_a.digest)
    span.model([hi], [a], 0, 1)
    span.model([hi, a, of_a], [b], 2, 3)
    third = span.model([hi, a, of_a, b, of_b], [assistant("Both.")], 4, 5)
    told = [*span.readings[:2], msgspec.structs.replace(third, messages=(*third.messages, of_b, of_a))]
    for readings in (told, told[::-1]):
        found = calls(build("c", readings))
        assert [(c.tool_name, c.result_text, c.outcome) for c in found] == [
            ("a", "None", "succeeded"), ("b", "None", "succeeded"),
        ]  # fmt: skip


def test_a_result_of_a_tool_that_was_not_asked_for_answers_nothing() -> None:
    span = Spans()
    hi, ask = user("both"), assistant(call("a", None, x=1))
    span.model([hi], [ask], 0, 1)
    span.model([hi, ask, response("other", None, "z")], [assistant("Nothing.")], 2, 3)
    timeline = build("c", span.readings)
    assert calls(timeline) == []
    assert "context other" in story(timeline)


def test_what_a_span_shows_is_not_replaced_by_messages() -> None:
    span = Spans()
    hi, ask = user("pay"), assistant(call("pay", "c1", amount=5))
    span.model([hi], [ask], 0, 1)
    span.tool("pay", 1, 2, call_id="c1", amount=6, result={"id": 1})
    span.model([hi, ask, response({"id": 2}, "c1")], [assistant("Paid.")], 2, 3)
    [only] = calls(build("c", span.readings))
    assert (only.arguments, only.result, only.arguments_fidelity) == ({"amount": 6}, {"id": 1}, "exact")


def test_a_response_marked_as_error_makes_the_call_failed() -> None:
    span = Spans()
    hi, ask = user("pay"), assistant(call("pay", "c1", amount=5))
    span.model([hi], [ask], 0, 1)
    span.model([hi, ask, response("card expired", "c1", is_error=True)], [assistant("No.")], 2, 3)
    [only] = calls(build("c", span.readings))
    assert (only.outcome, only.error_message) == ("failed", "card expired")


def test_arguments_the_model_broke_stay_text() -> None:
    span = Spans()
    hi, ask = user("pay"), assistant(RequestedCall("pay", "c1", None, '{"amount": ', "exact"))
    span.model([hi], [ask], 0, 1)
    span.model([hi, ask, response("bad json", "c1")], [assistant("No.")], 2, 3)
    [only] = calls(build("c", span.readings))
    assert (only.arguments, only.arguments_text, only.arguments_hash) == (None, '{"amount": ', "")
