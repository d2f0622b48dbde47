"""What only one framework does, dialect by dialect."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otelmon.assemble.outcome import derive_outcome
from otelmon.assemble.timeline import build
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolDefinition
from otelmon.vocabulary.span import Scope
from tests.assemble.dialect_spans import exception, read, tool

GENAI = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "refund"}
ADK, PYDANTIC, LOGFIRE = (Scope(name) for name in ("gcp.vertex.agent", "pydantic-ai", "logfire.openai_agents"))
RAISED = (exception("RuntimeError", "boom"),)


# -- Google ADK ----------------------------------------------------------------------------------
def test_gemini_schemas_become_json_schemas() -> None:
    parameters = {
        "type": "OBJECT",
        "properties": {"type": {"type": "STRING"}, "tags": {"type": "ARRAY", "items": {"type": "STRING"}}},
    }
    declared = [{"function_declarations": [{"name": "refund", "description": "Refund.", "parameters": parameters}]}]
    found = read({"gcp.vertex.agent.llm_request": json.dumps({"config": {"tools": declared}})}, name="call_llm")
    (definition,) = found.definitions
    assert (definition.name, definition.description) == ("refund", "Refund.")
    assert definition.input_schema == {
        "type": "object",
        "properties": {"type": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}},
    }


def test_a_model_span_of_adk_whose_content_is_hidden_says_so() -> None:
    hidden = {"gcp.vertex.agent.llm_request": "{}", "gcp.vertex.agent.llm_response": "{}"}
    found = read(hidden, name="call_llm", scope=ADK)
    assert (found.kind, found.content, found.history_complete) == ("model", "off", False)


def test_a_call_of_adk_whose_content_is_hidden_has_no_arguments() -> None:
    hidden = {"gcp.vertex.agent.tool_call_args": "{}", "gcp.vertex.agent.tool_response": "{}"}
    found = read(GENAI | hidden, scope=ADK)
    assert found.tool is not None
    assert (found.tool.arguments_fidelity, found.tool.result_fidelity, found.content) == ("absent", "absent", "off")
    without = tool(GENAI | hidden | {"gcp.vertex.agent.tool_response": '{"ok": true}'}, scope=ADK)
    assert (without.arguments, without.result) == ({}, {"ok": True})


@pytest.mark.parametrize("text", ["<not serializable>", '{"result": "<not specified>"}'])
def test_placeholders_of_adk_are_no_results(text: str) -> None:
    called = GENAI | {"gcp.vertex.agent.tool_call_args": '{"id": 1}', "gcp.vertex.agent.tool_response": text}
    found = tool(called, scope=ADK)
    assert (found.arguments, found.result_text, found.result_fidelity) == ({"id": 1}, None, "absent")


@pytest.mark.parametrize("text", ["not json", "[]", '{"config": 1, "contents": 2}'])
def test_a_request_of_adk_may_be_anything(text: str) -> None:
    found = read({"gcp.vertex.agent.llm_request": text, "gcp.vertex.agent.llm_response": text}, name="call_llm")
    assert (found.kind, found.input, found.definitions) == ("model", (), ())


# -- Pydantic AI ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("more", "changes", "outcome"),
    [
        ({}, {}, "pending"),
        ({"gen_ai.tool.call.result": "sent"}, {}, "succeeded"),
        ({"gen_ai.tool.call.result": "null"}, {}, "succeeded"),
        ({}, {"status_code": 2, "events": RAISED}, "failed"),
        ({}, {"scope": Scope("another")}, "succeeded"),
    ],
)
def test_a_call_that_was_put_off_is_pending(more: dict[str, Any], changes: dict[str, Any], outcome: str) -> None:
    fields = tool(GENAI | {"gen_ai.tool.call.arguments": "{}"} | more, **{"scope": PYDANTIC} | changes)
    assert derive_outcome(fields).outcome == outcome


def test_a_call_without_content_was_not_put_off() -> None:
    assert derive_outcome(tool(GENAI, scope=PYDANTIC)).outcome == "succeeded"


def test_the_first_format_defines_its_tools_beside_the_events() -> None:
    parameters = {"function_tools": [{"name": "refund", "parameters_json_schema": {"type": "object"}}]}
    chat = {"gen_ai.operation.name": "chat", "model_request_parameters": json.dumps(parameters)}
    found = read(chat, scope=PYDANTIC)
    assert [(d.name, d.input_schema) for d in found.definitions] == [("refund", {"type": "object"})]
    assert found.content == "off"


def test_a_run_that_failed_has_no_answer_and_all_its_messages() -> None:
    call = {"id": "c1", "function": {"name": "refund", "arguments": "{}"}}
    events = [
        {"event.name": "gen_ai.user.message", "content": "hi"},
        {"event.name": "gen_ai.assistant.message", "role": "assistant", "tool_calls": [call]},
    ]
    run = {"agent_name": "helper", "all_messages_events": json.dumps(events)}
    found = read(run, scope=PYDANTIC, status_code=2, events=RAISED)
    assert (found.kind, len(found.input), found.output) == ("agent", 2, ())
    finished = read(run | {"final_result": "Done."}, scope=PYDANTIC)
    assert [m.text for m in finished.messages if m.digest in finished.output] == ["Done."]


# -- Logfire -------------------------------------------------------------------------------------
RESPONSE = {"output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}], "tools": [{"type": "function", "name": "refund", "parameters": {"type": "object"}}]}  # fmt: skip


@pytest.mark.parametrize(
    "attributes",
    [
        {"gen_ai.operation.name": "chat", "raw_input": '[{"role": "user", "content": "hi"}]', "response": json.dumps(RESPONSE)},
        {"request_data": json.dumps({"messages": [{"role": "user", "content": "hi"}], "tools": RESPONSE["tools"]}), "response_data": '{"message": {"role": "assistant", "content": "Done."}}'},
    ],
)  # fmt: skip
def test_a_call_of_a_model_without_events(attributes: dict[str, Any]) -> None:
    found = read(attributes, scope=LOGFIRE)
    assert (found.kind, [m.text for m in found.messages]) == ("model", ["hi", "Done."])
    assert [d.name for d in found.definitions] == ["refund"]
    assert found.history_complete
    kept_there = read(attributes | {"gen_ai.request.previous_response_id": "r-1"}, scope=LOGFIRE)
    assert not kept_there.history_complete
    assert read({"gen_ai.operation.name": "chat"}, scope=LOGFIRE).content == "off"


def test_the_group_of_a_trace_is_the_conversation() -> None:
    run = {"logfire.msg_template": "OpenAI Agents trace: {name}", "name": "flow"}
    assert read(run | {"group_id": "null", "metadata": "null"}).conversation_id is None
    found = read(run | {"group_id": "thread-1", "metadata": '{"user_id": "u"}'})
    assert (found.kind, found.conversation_id, found.principal) == ("agent", "thread-1", "u")
    assert read({"logfire.msg_template": "Agent run: {name!r}", "name": "helper"}).agent_name == "helper"


def test_a_tool_of_a_server_is_known_to_be_one() -> None:
    called = {"logfire.msg_template": "Function: {name}", "name": "refund", "mcp_data": '{"server": "shop"}'}
    assert tool(called).server == "shop"
    assert read({"logfire.msg_template": "Function: {name}"}).kind == "other"


# -- Spring AI -----------------------------------------------------------------------------------
def test_a_model_call_of_spring_has_what_was_put_on_it() -> None:
    chat = {"spring.ai.kind": "chat_model", "gen_ai.operation.name": "chat", "gen_ai.prompt": '["Be kind.", "hi"]', "gen_ai.completion": '["Done."]', "spring.ai.chat.client.conversation.id": "conv"}  # fmt: skip
    found = read(chat)
    assert (found.kind, found.conversation_id) == ("model", "conv")
    assert [(m.role, m.text) for m in found.messages] == [("user", "Be kind.\nhi"), ("assistant", "Done.")]


def test_the_milestones_of_spring_had_the_prompt_on_the_client() -> None:
    client = {"spring.ai.kind": "chat_client", "spring.ai.chat.client.system.text": "Be kind.", "spring.ai.chat.client.user.text": "hi"}  # fmt: skip
    found = read(client)
    assert [(m.role, m.text) for m in found.messages] == [("system", "Be kind."), ("user", "hi")]
    assert read({"spring.ai.kind": "tool_call"}, name="tool_call ").kind == "other"


def test_a_tool_of_spring_is_named_by_its_definition_or_its_span() -> None:
    described = {"spring.ai.kind": "tool_call", "spring.ai.tool.definition.description": "Refund.", "spring.ai.tool.definition.schema": '{"type": "object"}'}  # fmt: skip
    found = read(described, name="tool_call refund")
    assert found.tool is not None
    assert (found.tool.name, found.tool.description) == ("refund", "Refund.")
    assert [(d.name, d.description, d.input_schema) for d in found.definitions] == [
        ("refund", "Refund.", {"type": "object"})
    ]


# -- Claude Code ---------------------------------------------------------------------------------
CLAUDE = Scope("com.anthropic.claude_code.tracing")


@pytest.mark.parametrize(
    ("prompt", "content", "texts"),
    [("hi", "full", ["hi"]), ("<REDACTED>", "redacted", []), (None, "off", [])],
)
def test_a_prompt_may_be_hidden(prompt: str | None, content: str, texts: list[str]) -> None:
    attributes = {"span.type": "interaction"} | ({} if prompt is None else {"user_prompt": prompt})
    found = read(attributes, name="claude_code.interaction", scope=CLAUDE)
    assert (found.kind, found.content, [m.text for m in found.messages]) == ("agent", content, texts)


@pytest.mark.parametrize("name", ["hook", "tool", "tool.blocked_on_user"])
def test_spans_that_say_nothing_of_a_call_are_other(name: str) -> None:
    found = read({"span.type": name}, name=f"claude_code.{name}", scope=CLAUDE)
    assert (found.kind, found.tool) == ("other", None)


def test_a_request_to_the_model_has_no_content() -> None:
    found = read({"span.type": "llm_request", "model": "m"}, name="claude_code.llm_request", scope=CLAUDE)
    assert (found.kind, found.content, found.model) == ("model", "off", "m")


# -- Langfuse, LangSmith, MLflow -----------------------------------------------------------------
def test_a_span_inside_is_a_wrapper_and_at_the_root_a_run() -> None:
    span = {"langfuse.observation.type": "span", "langfuse.observation.input": '{"args": ["hi"], "kwargs": {}}'}
    assert read(span).kind == "other"
    assert read(span, parent_span_id="").kind == "agent"
    assert read(span | {"langfuse.internal.is_app_root": True}).kind == "agent"


def test_the_step_that_asks_the_model_is_no_agent_and_reprs_have_their_json() -> None:
    node = {"langfuse.observation.type": "agent", "langfuse.observation.metadata.langgraph_node": "agent"}
    assert read(node, name="agent").kind == "other"
    assert read(node, name="billing").kind == "agent"
    called = {"langfuse.observation.type": "tool", "langfuse.observation.input": "{'id': 1}"}
    assert tool(called, name="refund").arguments_fidelity == "decoded"
    exact = tool(called | {"langfuse.observation.metadata.inputs": '{"id": 1}'}, name="refund")
    assert (exact.arguments, exact.arguments_fidelity) == ({"id": 1}, "exact")


def test_the_model_and_its_tools_in_a_generation() -> None:
    asked = {"messages": [{"role": "user", "content": "hi"}], "tools": [{"name": "refund", "parameters": {}}]}
    found = read(
        {
            "langfuse.observation.type": "generation",
            "langfuse.observation.model.name": "m",
            "langfuse.observation.input": json.dumps(asked),
            "langfuse.observation.output": "Done.",
        }
    )
    assert (found.model, [m.text for m in found.messages]) == ("m", ["hi", "Done."])
    assert [d.name for d in found.definitions] == ["refund"]


@pytest.mark.parametrize(
    ("message", "kind", "said"),
    [
        ("ValueError('bad')Traceback (most recent call last):\n x", "ValueError", "bad"),
        ("KeyError('id')", "KeyError", "id"),
        ("plain words", "Exception", "plain words"),
    ],
)
def test_the_type_of_an_exception_is_in_its_message(message: str, kind: str, said: str) -> None:
    attributes = {"langsmith.span.kind": "tool", "gen_ai.tool.name": "refund"}
    found = tool(attributes, events=(exception("Exception", message),))
    assert (found.error_type, found.error_message) == (kind, said)
    assert tool(attributes, events=(exception("app.Failure", message),)).error_type == "app.Failure"


def test_wrappers_of_langsmith_and_mlflow_are_runs_only_at_the_root() -> None:
    chain, task = {"langsmith.span.kind": "chain"}, {"mlflow.spanType": '"CHAIN"'}
    assert [read(a).kind for a in (chain, task)] == ["other", "other"]
    assert [read(a, parent_span_id="").kind for a in (chain, task)] == ["agent", "agent"]
    assert read({"mlflow.spanType": '"PARSER"'}, parent_span_id="").kind == "other"


def test_hidden_inputs_and_outputs_of_langsmith_are_no_arguments() -> None:
    attributes = {"langsmith.span.kind": "tool", "gen_ai.tool.name": "refund", "gen_ai.prompt": "{}"}
    hidden = tool(attributes | {"gen_ai.completion": "{}"})
    assert (hidden.arguments_fidelity, hidden.result_fidelity) == ("absent", "absent")
    shown = tool(attributes | {"gen_ai.completion": '{"output": "ok"}'})
    assert (shown.arguments, shown.result_text) == ({}, "ok")


def test_a_run_of_langsmith_has_its_agent_and_its_answer_unless_it_failed() -> None:
    run = {"langsmith.span.kind": "chain", "gen_ai.completion": '{"output": "Done."}'}
    found = read(run, parent_span_id="", name="support")
    assert (found.agent_name, [m.text for m in found.messages]) == ("support", ["Done."])
    failed = read(run, parent_span_id="", events=RAISED)
    assert (failed.output, failed.error_type) == ((), "RuntimeError")
    named = read(run | {"langsmith.metadata.lc_agent_name": "helper"}, parent_span_id="", name="support")
    assert named.agent_name == "helper"
    assert read(run, name="support").agent_name is None


def test_the_session_of_mlflow_is_where_a_framework_left_it() -> None:
    run = {"mlflow.spanType": '"AGENT"'}
    found = read(run | {"metadata": '{"thread_id": "t-1", "user_id": "u"}'})
    assert (found.conversation_id, found.principal) == ("t-1", "u")
    stated = read(run | {"metadata": "7", "mlflow.trace.session": '"s"', "mlflow.trace.user": '"v"'})
    assert (stated.conversation_id, stated.principal) == ("s", "v")


# -- definitions that only calls show ------------------------------------------------------------
@pytest.mark.parametrize("listed", [False, True])
def test_the_tools_that_were_called_are_not_all_the_tools(listed: bool) -> None:
    called = {"spring.ai.kind": "tool_call", "spring.ai.tool.definition.name": "refund", "spring.ai.tool.definition.schema": '{"type": "object"}'}  # fmt: skip
    agent = {"gen_ai.operation.name": "invoke_agent"} | (
        {"gen_ai.tool.definitions": json.dumps([{"type": "function", "name": "find"}])} if listed else {}
    )
    readings = [
        read(agent, span_id="1" * 16, parent_span_id="", end_time_unix_nano=9_000),
        read(called, span_id="2" * 16, parent_span_id="1" * 16),
    ]
    timeline = build("c", readings)
    shown = {e.name: e.of_call for e in timeline.events if isinstance(e, ToolDefinition)}
    assert shown == {"refund": True} | ({"find": False} if listed else {})
    force = View(timeline).tools_in_force(timeline.runs[0].run_id)
    assert (force.complete, set(force.tools)) == (listed, set(shown))
