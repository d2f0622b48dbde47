"""The short notation: which events stand for which maps."""

from __future__ import annotations

from typing import Any

import pytest

from otelmon.rules.notation import KINDS, kind_of, steps_of
from otelmon.vocabulary.canonical import sha256
from otelmon.vocabulary.event import (
    AssistantMessage,
    ContextMessage,
    RunEnd,
    SystemMessage,
    ToolCall,
    ToolDefinition,
    UserMessage,
)
from otelmon.vocabulary.reading import Approval, HttpFields, RequestedCall
from tests.rules.helpers import case, scene, view


def test_every_kind_of_event() -> None:
    seen = view(
        {"system": "be kind"},
        {"define": {"name": "pay", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}},
        {"user": "pay 5"},
        {"context": "a ticket"},
        {"assistant": "I will", "calls": [{"tool": "pay", "args": {"n": 5}, "id": "c1"}]},
        {"tool": "pay", "args": {"n": 5}, "result": {"ok": True}, "id": "c1"},
        {"assistant": "paid"},
    )
    kinds = [type(e) for e in seen.events]
    assert kinds == [
        SystemMessage, ToolDefinition, UserMessage, ContextMessage, AssistantMessage, ToolCall, AssistantMessage, RunEnd,
    ]  # fmt: skip
    definition, asked, call, last = seen.events[1], seen.events[4], seen.events[5], seen.events[6]
    assert isinstance(definition, ToolDefinition)
    assert definition.schema_hash == sha256({"type": "object"})
    assert definition.annotations is not None
    assert definition.annotations.read_only_hint
    assert isinstance(asked, AssistantMessage)
    assert asked.requests == (RequestedCall("pay", "c1", {"n": 5}),)
    assert not asked.final
    assert isinstance(last, AssistantMessage)
    assert last.final
    assert isinstance(call, ToolCall)
    assert (call.arguments, call.arguments_text, call.result, call.result_text) == (
        {"n": 5},
        '{"n":5}',
        {"ok": True},
        '{"ok":true}',
    )
    assert call.arguments_hash == sha256({"n": 5})
    assert (call.outcome, call.turn, call.tool_call_id) == ("succeeded", 1, "c1")
    assert [e.position for e in seen.events] == list(range(8))


def test_a_message_before_the_last_call_is_not_final() -> None:
    seen = view({"assistant": "I am on it"}, {"tool": "pay"})
    assert seen.final_message(seen.runs[0].run_id) is None


@pytest.mark.parametrize(
    ("step", "facts"),
    [
        ({"error": "boom"}, {"outcome": "failed", "error_type": "error", "error_message": "boom", "result_text": "boom"}),
        ({"error": "boom", "outcome": "unknown", "error_type": "timeout"}, {"outcome": "unknown", "error_type": "timeout"}),
        ({"outcome": "denied"}, {"outcome": "denied", "error_type": None}),
        ({"args": "{broken"}, {"arguments": None, "arguments_text": "{broken"}),
        ({"args": {"a": 1}, "fidelity": "hashed"}, {"arguments": None, "arguments_text": None, "arguments_hash": sha256({"a": 1})}),
        ({"args": {"a": 1}, "fidelity": "absent"}, {"arguments": None, "arguments_hash": ""}),
        ({"result": "text", "result_fidelity": "absent"}, {"result": None, "result_text": None}),
        ({"result": "text"}, {"result": "text", "result_text": "text"}),
        ({}, {"arguments": {}, "result": None, "result_text": None, "result_fidelity": "exact"}),
        ({"approval": "approved"}, {"approval": Approval("approved")}),
        ({"approval": {"decision": "rejected", "by": "ann"}}, {"approval": Approval("rejected", by="ann")}),
        ({"http": [{"method": "POST", "resend_count": 1}]}, {"http": (HttpFields("POST", resend_count=1),)}),
        ({"key": "k", "attempt": 2, "retry_of": "c0"}, {"idempotency_key": "k", "attempt": 2, "retry_of": "c0"}),
        ({"effect": "write", "server": "shop"}, {"effect_hint": "write", "server": "shop"}),
        ({"agent": "a", "host": "h", "trigger": "t"}, {"agent_name": "a", "host": "h", "trigger": "t"}),
        ({"environment": "prod", "service": "s", "namespace": "n"}, {"environment": "prod", "service_name": "s", "service_namespace": "n"}),
        ({"nested_calls": 0}, {"nested_calls": 0}),
    ],
)  # fmt: skip
def test_what_a_tool_event_can_say(step: dict[str, Any], facts: dict[str, Any]) -> None:
    (call,) = view({"tool": "pay", **step}).calls
    assert {name: getattr(call, name) for name in facts} == facts


