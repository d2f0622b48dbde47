"""The quirks of each dialect, one by one, on spans made by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otelmon.assemble.dialects._definitions import definitions
from otelmon.assemble.dialects._messages import from_item, role_of
from otelmon.assemble.outcome import derive_outcome
from otelmon.vocabulary.reading import Approval, Message, Reading
from otelmon.vocabulary.span import Scope, SpanEvent
from tests.assemble.dialect_spans import all_messages, exception, read, tool

GENAI = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "refund"}
CHAT = {"gen_ai.operation.name": "chat"}
OI = {"openinference.span.kind": "TOOL", "tool.name": "refund"}
LLMETRY = {"traceloop.span.kind": "tool", "traceloop.entity.name": "refund"}
VERCEL = {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "refund"}
MCP = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "refund"}
ARGUMENTS = {"order_id": "ORD-1", "amount": 42.5}
WIRE = json.dumps(ARGUMENTS)
PYTHON = "{'order_id': 'ORD-1', 'amount': 42.5}"


def told(reading: Reading) -> tuple[list[Message], list[Message]]:
    """(input, output) messages of a reading."""
    known = all_messages([reading])
    return [known[d] for d in reading.input], [known[d] for d in reading.output]


# ---------------------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    ("attributes", "fidelity"),
    [
        (GENAI | {"gen_ai.tool.call.arguments": WIRE}, "exact"),
        (GENAI | {"gen_ai.tool.call.arguments": ARGUMENTS}, "exact"),
        (GENAI | {"tool_arguments": WIRE}, "exact"),
        (OI | {"input.value": WIRE, "input.mime_type": "application/json"}, "exact"),
        (OI | {"input.value": PYTHON}, "decoded"),
        (OI | {"input.value": json.dumps({"kwargs": ARGUMENTS})}, "decoded"),
        (OI | {"input.value": json.dumps({"args": [], "sanitize_inputs_outputs": True, "kwargs": ARGUMENTS})}, "decoded"),
        (OI | {"tool.parameters": WIRE}, "decoded"),
        (LLMETRY | {"traceloop.entity.input": json.dumps({"args": [], "kwargs": ARGUMENTS})}, "decoded"),
        (LLMETRY | {"traceloop.entity.input": json.dumps({"args": [ARGUMENTS], "kwargs": {}})}, "decoded"),
        (LLMETRY | {"traceloop.entity.input": json.dumps({"tool_name": "refund", "arguments": ARGUMENTS})}, "decoded"),
        (LLMETRY | {"gen_ai.tool.call.arguments": json.dumps({"input_str": PYTHON, "inputs": ARGUMENTS, "tags": []})}, "decoded"),
        (LLMETRY | {"gen_ai.tool.call.arguments": json.dumps({"input_str": PYTHON, "inputs": None, "kwargs": {}})}, "decoded"),
        (VERCEL | {"ai.toolCall.args": WIRE}, "exact"),
        (MCP | {"gen_ai.tool.call.arguments": WIRE}, "exact"),
    ],
)  # fmt: skip
def test_arguments_are_found_and_unwrapped(attributes: dict[str, Any], fidelity: str) -> None:
    found = tool(attributes)
    assert (found.name, found.arguments, found.arguments_fidelity) == ("refund", ARGUMENTS, fidelity)
    assert found.arguments_text is None


TWICE = json.dumps(WIRE)


@pytest.mark.parametrize(
    "attributes",
    [
        GENAI | {"gen_ai.tool.call.arguments": TWICE},
        OI | {"input.value": TWICE, "input.mime_type": "application/json"},
        LLMETRY | {"traceloop.entity.input": json.dumps({"args": [TWICE], "kwargs": {}})},
    ],
)
def test_what_the_model_encoded_twice_is_repaired_and_shown(attributes: dict[str, Any]) -> None:
    found = tool(attributes)
    assert (found.arguments, found.arguments_text, found.arguments_fidelity) == (ARGUMENTS, TWICE, "repaired")


BROKEN = '{"order_id": "ORD-1", "amount": 42.5'


@pytest.mark.parametrize(
    "attributes",
    [
        GENAI | {"gen_ai.tool.call.arguments": BROKEN, "gen_ai.tool.description": "long " * 20},
        OI | {"input.value": BROKEN, "input.mime_type": "application/json", "tool.description": "long " * 20},
        LLMETRY | {"traceloop.entity.input": json.dumps({"args": [BROKEN], "kwargs": {}})},
    ],
)
def test_what_the_model_broke_stays_as_text(attributes: dict[str, Any]) -> None:
    found = tool(attributes)
    assert (found.arguments, found.arguments_text, found.arguments_fidelity) == (None, BROKEN, "exact")


CUT = ('{"order_id": "' + "x" * 200)[:128]


@pytest.mark.parametrize(
    ("attributes", "dropped"),
    [
        (GENAI | {"gen_ai.tool.call.arguments": CUT}, 0),
        (GENAI | {"gen_ai.tool.call.arguments": BROKEN}, 1),
        (GENAI | {"gen_ai.tool.call.arguments": '{"order_id": "ORD-1...'}, 0),
        (GENAI, 2),
        (OI | {"input.value": CUT, "input.mime_type": "application/json"}, 0),
        (LLMETRY | {"traceloop.entity.input": '{"args": [], "kwargs": {"order_'}, 0),
    ],
)
def test_what_a_limit_cut_is_truncated(attributes: dict[str, Any], dropped: int) -> None:
    found = read(attributes, dropped_attributes_count=dropped)
    assert found.tool is not None
    assert (found.tool.arguments, found.tool.arguments_fidelity, found.content) == (None, "truncated", "truncated")


@pytest.mark.parametrize(
    ("value", "fidelity", "content"),
    [("__REDACTED__", "redacted", "redacted"), ("sha256:" + "0" * 64, "hashed", "hashed"), (None, "absent", "off")],
)
def test_hidden_content_is_not_taken_for_content(value: Any, fidelity: str, content: str) -> None:
    found = read(GENAI | {"gen_ai.tool.call.arguments": value})
    assert found.tool is not None
    assert (found.tool.arguments, found.tool.arguments_fidelity, found.content) == (None, fidelity, content)


def test_an_empty_object_is_no_absent_one() -> None:
    found = read(GENAI | {"gen_ai.tool.call.arguments": "{}"})
    assert found.tool is not None
    assert (found.tool.arguments, found.tool.arguments_fidelity, found.content) == ({}, "exact", "full")


def test_a_lone_argument_is_kept_bare() -> None:
    found = tool(OI | {"input.value": "ORD-1001"})
    assert (found.arguments, found.arguments_fidelity) == ("ORD-1001", "decoded")
    found = tool(LLMETRY | {"traceloop.entity.input": '{"args": ["ORD-1001"], "kwargs": {}}'})
    assert (found.arguments, found.arguments_fidelity) == ("ORD-1001", "decoded")
    found = tool(LLMETRY | {"traceloop.entity.input": '{"args": ["ORD-1001", 2], "kwargs": {}}'})
    assert found.arguments == ["ORD-1001", 2]
    found = tool(LLMETRY | {"traceloop.entity.input": '{"args": [1], "kwargs": {"b": 2}}'})
    assert found.arguments == {"b": 2, "args": [1]}


@pytest.mark.parametrize(
    "parameters",
    [{"type": "object", "properties": {}}, {"order_id": {"type": "string", "description": "id"}}, {"properties": {}}],
)
def test_tool_parameters_may_be_the_schema(parameters: dict[str, Any]) -> None:
    assert tool(OI | {"tool.parameters": json.dumps(parameters)}).arguments_fidelity == "absent"


def test_big_integers_survive() -> None:
    found = tool(GENAI | {"gen_ai.tool.call.arguments": '{"id": 9007199254740993123}'})
    assert found.arguments == {"id": 9007199254740993123}


# ---------------------------------------------------------------------------- names and ids


@pytest.mark.parametrize(
    ("attributes", "changes", "name", "raw", "server"),
    [
        (GENAI | {"gen_ai.tool.name": "mcp__shop__refund"}, {}, "refund", "mcp__shop__refund", "shop"),
        (GENAI | {"gen_ai.tool.name": "mcp__my_shop__do__it"}, {}, "do__it", "mcp__my_shop__do__it", "my_shop"),
        (GENAI | {"gen_ai.tool.name": "shop-refund"}, {"scope": Scope("semantic_kernel.functions.x")}, "refund", "shop-refund", None),
        (GENAI | {"gen_ai.tool.name": "shop-refund"}, {}, "shop-refund", "shop-refund", None),
        ({"gen_ai.operation.name": "execute_tool"}, {"name": "execute_tool refund"}, "refund", "refund", None),
        ({"openinference.span.kind": "TOOL"}, {"name": "refund.run"}, "refund", "refund", None),
        ({"openinference.span.kind": "tool", "tool.name": "refund"}, {"name": "SimpleTool"}, "refund", "refund", None),
        ({"traceloop.span.kind": "tool"}, {"name": "refund.tool"}, "refund", "refund", None),
        (LLMETRY | {"traceloop.workflow.name": "billing.mcp"}, {"name": "refund.mcp"}, "refund", "refund", "billing"),
        ({"mcp.method.name": "tools/call"}, {"name": "MCP send tools/call refund"}, "refund", "refund", None),
        (MCP | {"fastmcp.server.name": "billing"}, {}, "refund", "refund", "billing"),
        (MCP | {"server.address": "h", "server.port": 80}, {}, "refund", "refund", "h:80"),
        (MCP | {"server.address": "h"}, {}, "refund", "refund", "h"),
    ],
)  # fmt: skip
def test_names_become_canonical(
    attributes: dict[str, Any], changes: dict[str, Any], name: str, raw: str, server: str | None
) -> None:
    found = tool(attributes, **changes)
    assert (found.name, found.raw_name, found.server) == (name, raw, server)


@pytest.mark.parametrize(
    ("attributes", "call_id"),
    [
        (GENAI | {"gen_ai.tool.call.id": "c1"}, "c1"),
        (GENAI | {"gen_ai.tool.call.id": 7}, "7"),
        (GENAI | {"gen_ai.tool.call.id": "<not specified>"}, None),
        (GENAI | {"gen_ai.tool.call.id": ""}, None),
        (OI | {"tool.id": "c1"}, "c1"),
        (OI | {"output.value": json.dumps({"type": "tool", "data": {"content": "x", "tool_call_id": "c1"}})}, "c1"),
        (LLMETRY | {"traceloop.entity.input": json.dumps({"inputs": {}, "kwargs": {"tool_call_id": "c1"}})}, "c1"),
        (VERCEL | {"ai.toolCall.id": "c1"}, "c1"),
        (MCP | {"jsonrpc.request.id": "3"}, None),
    ],
)
def test_call_ids_are_found_and_placeholders_are_none(attributes: dict[str, Any], call_id: str | None) -> None:
    assert tool(attributes).call_id == call_id


@pytest.mark.parametrize(
    ("attributes", "changes"),
    [
        ({"gen_ai.operation.name": "execute_tool"}, {"name": ""}),
        ({"openinference.span.kind": "TOOL", "tool.name": "final_answer"}, {"scope": Scope("openinference.instrumentation.smolagents")}),
        ({"traceloop.span.kind": "task", "gen_ai.operation.name": "execute_task"}, {"name": "tools.task"}),
        ({"traceloop.span.kind": "tool"}, {"name": "tools/list.mcp"}),
        ({"mcp.method.name": "tools/call"}, {"name": "send"}),
        ({"mcp.method.name": "initialize"}, {}),
        ({"ai.operationId": "ai.toolCall"}, {}),
        ({"ai.operationId": "ai.embed"}, {}),
        ({"gen_ai.operation.name": "agent_step"}, {}),
        ({"traceloop.span.kind": "tool"}, {"name": ""}),
        ({"traceloop.span.kind": "handoff"}, {"name": "a → b.handoff"}),
        ({"openinference.span.kind": "TOOL"}, {"name": "handoff to billing"}),
        (GENAI | {"logfire.span_type": "pending_span"}, {"name": "execute_tool refund"}),
        ({"openinference.span.kind": "CHAIN"}, {"name": "tools"}),
        ({"openinference.span.kind": "LLM", "input.value": "{}"}, {}),
    ],
)  # fmt: skip
def test_what_is_no_call_is_other(attributes: dict[str, Any], changes: dict[str, Any]) -> None:
    assert read(attributes, **changes).kind in ("other", "setup")


# ---------------------------------------------------------------------------- results

MESSAGE = {"content": '{"ok": true}', "tool_call_id": "c1", "status": "success"}
CONSTRUCTOR = {
    "lc": 1,
    "type": "constructor",
    "id": ["langchain", "schema", "messages", "ToolMessage"],
    "kwargs": MESSAGE,
}


@pytest.mark.parametrize(
    ("attributes", "text", "value", "fidelity"),
    [
        (GENAI | {"gen_ai.tool.call.result": '{"ok": true}'}, '{"ok": true}', {"ok": True}, "exact"),
        (GENAI | {"gen_ai.tool.call.result": {"ok": True}}, '{"ok":true}', {"ok": True}, "exact"),
        (GENAI | {"gen_ai.tool.call.result": "done"}, "done", None, "exact"),
        (GENAI | {"gen_ai.tool.call.result": '"done"'}, "done", None, "decoded"),
        (GENAI | {"gen_ai.tool.call.result": json.dumps('{"ok": true}')}, '{"ok": true}', {"ok": True}, "decoded"),
        (GENAI | {"tool_response": "42"}, "42", 42, "exact"),
        (GENAI | {"gen_ai.tool.call.result": json.dumps([{"json": {"ok": True}}])}, '{"ok":true}', {"ok": True}, "decoded"),
        (GENAI | {"gen_ai.tool.call.result": json.dumps([{"text": "a"}, {"text": "b"}])}, "a\nb", None, "decoded"),
        (OI | {"output.value": json.dumps({"content": [{"type": "text", "text": '{"ok": true}'}]})}, '{"ok": true}', {"ok": True}, "decoded"),
        (OI | {"output.value": json.dumps({"content": [{"type": "text", "text": "x"}], "structuredContent": {"ok": True}})}, "x", {"ok": True}, "decoded"),
        (OI | {"output.value": json.dumps({"type": "tool", "data": MESSAGE})}, '{"ok": true}', {"ok": True}, "decoded"),
        (OI | {"output.value": "{'ok': True}"}, "{'ok': True}", {"ok": True}, "exact"),
        (OI | {"output.value": json.dumps({"blocks": [{"text": "{'ok': True}"}], "raw_output": {"ok": True}, "is_error": False})}, "{'ok': True}", {"ok": True}, "decoded"),
        (LLMETRY | {"traceloop.entity.output": '"done"'}, "done", None, "decoded"),
        (LLMETRY | {"traceloop.entity.output": json.dumps({"output": CONSTRUCTOR, "kwargs": {}})}, '{"ok": true}', {"ok": True}, "decoded"),
        (VERCEL | {"ai.toolCall.result": '{"ok": true}'}, '{"ok": true}', {"ok": True}, "exact"),
        (GENAI | {"gen_ai.tool.call.result": b'{"ok": true}'}, '{"ok": true}', {"ok": True}, "exact"),
        (GENAI | {"gen_ai.tool.call.result": 42}, "42", 42, "exact"),
        (GENAI | {"gen_ai.tool.call.result": "__REDACTED__"}, "__REDACTED__", None, "redacted"),
        (GENAI | {"gen_ai.tool.call.result": '{"ok": tru...'}, '{"ok": tru...', None, "truncated"),
        (GENAI | {"gen_ai.tool.call.result": '{"ok": tr'}, '{"ok": tr', None, "exact"),
        (LLMETRY | {"traceloop.entity.output": json.dumps({"output": "x", "kwargs": {}})}, '{"output": "x", "kwargs": {}}', {"output": "x", "kwargs": {}}, "exact"),
        (GENAI, None, None, "absent"),
    ],
)  # fmt: skip
def test_results_are_unwrapped(attributes: dict[str, Any], text: str | None, value: Any, fidelity: str) -> None:
    found = tool(attributes)
    assert (found.result_text, found.result, found.result_fidelity) == (text, value, fidelity)


def test_a_wrapper_is_only_one_where_its_dialect_writes_it() -> None:
    body = json.dumps({"result": '{"ok": true}'})
    scope = Scope("opentelemetry.instrumentation.mcp")
    assert tool(LLMETRY | {"traceloop.entity.output": body}, scope=scope).result == {"ok": True}
    assert tool(LLMETRY | {"traceloop.entity.output": body}).result == {"result": '{"ok": true}'}
    assert tool(GENAI | {"gen_ai.tool.call.result": body}).result == {"result": '{"ok": true}'}
    chain = Scope("opentelemetry.instrumentation.langchain")
    assert tool(LLMETRY | {"traceloop.entity.output": '{"output": "x", "kwargs": {}}'}, scope=chain).result_text == "x"
    failed = json.dumps({"result": "no", "is_error": True})
    assert "is_error" in tool(LLMETRY | {"traceloop.entity.output": failed}, scope=scope).signals


def test_a_cut_result_says_so() -> None:
    found = read(GENAI | {"gen_ai.tool.call.arguments": "{}", "gen_ai.tool.call.result": CUT})
    assert found.tool is not None
    assert (found.tool.result, found.tool.result_text, found.tool.result_fidelity) == (None, CUT, "truncated")
    assert found.content == "truncated"


# ---------------------------------------------------------------------------- signals


@pytest.mark.parametrize(
    ("attributes", "changes", "signals", "error_type"),
    [
        ({}, {}, (), None),
        ({}, {"status_code": 1}, ("status_ok",), None),
        ({}, {"status_code": 2}, ("status_error",), None),
        ({}, {"status_code": 1, "events": (exception("ValueError", "no"),)}, ("exception", "status_ok"), "ValueError"),
        ({}, {"events": (exception("a.TimeoutError"), exception("a.TimeoutError"))}, ("exception", "timeout"), "timeout"),
        ({"error.type": "timeout"}, {}, ("error_type", "timeout"), "timeout"),
        ({"error.type": "-32001"}, {}, ("error_type", "timeout"), "timeout"),
        ({"error.type": "DeadlineExceeded"}, {}, ("error_type", "timeout"), "timeout"),
        ({"error.type": "ETIMEDOUT"}, {}, ("error_type", "timeout"), "timeout"),
        ({}, {"status_code": 2, "status_message": "The operation timed out"}, ("status_error", "timeout"), "timeout"),
        ({}, {"status_code": 0, "status_message": "The operation timed out"}, (), None),
        ({"gen_ai.tool.call.result": "Tool 'x' timed out after 5 seconds."}, {}, ("timeout",), None),
        ({}, {"status_code": 2, "status_message": "Abandoned"}, ("abandoned", "status_error"), None),
        ({"error.type": "asyncio.CancelledError"}, {}, ("cancelled", "error_type"), "asyncio.CancelledError"),
        ({"error.type": "ApprovalRequired"}, {}, ("error_type", "pending"), "ApprovalRequired"),
        ({"error.type": "PermissionDenied"}, {}, ("denied", "error_type"), "PermissionDenied"),
        ({"error.type": "fastmcp.exceptions.ToolError"}, {}, ("error_type",), "tool_error"),
        ({"gen_ai.tool.status": "error"}, {}, ("is_error",), None),
        ({"gen_ai.tool.call.result": '{"content": [{"type": "text", "text": "no"}], "isError": true}'}, {}, ("is_error",), None),
        ({"gen_ai.tool.call.result": '{"type": "tool", "data": {"content": "no", "status": "error"}}'}, {}, ("is_error",), None),
    ],
)  # fmt: skip
def test_signs_of_trouble_are_recorded(
    attributes: dict[str, Any], changes: dict[str, Any], signals: tuple[str, ...], error_type: str | None
) -> None:
    found = read(GENAI | attributes, **changes)
    assert found.tool is not None
    assert (found.tool.signals, found.tool.error_type, found.error_type) == (signals, error_type, error_type)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"status_code": 2, "status_message": "no stock"}, "no stock"),
        (
            {"status_code": 2, "status_message": "E('x')Traceback (most recent call last):\n  ...", "events": ()},
            "E('x')",
        ),
        ({"status_code": 2, "status_message": "E: no stock", "events": (exception("E", "no stock"),)}, "no stock"),
        ({"status_code": 2, "status_message": "TimeoutError: ", "events": (exception("TimeoutError"),)}, None),
        ({"status_code": 2}, None),
        ({"status_code": 1, "status_message": "fine"}, None),
    ],
)
def test_error_messages_have_no_traceback(changes: dict[str, Any], message: str | None) -> None:
    assert tool(GENAI, **changes).error_message == message


def test_the_server_s_side_of_an_mcp_call_is_marked() -> None:
    assert tool(MCP, kind=2).signals == ("server_side",)
    assert tool(MCP | {"error.type": "tool_error"}, kind=3).signals == ("error_type", "is_error")


# ---------------------------------------------------------------------------- the shim's own words

SHIM = {
    "otelmon.call.outcome": "timeout_unknown",
    "otelmon.call.outcome_source": "client_timeout",
    "otelmon.call.idempotency_key": "k-1",
    "otelmon.call.attempt": 2,
    "otelmon.call.retry_of": "ab" * 8,
    "otelmon.call.args_hash": "sha256:" + "1" * 64,
    "otelmon.call.args_fidelity": "redacted",
    "otelmon.tool.effect": "destructive",
    "otelmon.tool.annotations": '{"readOnlyHint": false, "destructiveHint": true, "vendor": 1}',
    "otelmon.mcp.server": "billing",
    "otelmon.approval.decision": "approved",
    "otelmon.approval.source": "user",
    "otelmon.approval.by": "ann",
    "otelmon.approval.id": "a-1",
    "otelmon.approval.args_hash": "sha256:" + "2" * 64,
    "otelmon.approval.expires_unix_nano": 99,
    "otelmon.caller.principal": "svc",
    "otelmon.caller.on_behalf_of": "u-1",
}


@pytest.mark.parametrize("base", [GENAI, OI, LLMETRY, VERCEL, MCP, GENAI | {"otelmon.shim.version": "1"}])
def test_the_shim_s_attributes_are_read_in_every_dialect(base: dict[str, Any]) -> None:
    reading = read(base | SHIM)
    found = reading.tool
    assert found is not None
    assert (found.outcome_hint, found.outcome_source) == ("unknown", "client_timeout")
    assert (found.idempotency_key, found.attempt, found.retry_of) == ("k-1", 2, "ab" * 8)
    assert (found.arguments_hash, found.arguments_fidelity) == ("sha256:" + "1" * 64, "redacted")
    assert (found.effect_hint, found.server) == ("destructive", "billing")
    assert found.annotations is not None
    assert (found.annotations.read_only_hint, found.annotations.destructive_hint) == (False, True)
    assert found.approval == Approval("approved", "user", "ann", "a-1", "sha256:" + "2" * 64, 99)
    assert reading.principal == "u-1"


@pytest.mark.parametrize(
    ("sent", "ours"),
    [
        ("completed", "succeeded"),
        ("failed", "failed"),
        ("not_started", "failed"),
        ("denied", "denied"),
        ("cancelled_unknown", "unknown"),
        ("unknown", "unknown"),
        ("pending", "pending"),
        ("magic", None),
        (3, None),
    ],
)
def test_the_shim_s_outcomes_are_ours(sent: Any, ours: str | None) -> None:
    found = tool(GENAI | {"otelmon.call.outcome": sent})
    assert found.outcome_hint == ours
    assert ("denied" in found.signals) == (ours == "denied")


def test_a_rejection_is_kept_beside_what_came_of_the_call() -> None:
    carried_out = {"otelmon.approval.decision": "rejected", "gen_ai.tool.call.result": '{"closed": true}'}
    found = tool(GENAI | carried_out)
    assert found.approval is not None
    assert found.approval.decision == "rejected"
    assert derive_outcome(found).outcome == "succeeded"
    assert derive_outcome(tool(GENAI | {"otelmon.approval.decision": "rejected"})).outcome == "denied"
    assert tool(GENAI | {"otelmon.approval.decision": "maybe"}).approval is None


@pytest.mark.parametrize(
    ("capture", "content"), [("none", "off"), ("hash", "hashed"), ("redacted", "redacted"), ("full", "full")]
)
def test_what_the_shim_captured_is_believed(capture: str, content: str) -> None:
    attributes = {"gen_ai.tool.call.arguments": "{}", "otelmon.content.capture": capture}
    assert read(GENAI | attributes).content == content


# ---------------------------------------------------------------------------- who and where


@pytest.mark.parametrize(
    ("attributes", "conversation", "principal", "agent"),
    [
        (GENAI | {"gen_ai.conversation.id": "c", "session.id": "s", "enduser.id": "u", "gen_ai.agent.name": "a"}, "c", "u", "a"),
        (OI | {"session.id": "c", "user.id": "u", "agent.name": "a"}, "c", "u", "a"),
        (OI | {"metadata": '{"thread_id": "c", "user_id": "u", "lc_agent_name": "a"}'}, "c", "u", "a"),
        (OI | {"metadata": "not json"}, None, None, None),
        (LLMETRY | {"traceloop.association.properties.thread_id": "c", "traceloop.association.properties.user_id": "u"}, "c", "u", None),
        (VERCEL | {"ai.telemetry.metadata.sessionId": "c", "ai.telemetry.metadata.userId": "u", "ai.telemetry.functionId": "a"}, "c", "u", "a"),
        (MCP | {"mcp.session.id": "transport"}, None, None, None),
    ],
)  # fmt: skip
def test_conversation_user_and_agent_are_found(
    attributes: dict[str, Any], conversation: str | None, principal: str | None, agent: str | None
) -> None:
    found = read(attributes)
    assert (found.conversation_id, found.principal, found.agent_name) == (conversation, principal, agent)


# ---------------------------------------------------------------------------- messages

PARTS_CALL = {"type": "tool_call", "id": "c1", "name": "mcp__s__refund", "arguments": ARGUMENTS}
CALLS = [
    {"role": "assistant", "parts": [PARTS_CALL]},
    {"role": "assistant", "parts": [PARTS_CALL | {"arguments": WIRE}]},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "function": {"name": "refund", "arguments": WIRE}}],
    },
    {"role": "assistant", "tool_calls": [{"id": "c1", "name": "refund", "args": ARGUMENTS}]},
    {
        "role": "assistant",
        "content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "refund", "input": ARGUMENTS}],
    },
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "refund", "input": ARGUMENTS}]},
    {"type": "ai", "data": {"content": "", "tool_calls": [{"id": "c1", "name": "refund", "args": ARGUMENTS}]}},
]
RESULTS = [
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": '{"ok": true}'}]},
    {"role": "user", "parts": [{"type": "tool_call_response", "id": "c1", "name": "refund", "result": {"ok": True}}]},
    {"role": "tool", "content": '{"ok":true}', "tool_call_id": "c1", "name": "refund"},
    {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "toolName": "refund", "output": {"type": "json", "value": {"ok": True}}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": '{"ok": true}'}]}]},
    CONSTRUCTOR,
]  # fmt: skip


@pytest.mark.parametrize("items", [CALLS, RESULTS], ids=["calls", "results"])
def test_one_content_has_one_digest_in_every_shape(items: list[Any]) -> None:
    assert len({m.digest for item in items for m in from_item(item)}) == 1


def test_different_content_has_different_digests() -> None:
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "a"},
        {"role": "user", "content": "b"},
        {"role": "tool", "content": "a", "tool_call_id": "c1"},
        {"role": "tool", "content": "a", "tool_call_id": "c2"},
        CALLS[0],
        {"role": "assistant", "parts": [PARTS_CALL | {"id": "c2"}]},
        {"role": "assistant", "parts": [PARTS_CALL | {"arguments": {"order_id": "ORD-2"}}]},
        {"role": "assistant", "parts": [PARTS_CALL | {"arguments": '{"order_id'}]},
    ]
    found = [m for item in messages for m in from_item(item)]
    assert len({m.digest for m in found}) == len(messages)


def test_a_request_keeps_what_could_not_be_decoded() -> None:
    (message,) = from_item({"role": "assistant", "parts": [PARTS_CALL | {"arguments": '{"order_id'}]})
    (request,) = message.requests
    assert (request.tool_name, request.arguments, request.arguments_text, request.fidelity) == (
        "refund",
        None,
        '{"order_id',
        "exact",
    )
    (message,) = from_item({"role": "assistant", "parts": [PARTS_CALL | {"arguments": TWICE}]})
    assert (message.requests[0].arguments, message.requests[0].fidelity) == (ARGUMENTS, "repaired")
    (message,) = from_item({"role": "assistant", "parts": [{"type": "tool_call", "name": "refund"}]})
    assert (message.requests[0].arguments, message.requests[0].tool_call_id) == ({}, None)


def test_several_results_in_one_message_are_messages_of_their_own() -> None:
    parts = [{"type": "tool_call_response", "id": i, "response": i} for i in ("c1", "c2")]
    found = from_item({"role": "user", "parts": [*parts, {"type": "text", "content": "and now?"}]})
    assert [(m.role, m.text) for m in found] == [("tool", ""), ("tool", ""), ("user", "and now?")]
    assert [m.responses[0].tool_call_id for m in found[:2]] == ["c1", "c2"]


@pytest.mark.parametrize(
    ("item", "role", "text"),
    [
        ("hello", "user", "hello"),
        (["human", "hello"], "user", "hello"),
        ({"role": "developer", "content": "rules"}, "system", "rules"),
        ({"role": "critic", "content": "yes"}, "system", "yes"),
        ({"role": ["user"], "content": "yes"}, "system", "yes"),
        ({"role": "user", "content": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {}}]}, "user", "see\n[image]"),
        ({"role": "user", "parts": [{"type": "blob", "modality": "image"}, {"type": "uri"}]}, "user", "[image]\n[file]"),
        ({"role": "assistant", "parts": [{"type": "reasoning", "content": "hm"}, {"type": "text", "content": "ok"}]}, "assistant", "ok"),
    ],
)  # fmt: skip
def test_text_and_roles_are_read(item: Any, role: str, text: str) -> None:
    (message,) = from_item(item)
    assert (message.role, message.text) == (role, text)


@pytest.mark.parametrize(
    ("payload", "failed"),
    [
        ({"type": "tool-result", "toolCallId": "c", "output": {"type": "error-text", "value": "no"}}, True),
        ({"type": "tool-error", "toolCallId": "c", "error": "no"}, True),
        ({"type": "tool_result", "tool_use_id": "c", "content": "no", "is_error": True}, True),
        ({"type": "tool_call_response", "id": "c", "response": {"content": [{"type": "text", "text": "no"}], "isError": True}}, True),
        ({"type": "tool_call_response", "id": "c", "response": "no"}, None),
    ],
)  # fmt: skip
def test_failed_results_in_history_are_marked(payload: dict[str, Any], failed: bool | None) -> None:
    (message,) = from_item({"role": "tool", "content": [payload]})
    assert (message.responses[0].text, message.responses[0].is_error) == ("no", failed)


def test_only_the_assistant_asks_for_calls() -> None:
    """A simulated user has tools of their own."""
    assert from_item({"role": "user", "parts": [PARTS_CALL]}) == []
    (message,) = from_item({"role": "user", "content": "one moment", "tool_calls": [{"name": "reboot"}]})
    assert (message.role, message.text, message.requests) == ("user", "one moment", ())


def test_an_answer_without_a_role_is_the_assistant_s() -> None:
    for attributes in (
        {"openinference.span.kind": "LLM", "llm.output_messages.0.message.content": "yes"},
        {"llm.request.type": "chat", "gen_ai.completion.0.content": "yes"},
    ):
        _, left = told(read(attributes))
        assert [(m.role, m.text) for m in left] == [("assistant", "yes")]
    (message,) = from_item({"parts": [PARTS_CALL]})
    assert message.role == "assistant"


def test_unknown_roles_never_speak_for_a_person() -> None:
    assert role_of("moderator") == "system"
    assert role_of(None) == "system"


def test_system_instructions_come_first() -> None:
    attributes = CHAT | {
        "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": "hi"}]}])
    }
    for system in ('[{"type": "text", "content": "rules"}]', "rules", [{"type": "text", "content": "rules"}]):
        entered, _ = told(read(attributes | {"gen_ai.system_instructions": system}))
        assert [(m.role, m.text) for m in entered] == [("system", "rules"), ("user", "hi")]


def test_the_history_is_complete_unless_it_can_not_be() -> None:
    entered = {"gen_ai.input.messages": '[{"role": "user", "content": "hi"}]'}
    assert read(CHAT | entered).history_complete
    assert not read(CHAT).history_complete
    assert not read(CHAT | entered | {"openai.request.previous_response_id": "r-1"}).history_complete
    assert not read({"openinference.span.kind": "LLM", "llm.input_messages.1.message.role": "user"}).history_complete


def test_a_cut_history_gives_what_came_through() -> None:
    text = json.dumps([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "x" * 200}])
    found = read(CHAT | {"gen_ai.input.messages": text[:128]})
    assert found.content == "truncated"
    assert not found.history_complete
    assert [m.text for m in told(found)[0]] == ["hi"]


LONG = "the order is on its way " * 20


@pytest.mark.parametrize(("length", "content"), [(128, "truncated"), (131, "full")])
def test_flattened_text_that_a_limit_cut_says_so(length: int, content: str) -> None:
    for prefix in ("llm.input_messages.{}.message.", "gen_ai.prompt.{}."):
        attributes: dict[str, Any] = {"openinference.span.kind": "LLM"} if prefix.startswith("llm") else {}
        for number, role in enumerate(("user", "assistant")):
            attributes[prefix.format(number) + "role"] = role
            attributes[prefix.format(number) + "content"] = LONG[number:][:length]
        found = read(attributes)
        assert (found.kind, found.content, found.history_complete) == ("model", content, content == "full")


def test_equal_hashes_are_no_limit() -> None:
    attributes = {"gen_ai.tool.call.result": "ab" * 32, "app.hash": "cd" * 32}
    assert tool(GENAI | attributes).result_fidelity == "exact"
    attributes = {"gen_ai.tool.call.result": LONG[:128], "gen_ai.tool.description": LONG[1:129]}
    assert tool(GENAI | attributes).result_fidelity == "truncated"


def test_a_history_that_is_hidden_says_how() -> None:
    assert read(CHAT | {"gen_ai.input.messages": "<REDACTED>"}).content == "redacted"
    assert read(CHAT | {"gen_ai.output.messages": "sha256:" + "0" * 64}).content == "hashed"
    flattened = {"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "__REDACTED__"}
    assert read({"openinference.span.kind": "LLM"} | flattened).content == "redacted"


@pytest.mark.parametrize("value", ["not json", "7", b"x", 3, None, {"role": "user"}])
def test_what_is_no_list_of_messages_is_none(value: Any) -> None:
    assert read(CHAT | {"gen_ai.input.messages": value}).input == ()


def test_a_model_span_without_messages_has_no_content() -> None:
    assert read(CHAT).content == "off"
    assert read(CHAT, dropped_attributes_count=3).content == "truncated"
    assert read({"openinference.span.kind": "LLM"}).content == "off"
    assert read({"ai.operationId": "ai.generateText.doGenerate"}).content == "off"


def test_content_may_come_in_events() -> None:
    event = "gen_ai.client.inference.operation.details"
    messages = (
        {"gen_ai.input.messages": [{"role": "user", "content": "hi"}]},
        {"gen_ai.output.messages": '[{"role": "assistant", "content": "yes"}]'},
    )
    entered, left = told(read(CHAT, events=tuple(SpanEvent(event, 1, m) for m in messages)))
    assert [m.text for m in entered + left] == ["hi", "yes"]


def test_flattened_messages_are_put_together() -> None:
    prefix = "llm.input_messages."
    attributes = {
        "openinference.span.kind": "LLM",
        prefix + "10.message.role": "assistant",
        prefix + "10.message.content": "bye",
        prefix + "2.message.role": "user",
        prefix + "2.message.contents.0.message_content.type": "text",
        prefix + "2.message.contents.0.message_content.text": "see",
        prefix + "2.message.contents.1.message_content.type": "image",
        prefix + "0.message.role": "system",
        prefix + "0.message.content": "rules",
        prefix + "1.message.role": "assistant",
        prefix + "1.message.function_call_name": "refund",
        prefix + "1.message.function_call_arguments_json": WIRE,
    }
    entered, _ = told(read(attributes))
    assert [(m.role, m.text) for m in entered] == [
        ("system", "rules"),
        ("assistant", ""),
        ("user", "see\n[image]"),
        ("assistant", "bye"),
    ]
    assert entered[1].requests[0].arguments == ARGUMENTS
    # Message 3 to 9 are missing: something evicted them.
    assert read(attributes).content == "truncated"


def test_older_flattened_messages_are_put_together() -> None:
    attributes = {
        "llm.request.type": "chat",
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": '[{"type": "text", "text": "hi"}]',
        "gen_ai.prompt.1.role": "assistant",
        "gen_ai.prompt.1.tool_calls.0.id": "c1",
        "gen_ai.prompt.1.tool_calls.0.name": "refund",
        "gen_ai.prompt.1.tool_calls.0.arguments": WIRE,
        "gen_ai.prompt.2.role": "tool",
        "gen_ai.prompt.2.tool_call_id": "c1",
        "gen_ai.prompt.2.content": '{"ok": true}',
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "Done.",
    }
    found = read(attributes)
    entered, left = told(found)
    assert [m.text for m in entered + left] == ["hi", "", "", "Done."]
    assert [m.digest for m in entered[1:]] == [from_item(CALLS[0])[0].digest, from_item(RESULTS[0])[0].digest]
    assert found.history_complete


def test_vercel_messages_are_read_from_prompt_and_response() -> None:
    asked = json.dumps([{"toolCallId": "c1", "toolName": "refund", "input": WIRE}])
    found = read(
        {
            "ai.operationId": "ai.streamText.doStream",
            "ai.prompt.messages": json.dumps([{"role": "user", "content": [{"type": "text", "text": "hi"}]}]),
            "ai.response.text": "",
            "ai.response.toolCalls": asked,
            "ai.response.id": "r-1",
            "ai.model.id": "m",
        }
    )
    entered, left = told(found)
    assert [m.text for m in entered] == ["hi"]
    assert left[0].digest == from_item(CALLS[0])[0].digest
    assert (found.kind, found.model, found.response_id) == ("model", "m", "r-1")


# ---------------------------------------------------------------------------- runs

ANSWER = "Refunded."


@pytest.mark.parametrize(
    "attributes",
    [
        {"gen_ai.operation.name": "invoke_agent", "gen_ai.input.messages": [{"role": "user", "content": "hi"}], "gen_ai.output.messages": [{"role": "assistant", "finish_reason": "stop", "parts": [{"type": "text", "content": ANSWER}, PARTS_CALL, {"type": "tool_call_response", "id": "c1", "response": "x"}]}]},
        {"gen_ai.operation.name": "invoke_agent", "pydantic_ai.all_messages": '[{"role": "user", "content": "hi"}]', "final_result": ANSWER},
        {"openinference.span.kind": "AGENT", "input.value": "hi", "output.value": ANSWER},
        {"openinference.span.kind": "AGENT", "input.value": '{"task": "hi", "n": 1}', "output.value": json.dumps({"raw": ANSWER})},
        {"openinference.span.kind": "AGENT", "input.value": '{"messages": [["user", "hi"]]}', "output.value": json.dumps({"messages": [{"type": "human", "data": {"content": "hi"}}, {"type": "ai", "data": {"content": ANSWER}}]})},
        {"traceloop.span.kind": "workflow", "traceloop.entity.input": '{"args": ["hi"], "kwargs": {}}', "traceloop.entity.output": json.dumps(ANSWER)},
        {"traceloop.span.kind": "agent", "traceloop.entity.input": '{"inputs": {"messages": [["user", "hi"]]}}', "traceloop.entity.output": json.dumps({"outputs": {"messages": [{"type": "ai", "data": {"content": ANSWER}}]}})},
        {"ai.operationId": "ai.generateText", "ai.prompt": '{"prompt": "hi"}', "ai.response.text": ANSWER, "ai.response.toolCalls": "[{}]"},
        {"ai.operationId": "ai.streamText", "ai.prompt": '{"messages": [{"role": "user", "content": "hi"}]}', "ai.response.text": ANSWER},
    ],
)  # fmt: skip
def test_a_run_has_its_question_and_its_answer(attributes: dict[str, Any]) -> None:
    found = read(attributes)
    entered, left = told(found)
    assert found.kind == "agent"
    assert [(m.role, m.text) for m in entered] == [("user", "hi")]
    assert [(m.role, m.text, m.requests) for m in left] == [("assistant", ANSWER, ())]


@pytest.mark.parametrize(
    ("entered", "question"),
    [
        ('"hi"', ["hi"]),
        ('{"args": ["hi", "there"], "kwargs": {}}', []),
        ('{"args": [], "kwargs": {"q": "hi", "n": 1}}', ["hi"]),
        ("[1]", []),
        ('""', []),
    ],
)
def test_the_question_of_a_decorated_function_is_its_only_text(entered: str, question: list[str]) -> None:
    found = read({"traceloop.span.kind": "workflow", "traceloop.entity.input": entered})
    assert [m.text for m in told(found)[0]] == question


@pytest.mark.parametrize(
    ("left", "answer"),
    [('{"a": 1}', '{"a":1}'), ("plain text", "plain text"), ('"quoted"', "quoted"), ("7", "7"), ("{", None)],
)
def test_the_answer_of_a_decorated_function_is_text(left: str, answer: str | None) -> None:
    found = read({"traceloop.span.kind": "workflow", "traceloop.entity.output": left})
    assert [m.text for m in told(found)[1]] == ([] if answer is None else [answer])


@pytest.mark.parametrize(
    "value", ["StopEvent(result=AgentOutput())", "None", '{"ctx": "<object>"}', "[1]", '{"messages": []}', ""]
)
def test_python_objects_are_no_answers(value: str) -> None:
    attributes = {"openinference.span.kind": "CHAIN", "input.value": value, "output.value": value}
    found = read(attributes, parent_span_id="")
    assert (found.kind, found.input, found.output) == ("agent", (), ())


def test_smolagents_history_is_read_from_its_text() -> None:
    prefix = "llm.input_messages."
    scope = Scope("openinference.instrumentation.smolagents")
    calls = [{"id": "c1", "type": "function", "function": {"name": "refund", "arguments": ARGUMENTS}}]
    attributes = {
        "openinference.span.kind": "LLM",
        prefix + "0.message.role": "tool-call",
        prefix + "0.message.content": f"Calling tools:\n{calls!r}",
        prefix + "1.message.role": "tool-response",
        prefix + "1.message.contents.0.message_content.text": "Observation:\ndone",
        prefix + "2.message.role": "tool-call",
        prefix + "2.message.content": "Calling tools:\nsomething",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "final_answer",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"answer": "All done."}',
    }
    entered, left = told(read(attributes, scope=scope))
    assert entered[0].digest == from_item(CALLS[0])[0].digest
    assert entered[1].responses[0].text == "done"
    assert (entered[2].role, entered[2].requests) == ("assistant", ())
    assert (left[0].text, left[0].requests) == ("All done.", ())


# ---------------------------------------------------------------------------- definitions

SCHEMA = {"type": "object", "properties": {"order_id": {"type": "string"}}}
FLAT = {"type": "function", "name": "refund", "description": "Refund.", "parameters": SCHEMA}
SHAPES = [
    [FLAT],
    json.dumps([FLAT]),
    [json.dumps(FLAT)],
    json.dumps(FLAT),
    [{"type": "function", "function": {"name": "refund", "description": "Refund.", "parameters": SCHEMA}}],
    [{"name": "refund", "description": "Refund.", "inputSchema": SCHEMA}],
    [{"name": "refund", "description": "Refund.", "input_schema": json.dumps(SCHEMA)}],
    {"tools": [FLAT]},
    json.dumps({"tools": [FLAT]}),
    [FLAT, FLAT],
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_definitions_have_one_hash_in_every_shape(shape: Any) -> None:
    expected = definitions([FLAT])
    if isinstance(shape, dict):
        shape = json.dumps(shape)
    assert definitions(shape) == expected
    assert (expected[0].name, expected[0].description, expected[0].input_schema) == ("refund", "Refund.", SCHEMA)


def test_hashes_follow_what_they_are_of() -> None:
    (base,) = definitions([FLAT])
    (reworded,) = definitions([FLAT | {"description": "Refund!"}])
    (hinted,) = definitions([FLAT | {"annotations": {"readOnlyHint": True}}])
    (changed,) = definitions([FLAT | {"parameters": SCHEMA | {"required": ["order_id"]}}])
    (reordered,) = definitions([{"parameters": dict(reversed(SCHEMA.items())), **FLAT}])
    assert (
        base.schema_hash == reworded.schema_hash == hinted.schema_hash == reordered.schema_hash != changed.schema_hash
    )
    assert len({d.definition_hash for d in (base, reworded, hinted, changed)}) == 4
    assert base.definition_hash == reordered.definition_hash


def test_a_definition_says_which_server_it_is_from() -> None:
    (given,) = definitions([FLAT | {"server": "billing"}])
    (named,) = definitions([FLAT | {"name": "mcp__billing__refund"}])
    assert (given.name, given.server) == (named.name, named.server) == ("refund", "billing")


@pytest.mark.parametrize(
    "value", [None, 1, "", "nope", "[1, null]", [[]], {"a": 1}, [{"description": "no name"}], b"x"]
)
def test_what_is_no_definition_gives_none(value: Any) -> None:
    assert definitions(value) == ()


def test_a_schema_that_is_no_object_is_absent() -> None:
    (found,) = definitions([{"name": "refund", "parameters": "nope", "annotations": {"readOnlyHint": "yes"}}])
    assert (found.input_schema, found.annotations) == (None, None)


@pytest.mark.parametrize(
    ("attributes", "name"),
    [
        (CHAT | {"gen_ai.tool.definitions": json.dumps([FLAT])}, ""),
        ({"gen_ai.operation.name": "create_agent", "gen_ai.tool.definitions": json.dumps([FLAT])}, ""),
        ({"openinference.span.kind": "LLM", "llm.tools.0.tool.json_schema": json.dumps(FLAT)}, ""),
        ({"llm.request.type": "chat", "gen_ai.prompt.0.role": "user", "llm.request.functions.0.name": "refund", "llm.request.functions.0.description": "Refund.", "llm.request.functions.0.parameters": json.dumps(SCHEMA)}, ""),
        ({"ai.operationId": "ai.generateText.doGenerate", "ai.prompt.tools": [json.dumps(FLAT)]}, ""),
        ({"mcp.method.name": "tools/list", "gen_ai.tool.call.result": {"tools": [FLAT]}}, ""),
        ({"traceloop.span.kind": "tool", "traceloop.entity.output": json.dumps({"result": json.dumps({"tools": [FLAT]})})}, "tools/list.mcp"),
        ({"traceloop.span.kind": "tool", "traceloop.entity.output": json.dumps([FLAT])}, "tools/list.mcp"),
    ],
)  # fmt: skip
def test_definitions_are_found_in_every_dialect(attributes: dict[str, Any], name: str) -> None:
    assert read(attributes, name=name).definitions == definitions([FLAT])
