"""Instrumentations that were measured and of which there is no sample to read: their spans, written by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otelmon.vocabulary.event import Timeline, ToolCall
from otelmon.vocabulary.reading import Reading
from otelmon.vocabulary.span import Scope, SpanEvent
from tests.assemble.builders import calls
from tests.assemble.dialect_spans import all_messages, read
from tests.assemble.test_quirks import trace
from tests.assemble.test_timeline_data import conversations

ORDER = {"order_id": "A-1"}
WIRE = json.dumps(ORDER)


def only(readings: list[Reading]) -> tuple[Timeline, list[ToolCall]]:
    """The one conversation and its calls."""
    [timeline] = conversations(readings)
    return timeline, calls(timeline)


# -- Agno: text results, an error only in the output ------------------------------------------------
AGNO = Scope("openinference.instrumentation.agno", "1.0.15")


def agno(output: str, status: int) -> ToolCall:
    attributes = {
        "openinference.span.kind": "TOOL", "tool.name": "get_order", "tool.parameters": WIRE,
        "input.value": WIRE, "input.mime_type": "application/json", "output.value": output,
    }  # fmt: skip
    root = {"openinference.span.kind": "AGENT", "session.id": "conv", "input.value": "Get A-1", "output.value": "Done."}
    timeline, [call] = only(
        trace(
            {"id": 1, "name": "Agent.run", "scope": AGNO, "end": 9, "attributes": root},
            {"id": 2, "parent": 1, "name": "get_order", "scope": AGNO, "status_code": status, "attributes": attributes},
        )
    )
    assert timeline.conversation_id == "conv"
    return call


def test_a_result_of_agno_is_a_python_repr() -> None:
    call = agno("{'order_id': 'A-1', 'total': 42.5, 'paid': True, 'note': None}", 1)
    assert call.result == {"order_id": "A-1", "total": 42.5, "paid": True, "note": None}
    assert (call.arguments, call.outcome) == (ORDER, "succeeded")


@pytest.mark.parametrize(
    ("said", "outcome", "error_type"),
    [
        ("inventory backend exploded: 503", "failed", "tool_error"),
        ("tracking API did not answer in 0.05 s", "unknown", "timeout"),
        ("", "unknown", None),
    ],
)
def test_an_error_of_agno_is_known_by_its_output_alone(said: str, outcome: str, error_type: str | None) -> None:
    call = agno(said, 2)
    assert (call.outcome, call.error_type, call.result) == (outcome, error_type, None)


def test_a_model_span_of_agno_has_its_answer_in_the_response_of_the_api() -> None:
    message = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "get_order", "arguments": WIRE}}]}  # fmt: skip
    found = read(
        {
            "openinference.span.kind": "LLM", "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": "Get A-1",
            "output.value": json.dumps({"id": "x", "choices": [{"index": 0, "message": message}]}),
        }
    )  # fmt: skip
    [left] = [all_messages([found])[digest] for digest in found.output]
    assert [(r.tool_name, r.tool_call_id, r.arguments) for r in left.requests] == [("get_order", "c1", ORDER)]


@pytest.mark.parametrize("prompts", ['["Get A-1"]', "Get A-1"])
def test_a_completion_that_is_no_chat_is_a_call_of_a_model(prompts: str) -> None:
    found = read(
        {"openinference.span.kind": "LLM", "llm.prompts": prompts, "input.value": "{}", "output.value": "Here."}
    )
    messages = all_messages([found])
    assert found.kind == "model"
    assert [(messages[d].role, messages[d].text) for d in found.input + found.output] == [("user", "Get A-1"), ("assistant", "Here.")]  # fmt: skip


# -- OpenLLMetry's MCP: the tool twice, under a session that outlives the run -----------------------
MCP = Scope("opentelemetry.instrumentation.mcp", "0.62.4")
TIMEOUT = SpanEvent(
    "exception", 1, {"exception.type": "McpError", "exception.message": "Timed out while waiting for response"}
)


def mcp(number: int, parent: int, name: str, kind: str, at: int, end: int, **more: Any) -> dict[str, Any]:
    attributes = {"traceloop.span.kind": kind, "traceloop.entity.name": name.removesuffix(".tool")}
    given = json.dumps({"tool_name": attributes["traceloop.entity.name"], "arguments": ORDER})
    if kind == "tool":
        attributes["traceloop.entity.input"] = given
    attributes |= more.pop("attributes", {})
    return {"id": number, "parent": parent, "name": name, "scope": MCP, "at": at, "end": end, "attributes": attributes, **more}  # fmt: skip


def both(name: str, at: int, client: dict[str, Any], server: dict[str, Any], late: int = 0) -> list[dict[str, Any]]:
    """A call as client and server tell it; `late`: how long the server went on after its client left."""
    return [
        mcp(at, 1, f"{name}.tool", "tool", at, at + 8, **client),
        mcp(at + 1, at, "mcp.server", "server", at + 1, at + 7 + late),
        mcp(at + 2, at + 1, f"{name}.tool", "tool", at + 2, at + 6 + late, **server),
    ]


def output(value: Any) -> dict[str, Any]:
    return {"attributes": {"traceloop.entity.output": json.dumps(value)}}


def failed(value: Any, kind: str, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = output(value) if value is not None else {"attributes": {}}
    found["attributes"]["error.type"] = kind
    return {**found, "status_code": 2, **more}


def test_client_and_server_of_openllmetry_mcp_are_one_call_each() -> None:
    text = json.dumps({"total": 42.5})
    spans = [
        mcp(1, 0, "mcp.client.session", "session", 1, 99),
        *both("get_order", 10, output({"result": text}), output([{"type": "text", "text": text}])),
        *both("cancel_order", 20, failed({"result": "exploded: 503", "is_error": True}, "tool_error"), failed(None, "ToolError", status_message="exploded: 503")),
        *both("track_shipment", 30, failed(None, "McpError", events=(TIMEOUT,)), output([{"type": "text", "text": text}]), late=40),
    ]  # fmt: skip
    _, found = only(trace(*spans))
    assert [(c.tool_name, c.arguments, c.outcome, len(c.span_ids)) for c in found] == [
        ("get_order", ORDER, "succeeded", 2),
        ("cancel_order", ORDER, "failed", 2),
        ("track_shipment", ORDER, "unknown", 2),  # its server went on: nobody was told what became of it
    ]
    assert found[0].result == {"total": 42.5}