def test_a_derived_call_has_another_kind_of_key() -> None:
    one, two = view({"tool": "pay"}, {"tool": "pay", "derived": True}).calls
    assert one.key == f"{one.trace_id}:{one.span_id}"
    assert two.key.startswith("derived:")
    assert two.derived


def test_time_goes_on_by_a_second_or_as_said() -> None:
    one, two, three = view({"tool": "a"}, {"tool": "b"}, {"tool": "c", "after": 30, "took": 2}).calls
    assert two.start_time_unix_nano - one.start_time_unix_nano == 1_000_000_000
    assert three.start_time_unix_nano - two.start_time_unix_nano == 30_000_000_000
    assert three.end_time_unix_nano - three.start_time_unix_nano == 2_000_000_000


def test_repeat_writes_an_event_out_with_its_pause_but_starts_one_run_only() -> None:
    seen = view({"tool": "a"}, {"tool": "b", "repeat": 3, "after": 5, "trace": "new"})
    assert [c.tool_name for c in seen.calls] == ["a", "b", "b", "b"]
    assert len(seen.runs) == 2
    assert seen.calls[3].start_time_unix_nano - seen.calls[2].start_time_unix_nano == 5_000_000_000


def test_runs_traces_and_conversations() -> None:
    built = scene(
        {"user": "one"},
        {"user": "two", "run": "new"},
        {"user": "three", "trace": "new"},
        {"user": "elsewhere", "conversation": "other"},
        {"tool": "a"},
        {"user": "back", "conversation": "main"},
    )
    main, other = built.views
    assert (main.conversation_id, other.conversation_id) == ("conversation-main", "conversation-other")
    assert len(main.runs) == 3
    assert len({r.trace_id for r in main.runs}) == 2
    assert len({r.run_id for r in [*main.runs, *other.runs]}) == 4
    assert [m.turn for m in main.user_messages()] == [1, 2, 3, 4]
    assert [m.text for m in main.user_messages()] == ["one", "two", "three", "back"]
    assert main.runs[0].trace_id == main.runs[1].trace_id
    assert len(other.calls) == 1


def test_facts_said_in_a_run_hold_for_all_of_it() -> None:
    seen = view({"tool": "a"}, {"tool": "b", "environment": "prod", "agent": "x"}, {"tool": "c", "trace": "new"})
    assert [c.environment for c in seen.calls] == ["prod", "prod", ""]
    assert [r.agent_name for r in seen.runs] == ["x", None]


def test_batches() -> None:
    seen = view(
        {"tool": "a"},
        {"tool": "b"},
        {"tool": "c", "parallel": True},
        {"assistant": "", "calls": [{"tool": "d"}, {"tool": "e"}]},
        {"tool": "d"},
        {"tool": "e"},
        {"tool": "f"},
    )
    assert [c.batch for c in seen.calls] == [1, 2, 2, 3, 3, 4]


def test_without_content_only_names_times_and_outcomes_are_left() -> None:
    seen = view({"user": "x"}, {"tool": "pay", "args": {"n": 5}, "result": "ok"}, {"assistant": "done"}, content="off")
    assert [type(e) for e in seen.events] == [ToolCall, RunEnd]
    (call,) = seen.calls
    assert (call.arguments, call.result, call.arguments_fidelity, call.result_fidelity) == (
        None,
        None,
        "absent",
        "absent",
    )
    assert seen.runs[0].gaps == ("content_off",)


def test_an_open_run_has_no_end() -> None:
    seen = view({"tool": "a"}, {"tool": "b", "trace": "new"}, closed=False, gaps=["sampled"])
    assert [r.closed for r in seen.runs] == ["root", None]
    assert [type(e) for e in seen.events] == [ToolCall, RunEnd, ToolCall]
    assert seen.runs[1].gaps == ("sampled",)


def test_positions_are_those_of_the_written_out_list() -> None:
    built = scene({"user": "x"}, {"tool": "a", "repeat": 2}, {"assistant": "y"})
    (seen,) = built.views
    spans = [e.span_id for e in seen.events[:4]]
    assert [built.positions[s] for s in spans] == [1, 2, 3, 4]
    assert built.positions[seen.runs[0].run_id.split(":")[1]] == 4


@pytest.mark.parametrize("step", [{}, {"tool": "a", "user": "b"}, {"after": 1}])
def test_an_event_is_of_one_kind(step: dict[str, Any]) -> None:
    assert kind_of(step) is None
    with pytest.raises(ValueError, match="not one event"):
        steps_of(case([step]))


def test_every_kind_word_names_its_own_kind() -> None:
    assert {word: kind_of({word: "x"}) for word in KINDS} == KINDS
