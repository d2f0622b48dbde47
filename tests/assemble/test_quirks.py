"""The quirks of instrumentations that were measured, by number: one synthetic test each, at least.

1 what `tool.parameters` is; 2 a lone argument written bare; 3 wrappers around arguments; 4 JSON in JSON;
5 Python reprs; 6 call ids missing, made up or of another kind; 7 no content at all; 8 content in events;
9 the ways an error shows; 10 timeouts that look well; 11 OK and UNSET; 12 a failed span with its name only;
13 what limits cut; 14 nested attribute values; 15 JSON of other producers; 16 names that are not the tool's;
17 roots and wrappers; 18 two instrumentations; 19 the session on the root only; 20 clocks; 21 shapes of
messages; 22 copies and late spans; 23 secrets in metadata.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from otelmon.assemble.history import History
from otelmon.assemble.readings import read_log_record
from otelmon.assemble.timeline import build
from otelmon.vocabulary.event import AssistantMessage, Timeline, ToolCall, UserMessage
from otelmon.vocabulary.reading import Reading
from otelmon.vocabulary.span import LogRecord, Scope, SpanEvent
from tests.assemble.dialect_spans import all_messages, exception, read, read_request, tool
from tests.assemble.test_timeline_data import conversations

ARGUMENTS = {"order_id": "A-1", "amount": 2.5}
WIRE = json.dumps(ARGUMENTS)
RESULT = {"ok": True}
GENAI = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "refund"}
LANGFUSE = {"langfuse.observation.type": "tool"}
LANGSMITH = {"langsmith.span.kind": "tool", "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "refund"}
MLFLOW = {"mlflow.spanType": '"TOOL"', "mlflow.spanFunctionName": '"refund"'}
OI = {"openinference.span.kind": "TOOL", "tool.name": "refund"}
SCHEMA = {"type": "object", "properties": {"order_id": {"type": "string"}}}
ADK, STRANDS, AUTOGEN, PYDANTIC = (Scope(n) for n in ("gcp.vertex.agent", "strands.telemetry.tracer", "autogen-core", "pydantic-ai"))  # fmt: skip
SPRING = {"spring.ai.kind": "tool_call", "gen_ai.operation.name": "framework", "spring.ai.tool.definition.name": "refund"}  # fmt: skip
LOGFIRE = {"logfire.msg_template": "Function: {name}", "logfire.span_type": "span", "name": "refund"}


def trace(*spans: dict[str, Any]) -> list[Reading]:
    """The readings of spans of one trace; `id` and `parent` are small numbers, times in milliseconds."""
    return [
        read(
            span.get("attributes"),
            trace_id="a" * 32,
            span_id=f"{span['id']:016x}",
            parent_span_id=f"{span['parent']:016x}" if span.get("parent") else "",
            start_time_unix_nano=span.get("at", span["id"]) * 1_000_000,
            end_time_unix_nano=span.get("end", span.get("at", span["id"]) + 1) * 1_000_000,
            digest=f"d{span['id']}",
            **{k: v for k, v in span.items() if k in ("name", "scope", "events", "status_code", "status_message")},
        )
        for span in spans
    ]


def calls(readings: list[Reading]) -> list[ToolCall]:
    return [e for e in build("c", readings).events if isinstance(e, ToolCall)]


def texts(timeline: Timeline, kind: type[Any]) -> list[str]:
    return [e.text for e in timeline.events if isinstance(e, kind)]


# -- arguments and results -----------------------------------------------------------------------
@pytest.mark.parametrize(("parameters", "arguments"), [(SCHEMA, None), (ARGUMENTS, ARGUMENTS)])
def test_quirk_01_tool_parameters_are_arguments_unless_they_are_a_schema(parameters: Any, arguments: Any) -> None:
    assert tool(OI | {"tool.parameters": json.dumps(parameters)}).arguments == arguments


@pytest.mark.parametrize(
    "attributes",
    [
        OI | {"input.value": "A-1"},
        LANGFUSE | {"langfuse.observation.input": "A-1"},
        MLFLOW | {"mlflow.spanInputs": '"A-1"'},
    ],
)
def test_quirk_02_a_lone_argument_written_bare_gets_its_name_from_the_schema(attributes: dict[str, Any]) -> None:
    definition = json.dumps([{"type": "function", "function": {"name": "refund", "parameters": SCHEMA}}])
    model = {"gen_ai.operation.name": "chat", "gen_ai.tool.definitions": definition}
    (call,) = calls(trace({"id": 1, "attributes": model}, {"id": 2, "attributes": attributes, "name": "refund"}))
    assert (call.arguments, call.arguments_fidelity) == ({"order_id": "A-1"}, "decoded")


@pytest.mark.parametrize(
    "attributes",
    [
        LANGFUSE | {"langfuse.observation.input": json.dumps({"args": [], "kwargs": ARGUMENTS})},
        MLFLOW | {"mlflow.spanInputs": json.dumps({"args": [], "kwargs": ARGUMENTS})},
        LANGSMITH | {"gen_ai.prompt": json.dumps({"input": WIRE})},
        OI | {"input.value": json.dumps({"args": [], "sanitize_inputs_outputs": True, "kwargs": ARGUMENTS})},
    ],
)
def test_quirk_03_wrappers_around_arguments_are_taken_off(attributes: dict[str, Any]) -> None:
    found = tool(attributes, name="refund")
    assert (found.arguments, found.arguments_text, found.arguments_fidelity) == (ARGUMENTS, None, "decoded")


def test_quirk_04_every_value_of_mlflow_is_json_of_its_own() -> None:
    found = tool(MLFLOW | {"mlflow.spanInputs": WIRE, "mlflow.spanOutputs": json.dumps(json.dumps(RESULT))})
    assert (found.name, found.arguments, found.result) == ("refund", ARGUMENTS, RESULT)
    agent = read({"mlflow.spanType": '"AGENT"', "mlflow.spanInputs": '{"p": "hi"}', "mlflow.spanOutputs": '"Bye"'})
    assert [m.text for m in agent.messages] == ["hi", "Bye"]


def test_quirk_04_metadata_of_langfuse_is_json_value_by_value() -> None:
    metadata = {"tool_call_id": '"call_1"', "session_id": '"conv"', "user_id": '"u"'}
    found = read(LANGFUSE | {f"langfuse.observation.metadata.{k}": v for k, v in metadata.items()}, name="refund")
    assert found.tool is not None
    assert (found.tool.call_id, found.conversation_id, found.principal) == ("call_1", "conv", "u")


def test_quirk_04_arguments_of_messages_are_text_or_objects() -> None:
    def asked(arguments: Any) -> Any:
        parts = [{"type": "tool_call", "id": "c", "name": "refund", "arguments": arguments}]
        sent = json.dumps([{"role": "assistant", "parts": parts}])
        (message,) = read({"gen_ai.operation.name": "chat", "gen_ai.output.messages": sent}).messages
        return message.requests[0].arguments, message.digest

    assert asked(WIRE) == asked(ARGUMENTS)
    assert asked(WIRE)[0] == ARGUMENTS


@pytest.mark.parametrize(
    "attributes",
    [
        LANGFUSE | {"langfuse.observation.input": str(ARGUMENTS), "langfuse.observation.output": str(RESULT)},
        LANGSMITH | {"gen_ai.prompt": json.dumps({"input": str(ARGUMENTS)}), "gen_ai.completion": json.dumps({"output": str(RESULT)})},
        MLFLOW | {"mlflow.spanInputs": json.dumps(str(ARGUMENTS)), "mlflow.spanOutputs": json.dumps(str(RESULT))},
        LOGFIRE | {"input": WIRE, "output": str(RESULT)},
    ],
)  # fmt: skip
def test_quirk_05_python_reprs_are_read(attributes: dict[str, Any]) -> None:
    found = tool(attributes, name="refund")
    assert (found.arguments, found.result) == (ARGUMENTS, RESULT)


def test_quirk_06_a_placeholder_is_no_call_id_and_names_join_what_ids_can_not() -> None:
    assert tool(GENAI | {"gen_ai.tool.call.id": "<not specified>"}, scope=ADK).call_id is None
    request = {"config": {}, "contents": [{"role": "user", "parts": [{"text": "refund A-1"}]}]}
    response = {"content": {"role": "model", "parts": [{"function_call": {"id": "refund_0", "name": "refund", "args": ARGUMENTS}}]}}  # fmt: skip
    model = {"gcp.vertex.agent.llm_request": json.dumps(request), "gcp.vertex.agent.llm_response": json.dumps(response)}
    called = GENAI | {"gen_ai.tool.call.id": "adk-1", "gcp.vertex.agent.tool_call_args": WIRE, "gcp.vertex.agent.tool_response": '{"ok": true}'}  # fmt: skip
    (call,) = calls(trace(
        {"id": 1, "name": "call_llm", "scope": ADK, "attributes": model, "end": 9},
        {"id": 2, "parent": 1, "name": "execute_tool refund", "scope": ADK, "attributes": called},
    ))  # fmt: skip
    assert (call.arguments, call.result, call.derived) == (ARGUMENTS, RESULT, False)


@pytest.mark.parametrize("scope", [AUTOGEN, ADK, Scope("semantic_kernel.functions.kernel_function")])
def test_quirk_07_a_call_without_content_is_known_to_have_been_made(scope: Scope) -> None:
    found = read(GENAI, scope=scope)
    assert found.content == "off"
    (call,) = calls(trace({"id": 1, "attributes": GENAI, "scope": scope}))
    assert (call.arguments_fidelity, call.result_fidelity) == ("absent", "absent")
    assert (call.outcome, call.outcome_source) == ("succeeded", "status")


# -- where content stands ------------------------------------------------------------------------
def block(**content: Any) -> str:
    return json.dumps([content])


def test_quirk_08_content_in_span_events() -> None:
    told = (
        SpanEvent("gen_ai.tool.message", 1, {"role": "tool", "content": WIRE, "id": "c1"}),
        SpanEvent("gen_ai.choice", 2, {"message": block(text='{"ok": true}'), "id": "c1"}),
    )
    found = tool(GENAI, scope=STRANDS, events=told)
    assert (found.arguments, found.result) == (ARGUMENTS, RESULT)

    use = {"toolUseId": "c1", "name": "refund", "input": ARGUMENTS}
    answer = {"toolUseId": "c1", "status": "error", "content": [{"text": "no"}]}
    spoken = (
        SpanEvent("gen_ai.system.message", 1, {"content": block(text="Be kind.")}),
        SpanEvent("gen_ai.user.message", 2, {"content": block(text="hi")}),
        SpanEvent("gen_ai.assistant.message", 3, {"content": block(toolUse=use)}),
        SpanEvent("gen_ai.tool.message", 4, {"content": block(toolResult=answer)}),
        SpanEvent("gen_ai.choice", 5, {"message": block(text="Sorry."), "finish_reason": "end_turn"}),
    )
    model = read({"gen_ai.operation.name": "chat"}, scope=STRANDS, events=spoken)
    assert [m.role for m in model.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert model.messages[2].requests[0].arguments == ARGUMENTS
    assert (model.messages[3].responses[0].text, model.messages[3].responses[0].is_error) == ("no", True)
    assert (model.messages[4].text, model.output) == ("Sorry.", (model.messages[4].digest,))
    assert model.history_complete


def test_quirk_08_content_in_a_list_of_events() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "refund", "arguments": ARGUMENTS}}
    events = [
        {"event.name": "gen_ai.user.message", "role": "user", "content": "hi"},
        {"event.name": "gen_ai.assistant.message", "role": "assistant", "tool_calls": [call]},
        {"event.name": "gen_ai.tool.message", "role": "tool", "id": "c1", "name": "refund", "content": RESULT},
        {"event.name": "gen_ai.choice", "index": 0, "message": {"role": "assistant", "content": "Done."}},
    ]
    found = read({"gen_ai.operation.name": "chat", "events": json.dumps(events)}, scope=PYDANTIC)
    assert [(m.role, m.text) for m in found.messages] == [("user", "hi"), ("assistant", ""), ("tool", ""), ("assistant", "Done.")]  # fmt: skip
    assert (found.messages[2].responses[0].text, found.messages[2].responses[0].tool_call_id) == ('{"ok":true}', "c1")
    assert len(found.output) == 1
    assert (found.history_complete, found.content) == (True, "full")
    cut = read({"gen_ai.operation.name": "chat", "events": json.dumps(events)[:-9]}, scope=PYDANTIC)
    assert (cut.history_complete, cut.content, cut.input) == (False, "truncated", ())


@pytest.mark.parametrize("where", ["events", "attributes"])
def test_quirk_08_the_whole_prompt_and_completion_as_one_value(where: str) -> None:
    whole = {"gen_ai.prompt": json.dumps([{"role": "user", "content": "hi"}]), "gen_ai.completion": "Bye"}
    events = tuple(SpanEvent(f"gen_ai.content.{k[7:]}", 1, {k: v}) for k, v in whole.items())
    chat = {"gen_ai.operation.name": "chat"}
    found = read(chat, events=events) if where == "events" else read(chat | whole)
    assert [(m.role, m.text) for m in found.messages] == [("user", "hi"), ("assistant", "Bye")]
    assert found.content == "full"


# -- how it ended --------------------------------------------------------------------------------
RAISED = exception("RuntimeError", "boom")
LANGSMITH_RAISED = exception("Exception", "RuntimeError('boom')Traceback (most recent call last):\n  ...\nRuntimeError: boom\n")  # fmt: skip
LANGSMITH_LATE = exception("Exception", "TimeoutError()Traceback (most recent call last):\n  ...\nTimeoutError\n")


@pytest.mark.parametrize(
    ("attributes", "changes", "expected"),
    [
        (LANGSMITH | {"gen_ai.completion": "{}"}, {"status_code": 1, "events": (LANGSMITH_RAISED,)}, ("failed", "RuntimeError", "boom")),
        (LANGSMITH | {"gen_ai.completion": "{}"}, {"status_code": 1, "events": (LANGSMITH_LATE,)}, ("unknown", "timeout", None)),
        (GENAI, {"status_code": 2, "events": (RAISED, RAISED), "scope": AUTOGEN}, ("failed", "RuntimeError", "boom")),
        (GENAI, {"status_code": 2, "events": (exception("TimeoutError"),), "scope": PYDANTIC}, ("unknown", "timeout", None)),
        (LANGFUSE | {"langfuse.observation.level": "ERROR", "langfuse.observation.status_message": "boom"}, {}, ("failed", "tool_error", "boom")),
        (LANGFUSE | {"langfuse.observation.level": "ERROR", "langfuse.observation.status_message": ""}, {"status_code": 2}, ("unknown", None, None)),
        (LANGFUSE | {"langfuse.observation.level": "ERROR", "langfuse.observation.status_message": "it did not answer in 2 s"}, {}, ("unknown", "timeout", "it did not answer in 2 s")),
        (LOGFIRE | {"error": '{"message": "Error running tool"}', "output": "An error occurred."}, {}, ("failed", "tool_error", "An error occurred.")),
        (GENAI | {"gen_ai.tool.status": "error"}, {"scope": STRANDS}, ("failed", "tool_error", None)),
        (SPRING, {"status_code": 2, "events": (exception("java.net.SocketTimeoutException", "Read timed out"),)}, ("unknown", "timeout", "Read timed out")),
    ],
)  # fmt: skip
def test_quirk_09_the_ways_an_error_shows(attributes: dict[str, Any], changes: dict[str, Any], expected: Any) -> None:
    (call,) = calls(trace({"id": 1, "name": "refund", "attributes": attributes, **changes}))
    assert (call.outcome, call.error_type, call.error_message) == expected
    assert call.result is None


def test_quirk_10_a_timeout_that_was_told_to_the_model_as_a_result() -> None:
    (call,) = calls(trace({"id": 1, "attributes": LOGFIRE | {"input": WIRE, "output": "Tool 'refund' timed out after 5 seconds."}}))  # fmt: skip
    assert (call.outcome, call.error_type) == ("unknown", "timeout")


@pytest.mark.parametrize("status", [0, 1])
@pytest.mark.parametrize("attributes", [LANGSMITH | {"gen_ai.completion": '{"output": "sent"}'}, SPRING | {"spring.ai.tool.call.result": "sent"}])  # fmt: skip
def test_quirk_11_ok_and_unset_are_both_well(status: int, attributes: dict[str, Any]) -> None:
    (call,) = calls(trace({"id": 1, "attributes": attributes, "status_code": status}))
    assert (call.outcome, call.result_text) == ("succeeded", "sent")


def test_quirk_11_a_run_that_ended_well_may_hold_a_call_that_failed() -> None:
    run = {"langsmith.span.kind": "chain", "gen_ai.operation.name": "chain", "gen_ai.prompt": '{"messages": [["user", "hi"]]}'}  # fmt: skip
    readings = trace(
        {"id": 1, "name": "agent", "attributes": run, "status_code": 1, "end": 9},
        {"id": 2, "parent": 1, "attributes": LANGSMITH, "status_code": 2},
    )
    (call,) = calls(readings)
    (made,) = build("c", readings).runs
    assert (call.outcome, made.error_type) == ("failed", None)


def test_quirk_12_a_failed_span_of_adk_has_its_name_and_the_model_its_arguments() -> None:
    request = {"config": {"system_instruction": "Be kind."}, "contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    response = {"content": {"role": "model", "parts": [{"function_call": {"name": "refund", "args": ARGUMENTS}}]}}
    model = {"gcp.vertex.agent.llm_request": json.dumps(request), "gcp.vertex.agent.llm_response": json.dumps(response), "gcp.vertex.agent.session_id": "s"}  # fmt: skip
    readings = trace(
        {"id": 1, "name": "invocation", "scope": ADK, "end": 9},
        {"id": 2, "parent": 1, "name": "agent_run [helper]", "scope": ADK, "end": 9},
        {"id": 3, "parent": 2, "name": "call_llm", "scope": ADK, "attributes": model, "end": 8},
        {"id": 4, "parent": 3, "name": "execute_tool refund", "scope": ADK, "status_code": 2, "events": (RAISED,)},
    )
    (call,) = calls(readings)
    assert (call.tool_name, call.arguments, call.outcome) == ("refund", ARGUMENTS, "failed")
    assert [r.kind for r in readings] == ["agent", "agent", "model", "tool"]
    assert readings[2].conversation_id == "s"
    assert build("c", readings).runs[0].agent_name == "helper"


# -- the wire ------------------------------------------------------------------------------------
def test_quirk_13_a_limit_evicts_the_oldest_attributes_first() -> None:
    found = read({"gen_ai.tool.call.result": '{"ok": true}'}, name="execute_tool refund", dropped_attributes_count=6)
    assert found.tool is not None
    assert (found.dialect, found.tool.name, found.content) == ("name_only", "refund", "truncated")
    assert (found.tool.arguments_fidelity, found.tool.result) == ("truncated", RESULT)


@pytest.mark.parametrize(
    ("attributes", "key"),
    [
        (MLFLOW, "mlflow.spanInputs"),
        (LANGSMITH, "gen_ai.prompt"),
        (LANGFUSE, "langfuse.observation.input"),
        (SPRING, "spring.ai.tool.call.arguments"),
    ],
)
def test_quirk_13_json_cut_by_a_limit_is_not_what_the_model_wrote(attributes: dict[str, Any], key: str) -> None:
    cut = json.dumps({"note": "x" * 500})[:256]
    found = read(attributes | {key: cut, "other": "y" * 256}, name="refund")
    assert found.tool is not None
    assert (found.tool.arguments, found.tool.arguments_fidelity, found.content) == (None, "truncated", "truncated")


def test_quirk_14_nested_attribute_values_are_as_good_as_json() -> None:
    nested = {"gen_ai.tool.call.arguments": ARGUMENTS | {"note": None, "tags": ["a", 1]}, "gen_ai.tool.call.result": RESULT}  # fmt: skip
    found = tool(GENAI | nested)
    assert found.arguments == {**ARGUMENTS, "note": None, "tags": ["a", 1]}
    assert (found.result, found.arguments_fidelity) == (RESULT, "exact")


def test_quirk_15_json_of_other_producers() -> None:
    span = {
        "traceId": "5B8EFFF798038103D269B633813FC60C",
        "spanId": "EEE19B7EC3C1B174",
        "name": "execute_tool refund",
        "kind": 1,
        "startTimeUnixNano": "1544712660000000000",
        "endTimeUnixNano": 1544712661000000000,
        "attributes": [
            {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}},
            {"key": "gen_ai.tool.name", "value": {"stringValue": "refund"}},
            {
                "key": "gen_ai.tool.call.arguments",
                "value": {
                    "kvlistValue": {
                        "values": [
                            {"key": "js", "value": {"intValue": 7}},
                            {"key": "python", "value": {"intValue": "7"}},
                            {"key": "nothing", "value": {}},
                        ]
                    }
                },
            },
        ],
        "status": {"code": 0},
    }
    (found,) = read_request(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode())
    assert (found.trace_id, found.span_id) == ("5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174")
    assert found.tool is not None
    assert found.tool.arguments == {"js": 7, "python": 7, "nothing": None}
    assert found.end_time_unix_nano - found.start_time_unix_nano == 1_000_000_000
    assert not found.status_error


# -- names, roots, wrappers ----------------------------------------------------------------------
@pytest.mark.parametrize(
    ("attributes", "changes", "name"),
    [
        (GENAI | {"gen_ai.tool.name": "shop-refund"}, {"scope": Scope("semantic_kernel.functions.kernel_function")}, "refund"),
        (LOGFIRE, {"name": "Function: {name}"}, "refund"),
        (MLFLOW, {"name": "refund_2"}, "refund"),
        (SPRING, {"name": "tool_call refund"}, "refund"),
        ({"span.type": "tool", "tool_name": "mcp__shop__refund"}, {"name": "claude_code.tool"}, "refund"),
        (OI, {"name": "SimpleTool"}, "refund"),
        ({"gen_ai.tool.name": "refund", "tool_arguments": WIRE}, {"name": "running tool"}, "refund"),
    ],
)  # fmt: skip
def test_quirk_16_the_name_of_the_tool_is_not_that_of_the_span(
    attributes: dict[str, Any], changes: dict[str, Any], name: str
) -> None:
    assert tool(attributes, **changes).name == name


@pytest.mark.parametrize(
    ("attributes", "changes"),
    [
        ({"tools": ["refund"]}, {"name": "running tools", "scope": PYDANTIC}),
        (GENAI | {"gen_ai.tool.name": "(merged tools)"}, {"name": "execute_tool (merged)", "scope": ADK}),
        ({}, {"name": "execute_tool (merged)", "scope": ADK}),
        ({"langfuse.observation.type": "chain"}, {"name": "tools"}),
        ({"langsmith.span.kind": "chain", "gen_ai.operation.name": "chain"}, {"name": "tools"}),
        ({"gen_ai.operation.name": "execute_event_loop_cycle"}, {"scope": STRANDS}),
        ({"logfire.msg_template": "Turn {turn} for agent x"}, {"scope": Scope("logfire.openai_agents")}),
        ({"spring.ai.kind": "advisor", "gen_ai.operation.name": "framework"}, {}),
    ],
)
def test_quirk_17_wrappers_are_no_calls(attributes: dict[str, Any], changes: dict[str, Any]) -> None:
    assert read(attributes, **changes).kind == "other"


def test_quirk_17_setting_up_is_no_run_and_the_topmost_agent_is_the_root() -> None:
    created = read({"gen_ai.operation.name": "create_agent"}, trace_id="b" * 32, parent_span_id="", scope=AUTOGEN)
    listed = read({"mcp.method.name": "tools/list"}, trace_id="c" * 32, parent_span_id="")
    workflow = trace(
        {"id": 1, "attributes": {"gen_ai.operation.name": "invoke_workflow"}, "end": 9},
        {"id": 2, "parent": 1, "attributes": {"gen_ai.operation.name": "invoke_agent"}, "end": 8},
        {"id": 3, "parent": 2, "attributes": GENAI},
    )
    timeline = build("c", [created, listed, *workflow])
    assert [run.run_id[-16:] for run in timeline.runs] == [f"{1:016x}"]
    assert (timeline.runs[0].start_time_unix_nano, timeline.runs[0].spans) == (1_000_000, 5)
    assert build("c", [created, listed]).runs == ()


def test_quirk_18_two_instrumentations_make_one_call() -> None:
    answered = {"langfuse.observation.input": WIRE, "langfuse.observation.output": '{"ok": true}'}
    shown = GENAI | {"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.arguments": WIRE}
    one = trace(
        {"id": 1, "attributes": LANGFUSE | answered, "name": "refund", "scope": Scope("langfuse-sdk"), "end": 9}
    )
    two = [msgspec.structs.replace(r, trace_id="b" * 32) for r in trace({"id": 2, "attributes": shown, "end": 9})]
    (call,) = calls([*one, *two])
    assert (call.tool_call_id, call.arguments, call.result, len(call.span_ids)) == ("c1", ARGUMENTS, RESULT, 2)


def test_quirk_19_the_session_is_on_the_root_only() -> None:
    run = {"spring.ai.kind": "chat_client", "spring.ai.chat.client.conversation.id": "conv", "user.id": "u"}
    readings = trace({"id": 1, "attributes": run, "end": 9}, {"id": 2, "parent": 1, "attributes": SPRING})
    (timeline,) = conversations(list(reversed(readings)))
    (call,) = [e for e in timeline.events if isinstance(e, ToolCall)]
    assert (timeline.conversation_id, call.principal) == ("conv", "u")


def test_quirk_20_times_are_those_of_the_span_and_equal_ones_keep_the_story() -> None:
    stated = {"gen_ai.event.start_time": "1999-01-01T00:00:00+00:00", "gen_ai.execute_tool.duration": 99.0}
    assert read(GENAI | stated, scope=STRANDS).start_time_unix_nano == 1_000
    asked = [{"role": "user", "content": "hi"}]
    wants = {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "function": {"name": "refund", "arguments": WIRE}}]}  # fmt: skip
    got = {"role": "tool", "tool_call_id": "c1", "content": '{"ok": true}'}

    def model(history: list[Any], said: Any) -> dict[str, Any]:
        return {
            "langfuse.observation.type": "generation",
            "langfuse.observation.input": json.dumps(history),
            "langfuse.observation.output": json.dumps(said),
        }

    readings = trace(  # all within one millisecond, as clocks that are rounded show it
        {
            "id": 3,
            "at": 1,
            "end": 1,
            "attributes": model([*asked, wants, got], {"role": "assistant", "content": "Done."}),
        },
        {"id": 2, "at": 1, "end": 1, "name": "refund", "attributes": LANGFUSE | {"langfuse.observation.input": WIRE}},
        {"id": 1, "at": 1, "end": 1, "attributes": model(asked, wants)},
    )
    told = [type(e).__name__ for e in build("c", readings).events]
    assert told == ["UserMessage", "AssistantMessage", "ToolCall", "AssistantMessage"]


# -- messages ------------------------------------------------------------------------------------
def result_part(**fields: Any) -> dict[str, Any]:
    return {"type": "tool_call_response", "id": "c1", **fields}


@pytest.mark.parametrize(
    "message",
    [
        {"role": "tool", "parts": [result_part(response=RESULT)]},
        {"role": "user", "parts": [result_part(result=RESULT, name=None)]},
        {"role": "assistant", "parts": [result_part(response=json.dumps(RESULT))]},
        {"role": "tool", "tool_call_id": "c1", "content": '{"ok": true}', "name": None},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"json": RESULT}]}}]},
        {"role": "user", "parts": [{"function_response": {"id": "c1", "name": None, "response": RESULT}}]},
        {"type": "tool", "content": '{"ok": true}', "tool_call_id": "c1", "additional_kwargs": {}, "status": "success"},
    ],
)
def test_quirk_21_results_in_messages_have_many_shapes(message: dict[str, Any]) -> None:
    sent = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps([message])}
    (found,) = all_messages([read(sent)]).values()
    assert (found.role, found.responses[0].tool_call_id) == ("tool", "c1")
    assert json.loads(found.responses[0].text) == RESULT


def test_quirk_21_messages_without_parts() -> None:
    sent = json.dumps([{"role": "assistant", "content": "Done.", "name": "support_agent"}])
    found = read({"gen_ai.operation.name": "invoke_agent", "gen_ai.output.messages": sent})
    assert [m.text for m in found.messages] == ["Done."]


def test_quirk_22_a_pending_copy_is_no_second_call_and_order_of_arrival_does_not_matter() -> None:
    run = {"logfire.msg_template": "OpenAI Agents trace: {name}", "name": "flow"}
    readings = trace(
        {"id": 1, "attributes": run, "end": 9},
        {"id": 2, "parent": 1, "attributes": LOGFIRE | {"input": WIRE, "output": "sent"}},
        {"id": 3, "parent": 1, "at": 2, "end": 2, "attributes": LOGFIRE | {"logfire.span_type": "pending_span"}},
    )
    (call,) = calls(readings)
    assert call.result_text == "sent"
    assert build("c", readings) == build("c", reversed(readings))


def test_quirk_23_secrets_in_metadata_are_not_read() -> None:
    leaked = {"langsmith.metadata.LANGSMITH_API_KEY": "lsv2_secret", "langsmith.metadata.thread_id": "conv"}
    found = read(LANGSMITH | leaked | {"gen_ai.prompt": WIRE})
    assert found.conversation_id == "conv"
    assert b"lsv2_secret" not in msgspec.json.encode(found)


# -- Claude Code: the call, who allowed it, how it ended -----------------------------------------
@pytest.mark.parametrize(
    ("below", "outcome", "decision"),
    [
        ([("execution", {"success": True})], "succeeded", None),
        ([("blocked_on_user", {"decision": "accept", "source": "user_permanent"}), ("execution", {"success": True})], "succeeded", "approved"),
        ([("blocked_on_user", {"decision": "accept", "source": "config"}), ("execution", {"success": True})], "succeeded", "auto"),
        ([("blocked_on_user", {"decision": "reject", "source": "user_reject"})], "denied", "rejected"),
        ([("execution", {"success": False, "error": "Error:ETIMEDOUT"})], "unknown", None),
        ([("execution", {"success": False, "error": "ShellError"})], "failed", None),
        ([("execution", {"success": "false"})], "failed", None),
        ([("execution", {"error": "boom", "error.type": "TimeoutError"})], "unknown", None),
    ],
)  # fmt: skip
def test_quirk_09_what_stands_below_a_call_says_how_it_ended(below: Any, outcome: str, decision: str | None) -> None:
    told = SpanEvent("tool.output", 1, {"input": WIRE, "output": ""})
    parts = [
        {
            "id": 2 + i,
            "parent": 1,
            "name": f"claude_code.tool.{kind}",
            "attributes": {"span.type": f"tool.{kind}"} | said,
        }
        for i, (kind, said) in enumerate(below)
    ]
    above = {"id": 1, "name": "claude_code.tool", "attributes": {"span.type": "tool", "tool_name": "refund"}, "events": (told,), "end": 9}  # fmt: skip
    (call,) = calls(trace(above, *parts))
    assert (call.arguments, call.outcome) == (ARGUMENTS, outcome)
    assert (call.approval.decision if call.approval else None) == decision
    assert len(call.span_ids) == 1 + len(below)


def test_quirk_17_a_run_of_the_first_pydantic_format_is_told_once() -> None:
    events = [
        {"event.name": "gen_ai.user.message", "role": "user", "content": "hi"},
        {"event.name": "gen_ai.choice", "message": {"role": "assistant", "content": "Done."}},
    ]
    every = [events[0], {"event.name": "gen_ai.assistant.message", "role": "assistant", "content": "Done."}]
    readings = trace(
        {"id": 1, "name": "agent run", "scope": PYDANTIC, "end": 9, "attributes": {"agent_name": "helper", "all_messages_events": json.dumps(every), "final_result": "Done."}},
        {"id": 2, "parent": 1, "scope": PYDANTIC, "attributes": {"gen_ai.operation.name": "chat", "events": json.dumps(events)}},
    )  # fmt: skip
    timeline = build("c", readings)
    assert (texts(timeline, UserMessage), texts(timeline, AssistantMessage)) == (["hi"], ["Done."])
    assert timeline.runs[0].agent_name == "helper"


def test_quirk_08_content_in_log_records() -> None:
    body = {"content": "hi"}
    named = {"event.name": "gen_ai.user.message"}
    forms = [("gen_ai.user.message", body, {}), ("", body, named), ("", json.dumps(body), named)]
    for name, content, attributes in forms:
        span = trace({"id": 1, "attributes": {"gen_ai.operation.name": "chat"}})
        record = LogRecord("a" * 32, f"{1:016x}", name, 1, content, attributes, {}, Scope(), 1, "log")
        found = read_log_record(record, History())
        assert found
        assert texts(build("c", [found, *span]), UserMessage) == ["hi"]


def test_quirk_18_two_instrumentations_with_a_trace_each_make_one_run() -> None:
    call = GENAI | {"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.arguments": WIRE}
    agent = {"id": 1, "end": 9, "attributes": {"gen_ai.operation.name": "invoke_agent"}, "scope": AUTOGEN}
    one = trace(agent, {"id": 2, "parent": 1, "attributes": call, "scope": AUTOGEN})
    two = trace(
        {"id": 3, "at": 1, "end": 9, "attributes": OI | {"openinference.span.kind": "AGENT"}, "scope": Scope("oi")},
        {
            "id": 4,
            "at": 2,
            "parent": 3,
            "attributes": OI | {"tool.id": "c1", "input.value": WIRE},
            "scope": Scope("oi"),
        },
    )
    timeline = build("c", [*one, *(msgspec.structs.replace(r, trace_id="b" * 32) for r in two)])
    assert [run.spans for run in timeline.runs] == [4]
    assert [len(e.span_ids) for e in timeline.events if isinstance(e, ToolCall)] == [2]


QUIRKS: dict[int, tuple[str, ...]] = {
    number: tuple(name for name in sorted(globals()) if name.startswith(f"test_quirk_{number:02d}_"))
    for number in range(1, 24)
}


def test_every_quirk_has_a_test() -> None:
    assert [number for number, names in QUIRKS.items() if not names] == []
