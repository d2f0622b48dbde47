"""One execution from several spans, and several executions that must stay several."""

from __future__ import annotations

import pytest

from otelmon.assemble.timeline import build
from tests.assemble.builders import Spans, assistant, call, calls, definition, ns, response, said, user


def test_client_send_and_server_of_one_call_are_one_execution() -> None:
    span = Spans(dialect="mcp")
    outer = span.tool("read", 1, 4, more={"scope_name": "fastmcp"})
    send = span.tool("read", 1.1, 3.9, parent=outer, more={"scope_name": "sdk"})
    server = span.tool("read", 1.2, 3.8, parent=send, fields={"server": "files"}, more={"scope_name": "fastmcp"})
    [only] = calls(build("c", span.readings))
    assert only.span_ids == (outer.span_id, send.span_id, server.span_id)
    assert only.key == f"{outer.trace_id}:{outer.span_id}"
    assert only.server == "files"


def test_a_server_on_a_host_with_another_clock_is_still_the_same_call() -> None:
    span = Spans()
    outer = span.tool("read", 1, 4, more={"host": "here"})
    span.tool("read", -40, -38, parent=outer, more={"host": "there"})
    assert len(calls(build("c", span.readings))) == 1


def test_a_server_that_ends_unset_after_a_client_timeout_changes_nothing() -> None:
    span = Spans()
    outer = span.tool("pay", 1, 3, fields={"signals": ("status_error", "timeout"), "error_type": "timeout"}, amount=5)
    span.tool("pay", 1, 9, parent=outer, result={"ok": True}, amount=5, more={"scope_name": "server"})
    [only] = calls(build("c", span.readings))
    assert only.outcome == "unknown"


def test_nested_calls_of_one_name_with_other_arguments_are_two() -> None:
    span = Spans()
    outer = span.tool("search", 1, 4, q="a")
    span.tool("search", 2, 3, parent=outer, q="b")
    assert len(calls(build("c", span.readings))) == 2


def test_a_sub_agent_between_makes_them_two() -> None:
    span = Spans()
    outer = span.tool("delegate", 1, 8, task="x")
    helper = span.agent(2, 7, parent=outer)
    span.tool("delegate", 3, 4, parent=helper, task="x")
    assert len(calls(build("c", span.readings))) == 2


def test_attempts_under_one_outer_span_are_executions_of_their_own() -> None:
    span = Spans()
    outer = span.tool("pay", 0, 9, amount=5, result={"ok": True})
    failed = {"signals": ("status_error", "timeout"), "error_type": "timeout"}
    span.tool("pay", 0, 3, parent=outer, amount=5, fields=failed, more={"scope_name": "client"})
    span.tool("pay", 4, 8, parent=outer, amount=5, result={"ok": True}, more={"scope_name": "client"})
    assert [(c.outcome, len(c.span_ids)) for c in calls(build("c", span.readings))] == [
        ("unknown", 1),
        ("succeeded", 2),
    ]


@pytest.mark.parametrize("ids", [("c1", "c1"), ("c1", None), (None, None)])
def test_two_instrumentations_of_one_call_count_once(ids: tuple[str | None, str | None]) -> None:
    one, two = Spans("one", scope_name="a", dialect="genai"), Spans("two", scope_name="b", dialect="openinference")
    first = one.tool("pay", 1, 2, call_id=ids[0], amount=5, result={"ok": True})
    two.tool("pay", 1.001, 1.999, call_id=ids[1], amount=5, result={"ok": True})
    [only] = calls(build("c", two.readings + one.readings))
    assert only.span_ids[0] == first.span_id
    assert only.tool_call_id == ids[0]


def test_two_instrumentations_in_one_trace_count_once_too() -> None:
    span = Spans()
    for scope in ("a", "b"):
        span.tool("pay", 1, 2, amount=5, more={"scope_name": scope})
    assert len(calls(build("c", span.readings))) == 1


def test_a_span_without_content_is_completed_by_its_twin() -> None:
    span = Spans()
    span.tool("pay", 1, 2, call_id="c1", more={"scope_name": "a"})
    span.tool("pay", 1, 2, call_id="c1", amount=5, result={"ok": True}, more={"scope_name": "b"})
    [only] = calls(build("c", span.readings))
    assert (only.arguments, only.arguments_fidelity, only.result) == ({"amount": 5}, "exact", {"ok": True})


def test_retries_seen_by_one_scope_stay_apart_even_under_one_call_id() -> None:
    span = Spans()
    span.model([user("pay")], [assistant(call("pay", "c1", amount=5))], 0, 1)
    span.tool("pay", 1, 2, call_id="c1", amount=5)
    span.tool("pay", 5, 6, call_id="c1", amount=5)
    assert [c.start_time_unix_nano for c in calls(build("c", span.readings))] == [ns(1), ns(5)]


def test_equal_calls_at_the_same_time_in_one_scope_are_two() -> None:
    span = Spans()
    for call_id in ("c1", "c2"):
        span.tool("pay", 1, 2, call_id=call_id, amount=5)
    assert len(calls(build("c", span.readings))) == 2


