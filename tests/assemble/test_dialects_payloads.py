"""Requests and answers of the model APIs, questions and answers of runs, in every shape."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otelmon.assemble.dialects import _events, _payloads
from otelmon.assemble.dialects._messages import from_item
from otelmon.vocabulary.reading import Message

CALL = {"id": "c1", "type": "function", "function": {"name": "refund", "arguments": '{"id": "A-1"}'}}
REQUESTED = ("assistant", "", ("refund", "c1", {"id": "A-1"}))
RESULT = ("tool", "ok", None)


def constructor(kind: str, **kwargs: Any) -> dict[str, Any]:
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", kind], "kwargs": kwargs}


def told(items: list[Any]) -> list[tuple[str, str, Any]]:
    return [_told(message) for item in items for message in from_item(item)]


def _told(message: Message) -> tuple[str, str, Any]:
    text = message.responses[0].text if message.responses else message.text
    asked = message.requests[0] if message.requests else None
    return (message.role, text, (asked.tool_name, asked.tool_call_id, asked.arguments) if asked else None)


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ("hi", [("user", "hi", None)]),
        ("", []),
        (7, []),
        ({"model": "m"}, []),
        ({"role": "user", "content": "hi"}, [("user", "hi", None)]),
        ({"messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi"}]}, [("system", "Be kind.", None), ("user", "hi", None)]),
        ({"system": "Be kind.", "messages": [["user", "hi"]]}, [("system", "Be kind.", None), ("user", "hi", None)]),
        ({"messages": [[constructor("HumanMessage", content="hi"), constructor("ToolMessage", content="ok", tool_call_id="c1")]]}, [("user", "hi", None), RESULT]),
        ({"instructions": "Be kind.", "input": "hi"}, [("system", "Be kind.", None), ("user", "hi", None)]),
        (
            {"input": [
                {"role": "user", "content": "hi"},
                {"type": "reasoning", "summary": []},
                {"type": "function_call", "call_id": "c1", "name": "refund", "arguments": '{"id": "A-1"}'},
                {"type": "function_call_output", "call_id": "c1", "output": "ok"},
            ]},
            [("user", "hi", None), REQUESTED, RESULT],
        ),
    ],
)  # fmt: skip
def test_what_a_request_gave_to_the_model(request_: Any, expected: list[Any]) -> None:
    assert told(_payloads.entered(request_)) == expected


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("Done.", [("assistant", "Done.", None)]),
        ("", []),
        (None, []),
        ({}, []),
        ({"role": "assistant", "content": "Done."}, [("assistant", "Done.", None)]),
        ({"content": "Done.", "tool_calls": None}, [("assistant", "Done.", None)]),
        ({"choices": [{"message": {"content": "Done."}}, 1, {"message": None}]}, [("assistant", "Done.", None)]),
        ({"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [CALL]}}]}, [REQUESTED]),
        ({"generations": [[{"text": "Done."}]]}, [("assistant", "Done.", None)]),
        ({"generations": [[{"text": "", "message": constructor("AIMessage", content="Done.")}]]}, [("assistant", "Done.", None)]),
        ({"message": {"content": "Done.", "role": "assistant"}, "usage": {}}, [("assistant", "Done.", None)]),
        ({"output": [{"type": "function_call", "call_id": "c1", "name": "refund", "arguments": '{"id": "A-1"}'}]}, [REQUESTED]),
        ({"output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}]}, [("assistant", "Done.", None)]),
        (["Done."], [("assistant", "Done.", None)]),
    ],
)  # fmt: skip
def test_what_the_model_answered(response: Any, expected: list[Any]) -> None:
    assert told(_payloads.left(response)) == expected


def test_calls_of_one_answer_stay_one_message() -> None:
    calls = [{"type": "function_call", "call_id": c, "name": "refund", "arguments": "{}"} for c in ("c1", "c2")]
    (message,) = [m for item in _payloads.left({"output": calls}) for m in from_item(item)]
    assert [r.tool_call_id for r in message.requests] == ["c1", "c2"]


def test_a_payload_nested_without_end_is_nothing() -> None:
    deep: Any = "hi"
    for _ in range(50):
        deep = {"messages": deep, "output": deep}
    assert _payloads.entered(deep) == _payloads.left(deep) == []


SAID = [{"role": "user", "content": "first"}, {"role": "assistant", "content": "Yes?"}, {"role": "user", "content": "hi"}]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("hi", ["hi"]),
        ("", []),
        (None, []),
        ({"messages": SAID}, ["hi"]),
        (json.dumps({"messages": SAID}), ["hi"]),
        (SAID, ["hi"]),
        ({"inputs": {"question": "hi"}}, ["hi"]),
        ({"args": ["hi", [1]], "kwargs": {}}, ["hi"]),
        ({"args": [], "kwargs": {"p": "hi", "n": 1}}, ["hi"]),
        ({"args": ["hi", "you"], "kwargs": {}}, []),
        ({"p": "hi"}, ["hi"]),
        ({"question": "hi", "language": "en"}, ["hi"]),
        ({"one": "hi", "other": "you"}, []),
        ({"conversation": SAID}, ["hi"]),
    ],
)
def test_what_a_run_was_asked(value: Any, expected: list[str]) -> None:
    assert [(m.role, m.text) for m in _payloads.question(value)] == [("user", text) for text in expected]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Done.", ["Done."]),
        ("", []),
        (None, []),
        ({}, []),
        ({"messages": [*SAID, {"role": "assistant", "content": "Done."}]}, ["Done."]),
        (json.dumps([*SAID, {"role": "assistant", "content": "Done."}]), ["Done."]),
        ({"choices": [{"message": {"content": "Done."}}]}, ["Done."]),
        ({"output": "Done.", "steps": 3}, ["Done."]),
        ({"refunded": True}, ['{"refunded":true}']),
        ([1, 2], []),
    ],
)
def test_what_a_run_answered(value: Any, expected: list[str]) -> None:
    assert [(m.role, m.text) for m in _payloads.answer(value)] == [("assistant", text) for text in expected]


def test_events_without_a_choice_end_in_what_the_assistant_said() -> None:
    named = [
        ("gen_ai.user.message", {"content": "hi"}),
        ("gen_ai.assistant.message", {"content": "Done."}),
        ("exception", {"content": "no message"}),
    ]
    entered, left = _events.split(named)
    assert (told(entered), told(left)) == ([("user", "hi", None)], [("assistant", "Done.", None)])


@pytest.mark.parametrize(
    "body",
    [
        {"message": "Done.", "finish_reason": "stop"},
        {"content": "Done."},
        {"message": {"role": "assistant", "content": "Done."}},
        {"message": '{"role": "assistant", "content": "Done."}'},
        {"message": '[{"text": "Done."}]'},
    ],
)
def test_a_choice_is_an_answer_in_every_shape(body: dict[str, Any]) -> None:
    assert told([_events.item("gen_ai.choice", body)]) == [("assistant", "Done.", None)]


def test_text_that_looks_like_json_stays_the_result_of_a_tool() -> None:
    (item,), _ = _events.split([("gen_ai.tool.message", {"id": "c1", "content": '{"total": 2}'})])
    assert told([item]) == [("tool", '{"total": 2}', None)]


def test_a_call_asked_for_in_an_event_has_its_arguments() -> None:
    body = {"tool_calls": json.dumps([CALL])}
    _, left = _events.split([("gen_ai.assistant.message", body)])
    assert told(left) == [REQUESTED]


def test_a_list_of_events_may_be_anything_else() -> None:
    assert _events.listed("nonsense") == _events.listed(None) == _events.listed('{"a": 1}') == []
    assert _events.listed('[1, {"event.name": "x"}]') == [("x", {"event.name": "x"})]


@pytest.mark.parametrize("message", [{"role": "assistant", "tool_calls": [CALL]}, {"tool_calls": [CALL]}])
def test_a_choice_may_ask_for_calls(message: dict[str, Any]) -> None:
    assert told([_events.item("gen_ai.choice", {"index": 0, "message": message})]) == [REQUESTED]
    assert told([_events.item("gen_ai.choice", {"message": "", "tool_calls": json.dumps([CALL])})]) == [REQUESTED]


def test_only_the_name_in_a_tool_s_event_is_that_of_a_tool() -> None:
    (item,), _ = _events.split([("gen_ai.tool.message", {"id": "c1", "name": "refund", "content": "ok"})])
    (message,) = from_item(item)
    assert message.responses[0].tool_name == "refund"
    (asked,), _ = _events.split([("gen_ai.user.message", {"name": "Ann", "content": "hi"})])
    assert asked["name"] is None
