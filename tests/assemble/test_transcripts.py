"""Chat transcripts become readings that name every message once, in order, with stable ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otelmon.assemble.transcripts import EPOCH_NANO, STEP_NANO, is_transcript, read_transcript
from otelmon.vocabulary.reading import Message, Reading
from tests.assemble.dialect_spans import all_messages, converted, converter

ASK = {"role": "user", "content": "refund A-1"}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "name": "refund", "arguments": {"id": "A-1"}}],
}
DONE = {"role": "tool", "tool_call_id": "c1", "name": "refund", "content": '{"ok": true}'}
SAID = {"role": "assistant", "content": "Done."}
TOOLS = [
    {"name": "refund", "description": "d", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": False}}
]


def record(*messages: dict[str, Any], **extra: Any) -> dict[str, Any]:
    return {"id": "r1", "tools": TOOLS, "messages": list(messages)} | extra


def sequence(readings: list[Reading]) -> list[Message]:
    """The messages of the last model reading: the whole history and the answer."""
    known = all_messages(readings)
    last = [r for r in readings if r.kind == "model"][-1]
    return [known[digest] for digest in last.input + last.output]


def test_a_turn_is_an_agent_with_a_model_reading_for_each_answer() -> None:
    readings = read_transcript(record(ASK, CALL, DONE, SAID, agent="shop", user="u-1", model="m"), 5)
    root, first, second = readings
    assert [r.kind for r in readings] == ["agent", "model", "model"]
    assert first.parent_span_id == second.parent_span_id == root.span_id
    assert {r.trace_id for r in readings} == {root.trace_id}
    assert len({r.span_id for r in readings}) == 3
    assert (root.conversation_id, root.agent_name, root.principal, root.model) == ("r1", "shop", "u-1", "m")
    assert second.input == first.input + first.output + second.input[-1:]
    assert [m.role for m in sequence(readings)] == ["user", "assistant", "tool", "assistant"]
    assert [len(r.messages) for r in readings] == [0, 2, 2]
    assert all(r.history_complete for r in (first, second))
    assert root.start_time_unix_nano <= first.start_time_unix_nano
    assert root.end_time_unix_nano == second.end_time_unix_nano
    (definition,) = first.definitions
    assert definition.name == "refund"
    assert definition.annotations is not None
    assert definition.annotations.read_only_hint is False


def test_ids_come_from_the_record_alone() -> None:
    one, same = (read_transcript(record(ASK, SAID), 5) for _ in range(2))
    other = read_transcript(record(ASK, SAID) | {"id": "r2"}, 5)
    assert one == same
    assert not {r.span_id for r in one} & {r.span_id for r in other}
    assert one[0].trace_id != other[0].trace_id
    assert len(one[0].trace_id) == 32
    assert len(one[0].span_id) == 16


@pytest.mark.parametrize(
    "call",
    [
        {"id": "c1", "name": "refund", "arguments": {"id": "A-1"}},
        {"id": "c1", "name": "refund", "arguments": '{"id": "A-1"}'},
        {"id": "c1", "type": "function", "function": {"name": "refund", "arguments": '{"id": "A-1"}'}},
    ],
)
def test_calls_are_read_in_every_shape(call: dict[str, Any]) -> None:
    (request,) = sequence(read_transcript(record(ASK, CALL | {"tool_calls": [call]}), 5))[-1].requests
    assert (request.tool_name, request.tool_call_id, request.arguments) == ("refund", "c1", {"id": "A-1"})
    assert request.fidelity == "exact"


@pytest.mark.parametrize(
    ("change", "text", "is_error"),
    [
        ({}, '{"ok": true}', None),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "a\nb", None),
        ({"content": {"ok": True}}, '{"ok":true}', None),
        ({"is_error": True}, '{"ok": true}', True),
        ({"error": True}, '{"ok": true}', True),
        ({"error": "no such order", "content": ""}, "no such order", True),
        ({"content": None}, "", None),
        ({"error": False}, '{"ok": true}', None),
    ],
)
def test_results_are_read_in_every_shape(change: dict[str, Any], text: str, is_error: bool | None) -> None:
    (response,) = sequence(read_transcript(record(ASK, CALL, DONE | change, SAID), 5))[2].responses
    assert (response.text, response.is_error, response.tool_call_id) == (text, is_error, "c1")


def test_a_call_id_may_repeat() -> None:
    readings = read_transcript(record(ASK, CALL, DONE, CALL, DONE, SAID), 5)
    told = sequence(readings)
    assert [bool(m.requests) for m in told] == [False, True, False, True, False, False]
    assert told[1].digest == told[3].digest


def test_the_users_own_tools_are_context() -> None:
    device = {"role": "user", "content": None, "tool_calls": [{"id": "u1", "name": "reboot", "arguments": {}}]}
    result = {"role": "tool", "tool_call_id": "u1", "requestor": "user", "content": "rebooted A-77"}
    readings = read_transcript(record(ASK, SAID, device, result, ASK, SAID), 5)
    told = sequence(readings)
    assert not any(m.requests for m in told)
    assert [r.text for m in told for r in m.responses] == ["rebooted A-77"]
    nameless = {"role": "tool", "requestor": "user", "content": "rebooted A-77"}
    assert not any(m.responses for m in sequence(read_transcript(record(ASK, CALL, nameless, SAID), 5)))
    # What the user does beside talking is one turn with what they say.
    assert [r.kind for r in readings].count("agent") == 2


def test_what_the_user_says_with_their_own_call_is_kept() -> None:
    device = {"role": "user", "content": "one moment", "tool_calls": [{"id": "u1", "name": "reboot", "arguments": {}}]}
    assert [m.text for m in sequence(read_transcript(record(device, SAID), 5))] == ["one moment", "Done."]


def test_the_end_without_an_answer_is_told() -> None:
    told = sequence(read_transcript(record(ASK, CALL, DONE), 5))
    assert [m.role for m in told] == ["user", "assistant", "tool"]
    assert [m.role for m in sequence(read_transcript(record(ASK), 5))] == ["user"]
    assert read_transcript(record(), 5) == []


def test_times_are_taken_when_given_and_never_go_back() -> None:
    given_times: list[dict[str, Any]] = [
        ASK | {"timestamp": "2026-01-05T09:00:00Z"},
        CALL | {"timestamp": "2026-01-05T09:00:02.500000"},
        DONE | {"timestamp": "2026-01-05T08:00:00Z"},
        SAID | {"timestamp": 1_767_603_700},
    ]
    root, first, second = read_transcript(record(*given_times), 5)
    assert root.start_time_unix_nano == 1_767_603_600 * STEP_NANO
    assert first.end_time_unix_nano == first.start_time_unix_nano + 2_500_000_000
    assert second.start_time_unix_nano == first.end_time_unix_nano
    assert second.end_time_unix_nano == 1_767_603_700 * STEP_NANO
    assert read_transcript(record(ASK, SAID), 5)[0].start_time_unix_nano == EPOCH_NANO + STEP_NANO


@pytest.mark.parametrize("time", ["soon", "", True, None, -1, [], {}, 1e30])
def test_bad_times_count_as_none(time: Any) -> None:
    assert read_transcript(record(ASK | {"timestamp": time}), 5)[0].start_time_unix_nano == EPOCH_NANO + STEP_NANO


def test_what_is_a_transcript() -> None:
    assert is_transcript(record())
    others: list[Any] = [{}, [], None, {"id": 1}, {"messages": []}, {"id": "x", "messages": {}}]
    assert not any(map(is_transcript, others))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = ["role", "content", "tool_calls", "tool_call_id", "name", "error", "is_error", "requestor", "timestamp", "parts"]
ROLES = st.sampled_from(["user", "assistant", "tool", "system"])
ANY_MESSAGE = ANYTHING | st.builds(
    lambda fields, role: fields | {"role": role}, st.dictionaries(st.sampled_from(KEYS), ANYTHING), ROLES | ANYTHING
)


@given(st.lists(ANY_MESSAGE, max_size=5), ANYTHING)
def test_any_record_is_read(messages: list[Any], tools: Any) -> None:
    readings = read_transcript({"id": "x", "messages": messages, "tools": tools}, 1)
    known = all_messages(readings)
    assert all(digest in known for r in readings for digest in r.input + r.output)


@pytest.mark.data
def test_a_transcript_tells_what_its_spans_tell(shared: Path) -> None:
    """The same record as a transcript and as one trace of GenAI spans: the same messages in order."""
    module = converter(shared)
    lines = (shared / "incidents" / "cases.jsonl").read_text().splitlines()
    compared = 0
    for raw in (record for record in map(json.loads, lines) if record.get("messages")):
        plain = raw["messages"][-1]["role"] == "assistant" and not any(
            raw.get(key) for key in ("related_traces", "child_spans", "ended", "tools_later")
        )
        if plain:
            spans = converted(module, raw, one_trace=True)
            models = [r for r in spans if r.kind == "model"]
            told = [(r.input, r.output) for r in read_transcript(raw, 1) if r.kind == "model"]
            assert told == [(r.input, r.output) for r in models], raw["id"]
            compared += 1
    assert compared > 20