def test_equal_parallel_calls_seen_by_two_scopes_are_two() -> None:
    span = Spans()
    for scope in ("a", "b"):
        for start in (1, 1.01):
            span.tool("pay", start, 2, amount=5, more={"scope_name": scope})
    assert [len(c.span_ids) for c in calls(build("c", span.readings))] == [2, 2]


def test_scopes_that_do_not_overlap_saw_two_executions() -> None:
    span = Spans()
    span.tool("pay", 1, 2, call_id="c1", amount=5, more={"scope_name": "a"})
    span.tool("pay", 5, 6, call_id="c1", amount=5, more={"scope_name": "b"})
    assert len(calls(build("c", span.readings))) == 2


def test_replicas_that_run_one_call_at_once_are_two_executions() -> None:
    span = Spans()
    span.tool("pay", 1, 2, call_id="c1", amount=5, more={"scope_name": "a", "host": "h1"})
    span.tool("pay", 1, 2, call_id="c1", amount=5, more={"scope_name": "b", "host": "h2"})
    assert len(calls(build("c", span.readings))) == 2


def test_a_name_with_the_servers_in_front_is_the_same_tool() -> None:
    span = Spans()
    outer = span.tool("files_read", 1, 4, path="/a")
    span.tool("read", 1.1, 3.9, parent=outer, path="/a", more={"dialect": "mcp"})
    [only] = calls(build("c", span.readings))
    assert only.tool_name == "files_read"


def test_a_name_that_only_ends_alike_is_another_tool() -> None:
    span = Spans()
    outer = span.tool("spread", 1, 4, path="/a")
    span.tool("read", 1.1, 3.9, parent=outer, path="/a")
    assert len(calls(build("c", span.readings))) == 2


@pytest.mark.parametrize("call_id", ["c1", None])
def test_a_lone_argument_without_its_name_is_the_same_call(call_id: str | None) -> None:
    span = Spans()
    bare = {"arguments": "A-1", "arguments_fidelity": "decoded"}
    span.tool("read", 1, 2, call_id=call_id, fields=bare, more={"scope_name": "a"})
    span.tool("read", 1, 2, call_id=call_id, id="A-1", more={"scope_name": "b"})
    [only] = calls(build("c", span.readings))
    assert only.arguments == {"id": "A-1"}


def test_two_scopes_with_other_arguments_and_no_id_saw_two_calls() -> None:
    span = Spans()
    span.tool("read", 1, 2, id="A-1", more={"scope_name": "a"})
    span.tool("read", 1, 2, id="A-2", more={"scope_name": "b"})
    assert len(calls(build("c", span.readings))) == 2


def test_very_short_spans_of_two_scopes_are_one_when_they_begin_together() -> None:
    span = Spans()
    span.tool("read", 1, 1.001, id="A", more={"scope_name": "a"})
    span.tool("read", 1.002, 1.003, id="A", more={"scope_name": "b"})
    span.tool("read", 1.5, 1.501, id="A", more={"scope_name": "b"})
    assert [len(c.span_ids) for c in calls(build("c", span.readings))] == [2, 1]


def test_model_spans_of_two_instrumentations_say_it_once() -> None:
    one, two = Spans("one", scope_name="a"), Spans("two", scope_name="b", dialect="openinference")
    hi, ask, answer = user("hi"), assistant(call("read", "c1", id="A")), response({"v": 1}, "c1")
    for span in (one, two):
        root = span.agent(0, 9)
        span.model([hi], [ask], 0, 1, parent=root)
        span.tool("read", 1, 2, parent=root, call_id="c1", id="A", result={"v": 1})
        span.model([hi, ask, answer], [assistant("It is 1.")], 2, 3, parent=root)
    timeline = build("c", one.readings + two.readings)
    assert len(calls(timeline)) == 1
    assert [m.text for m in said(timeline)] == ["", "It is 1."]


def test_a_bare_argument_gets_the_name_of_the_only_property() -> None:
    span = Spans()
    span.model([user("hi")], [assistant("ok")], 0, 1, tools=[definition("read", order_id="string")])
    span.tool("read", 1, 2, fields={"arguments": "A-1", "arguments_fidelity": "decoded"})
    [only] = calls(build("c", span.readings))
    assert only.arguments == {"order_id": "A-1"}
    assert only.arguments_fidelity == "decoded"


def test_a_bare_argument_stays_bare_when_the_tool_has_two_properties() -> None:
    span = Spans()
    span.model([user("hi")], [assistant("ok")], 0, 1, tools=[definition("read", order_id="string", page="integer")])
    span.tool("read", 1, 2, fields={"arguments": "A-1", "arguments_fidelity": "decoded"})
    assert calls(build("c", span.readings))[0].arguments == "A-1"


def test_http_spans_under_a_call_are_its_evidence_in_order() -> None:
    span = Spans()
    outer = span.tool("upload", 0, 60, name="x")
    inner = span.other("session", 0, 60, parent=outer)
    span.http("POST", 30.5, 52, inner, status_code=200, resend_count=1, idempotency_key="k1")
    span.http("POST", 0, 30, inner, error_type="timeout")
    [only] = calls(build("c", span.readings))
    assert [(h.error_type, h.status_code) for h in only.http] == [("timeout", None), (None, 200)]
    assert only.idempotency_key == "k1"
