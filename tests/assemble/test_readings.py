"""The door to the dialects: the strongest marker wins, and nothing makes it fail."""

from __future__ import annotations

import pkgutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from otelmon.assemble import dialects as package
from otelmon.assemble.dialects import dialects
from otelmon.assemble.history import History
from otelmon.assemble.readings import dialect_of, read_span
from otelmon.vocabulary.messages import ReadingBatch, decode_detect_input, encode
from otelmon.vocabulary.span import Scope, SpanEvent
from tests.assemble.dialect_spans import exception, make_span, read

SHIM = {"otelmon.shim.version": "1"}
OI = {"openinference.span.kind": "TOOL", "tool.name": "t"}
TRACELOOP = {"traceloop.span.kind": "tool", "traceloop.entity.name": "t"}
MCP = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "t"}
VERCEL = {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "t"}
GENAI = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t"}
PENDING = {"logfire.span_type": "pending_span"}
LANGFUSE = {"langfuse.observation.type": "tool"}
MLFLOW = {"mlflow.spanType": '"TOOL"'}
LANGSMITH = {"langsmith.span.kind": "tool"}
SPRING = {"spring.ai.kind": "tool_call", "spring.ai.tool.definition.name": "t"}
STRANDS = {"gen_ai.system": "strands-agents", "gen_ai.operation.name": "execute_tool"}
ADK = {"gcp.vertex.agent.llm_request": "{}"}
PYDANTIC = {"gen_ai.tool.name": "t", "tool_arguments": "{}"}
LOGFIRE_AGENTS = {"logfire.msg_template": "Function: {name}", "name": "t"}
STRONGEST_FIRST = [
    ("logfire", PENDING), ("otelmon", SHIM), ("openinference", OI), ("langfuse", LANGFUSE), ("mlflow", MLFLOW),
    ("langsmith", LANGSMITH), ("openllmetry", TRACELOOP), ("mcp", MCP), ("vercel", VERCEL), ("spring_ai", SPRING),
    ("strands", STRANDS), ("google_adk", ADK), ("pydantic_ai", PYDANTIC), ("logfire_agents", LOGFIRE_AGENTS),
    ("genai", GENAI), ("other", {}),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(STRONGEST_FIRST)))
def test_the_strongest_marker_wins(place: int) -> None:
    name, _ = STRONGEST_FIRST[place]
    weaker: dict[str, Any] = {}
    for _, attributes in STRONGEST_FIRST[place:]:
        weaker |= attributes
    assert dialect_of(make_span(weaker)).name == name


def test_a_dialect_is_found_by_being_there() -> None:
    modules = {m.name for m in pkgutil.iter_modules(package.__path__) if not m.name.startswith("_")}
    assert {d.name for d in dialects()} == modules
    priorities = [d.priority for d in dialects()]
    assert priorities == sorted(priorities)
    assert len(set(priorities)) == len(priorities)


def test_no_scope_decides_the_dialect() -> None:
    assert dialect_of(make_span(OI, scope=Scope("app"))).name == "openinference"
    assert dialect_of(make_span({}, scope=Scope("openinference.instrumentation.x"))).name == "other"


def test_only_dialects_name_foreign_keys() -> None:
    """Nothing else in the stage knows how an instrumentation spells anything."""
    folder = Path(package.__path__[0]).parent
    for path in folder.glob("*.py"):
        text = path.read_text()
        for prefix in ('"gen_ai.', '"traceloop.', '"openinference.', '"llm.', '"ai.', '"mcp.', '"http.', '"service.'):
            assert prefix not in text, (path.name, prefix)


def test_the_place_of_a_span_comes_from_its_resource() -> None:
    resource = {
        "service.name": "shop",
        "service.namespace": "eu",
        "service.version": "1.2",
        "deployment.environment.name": "prod",
        "deployment.environment": "old",
        "k8s.pod.name": "pod-1",
        "host.name": "node",
        "workflow.id": "wf-7",
    }
    found = read({}, resource=resource)
    assert (found.service_name, found.service_namespace, found.agent_version) == ("shop", "eu", "1.2")
    assert (found.environment, found.host, found.trigger) == ("prod", "pod-1", "wf-7")
    assert read({}, resource={"service.instance.id": 7, "deployment.environment": "dev"}).host == "7"
    assert read({}, resource={}).service_name == ""
    assert read({"workflow.id": "wf-8"}, resource=resource).trigger == "wf-8"


def test_two_resources_are_not_confused() -> None:
    memory = History()
    spans = [make_span({}, resource={"service.name": name}) for name in ("a", "b", "a")]
    assert [read_span(span, memory).service_name for span in spans] == ["a", "b", "a"]


@pytest.mark.parametrize(
    "attributes",
    [
        {
            "http.request.method": "POST",
            "url.full": "https://api/x",
            "http.response.status_code": 200,
            "http.request.resend_count": 1,
            "http.request.header.idempotency-key": ["k-1"],
        },
        {
            "http.method": "POST",
            "http.url": "https://api/x",
            "http.status_code": "200",
            "http.resend_count": "1",
            "http.request.header.idempotency_key": "k-1",
        },
    ],
)
def test_an_http_client_span_is_evidence(attributes: dict[str, Any]) -> None:
    found = read(attributes, kind=3)
    assert found.kind == "http"
    assert found.http is not None
    assert (found.http.method, found.http.url, found.http.status_code) == ("POST", "https://api/x", 200)
    assert (found.http.resend_count, found.http.idempotency_key) == (1, "k-1")
    assert read(attributes, kind=2).kind == "other"


def test_an_http_span_without_a_whole_url_is_put_together() -> None:
    attributes = {"http.request.method": "GET", "server.address": "api", "url.path": "/x", "error.type": "timeout"}
    found = read(attributes, kind=3).http
    assert found is not None
    assert (found.url, found.status_code, found.resend_count, found.error_type) == ("api/x", None, 0, "timeout")


@pytest.mark.parametrize(
    ("value", "number"),
    [(200, 200), ("200", 200), (200.0, 200), (200.5, None), (True, None), ("--2", None), ("1e3", None), (None, None)],
)
def test_numbers_are_read_from_any_encoding(value: Any, number: int | None) -> None:
    found = read({"http.request.method": "GET", "http.response.status_code": value}, kind=3).http
    assert found is not None
    assert found.status_code == number


def test_an_unknown_span_keeps_what_any_span_has() -> None:
    attributes = {"session.id": "c-1", "user.id": "u-1", "error.type": "E", "gen_ai.agent.name": "a"}
    found = read(attributes, name="POST /chat", status_code=2, dropped_attributes_count=2, dropped_events_count=1)
    assert (found.kind, found.dialect, found.name) == ("other", "other", "POST /chat")
    assert (found.conversation_id, found.principal, found.agent_name) == ("c-1", "u-1", "a")
    assert (found.status_error, found.error_type, found.dropped) == (True, "E", 3)


def test_a_span_with_a_tool_s_name_and_nothing_else_is_a_call() -> None:
    found = read({}, name="execute_tool refund")
    assert found.tool is not None
    assert (found.kind, found.tool.name, found.content) == ("tool", "refund", "off")
    assert read({}, name="execute_tool ").kind == "other"
    assert read({}, name="garden.tool").kind == "other"


KEYS = [
    "otelmon.shim.version", "otelmon.call.outcome", "otelmon.call.args_fidelity", "otelmon.call.attempt",
    "otelmon.approval.decision", "otelmon.tool.annotations", "otelmon.tool.effect", "otelmon.content.capture",
    "openinference.span.kind", "tool.name", "tool.id", "tool.parameters", "input.value", "input.mime_type",
    "output.value", "metadata", "llm.model_name", "llm.tools.0.tool.json_schema", "llm.input_messages.0.message.role",
    "llm.input_messages.0.message.content", "llm.input_messages.1.message.contents.0.message_content.text",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.name", "llm.input_messages.x.message.role",
    "traceloop.span.kind", "traceloop.entity.name", "traceloop.entity.input", "traceloop.entity.output",
    "traceloop.workflow.name", "traceloop.association.properties.session_id", "llm.request.type",
    "llm.request.functions.0.name", "llm.request.functions.0.parameters", "gen_ai.prompt.0.role",
    "gen_ai.prompt.0.content", "gen_ai.prompt.0.tool_calls.0.arguments", "gen_ai.completion.0.role",
    "mcp.method.name", "jsonrpc.request.id", "fastmcp.server.name", "server.address", "server.port",
    "ai.operationId", "ai.toolCall.name", "ai.toolCall.args", "ai.toolCall.result", "ai.prompt", "ai.prompt.messages",
    "ai.prompt.tools", "ai.response.text", "ai.response.toolCalls",
    "gen_ai.operation.name", "gen_ai.tool.name", "gen_ai.tool.call.id", "gen_ai.tool.call.arguments",
    "gen_ai.tool.call.result", "gen_ai.tool.definitions", "gen_ai.input.messages", "gen_ai.output.messages",
    "gen_ai.system_instructions", "gen_ai.conversation.id", "pydantic_ai.all_messages", "final_result",
    "tool_arguments", "tool_response", "error.type", "http.request.method", "http.response.status_code",
    "http.request.header.idempotency-key", "workflow.id",
    "langfuse.observation.input", "langfuse.observation.output", "langfuse.observation.level",
    "langfuse.observation.status_message", "langfuse.observation.metadata.tool_call_id",
    "langfuse.observation.metadata.inputs", "langfuse.observation.metadata.session_id", "session.id", "user.id",
    "langsmith.metadata.thread_id", "gen_ai.prompt", "gen_ai.completion", "mlflow.spanInputs", "mlflow.spanOutputs",
    "mlflow.spanFunctionName", "mlflow.chat.tools", "spring.ai.tool.call.arguments", "spring.ai.tool.call.result",
    "spring.ai.tool.definition.schema", "spring.ai.chat.client.user.text", "gen_ai.tool.json_schema",
    "gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response", "gcp.vertex.agent.tool_call_args",
    "gcp.vertex.agent.tool_response", "gcp.vertex.agent.session_id", "events", "all_messages_events", "agent_name",
    "model_request_parameters", "name", "input", "output", "error", "mcp_data", "group_id", "request_data",
    "response_data", "response", "raw_input", "span.type", "user_prompt", "tool_name", "tool_use_id", "decision",
    "source", "success",
]  # fmt: skip
WORDS = [
    "execute_tool", "chat", "invoke_agent", "tools/call", "tools/list", "TOOL", "LLM", "AGENT", "CHAIN", "tool",
    "workflow", "ai.toolCall", "ai.generateText", "ai.generateText.doGenerate", "refund", "mcp__s__t", "completed",
    '{"a": 1}', '[{"role": "user", "parts": [{"type": "text", "content": "x"}]}]', "[1, null, [2], {}]", '{"kwargs": 1}',
    '{"args": [1], "kwargs": {}}', '{"input_str": "{}", "inputs": null}', '"x"', "null", "{", "[{", '{"messages": [1, []]}',
    '{"choices": [{"message": {"tool_calls": [{}]}}]}', '{"generations": [[{"message": {"kwargs": 1}}]]}', "[[1], []]",
    '{"config": {"tools": [{"function_declarations": [{"name": "x", "parameters": {"type": "OBJECT"}}, 1]}]}, "contents": {}}',
    '{"output": {"content": []}}', '[{"event.name": "gen_ai.choice", "message": []}]', '{"input": [{"type": "function_call"}]}',
    '[{"toolUse": {"input": 1}}, {"toolResult": []}]', '{"content": {"parts": [{"function_call": {"args": 7}}]}}',
    '{"function": 1}', '[{"function": {"name": 1}}]', '{"tools": {}}', '{"content": [{"type": "text"}]}', "\x00", "{'a': 1}",
]  # fmt: skip
MARKERS: list[dict[str, Any]] = [attributes for _, attributes in STRONGEST_FIRST] + [
    *({"openinference.span.kind": kind} for kind in ("LLM", "AGENT", "CHAIN")),
    *({"traceloop.span.kind": kind} for kind in ("workflow", "task")),
    *({"gen_ai.operation.name": name} for name in ("chat", "invoke_agent", "create_agent")),
    {"llm.request.type": "chat"},
    *({"langfuse.observation.type": kind} for kind in ("generation", "agent", "span")),
    *({"langsmith.span.kind": kind} for kind in ("llm", "chain")),
    *({"mlflow.spanType": f'"{kind}"'} for kind in ("CHAT_MODEL", "AGENT", "CHAIN")),
    *({"spring.ai.kind": kind} for kind in ("chat_client", "chat_model")),
    *({"gen_ai.system": name} for name in ("gcp.vertex.agent", "autogen")),
    {"gen_ai.system": "strands-agents", "gen_ai.operation.name": "chat"},
    {"model_request_parameters": "{}", "gen_ai.operation.name": "chat"},
    *({"logfire.msg_template": text} for text in ("Agent run: {name!r}", "OpenAI Agents trace: {name}")),
    *({"span.type": kind} for kind in ("interaction", "tool", "tool.execution", "tool.blocked_on_user", "llm_request")),
    {"mcp.method.name": "tools/list"},
    *({"ai.operationId": name} for name in ("ai.generateText", "ai.generateText.doGenerate")),
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.binary(max_size=8) | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.sampled_from(["role", "parts", "type", "content", "name", "arguments", "id", "tool_calls", "function", "result"]), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
MESSAGE_EVENTS = ["gen_ai.user.message", "gen_ai.tool.message", "gen_ai.choice", "gen_ai.content.prompt", "tool.output"]
EVENTS = st.lists(
    st.builds(
        lambda n, a: SpanEvent(n, 1, a),
        st.sampled_from(["exception", "gen_ai.client.inference.operation.details", "x", *MESSAGE_EVENTS]),
        st.dictionaries(
            st.sampled_from(["exception.type", "exception.message", "content", "message", "tool_calls", "id", *KEYS]),
            VALUES,
            max_size=3,
        ),
    ),
    max_size=2,
)


@settings(max_examples=600, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.builds(
        lambda a, b: a | b, st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=14), st.sampled_from(MARKERS)
    ),
    st.dictionaries(st.sampled_from(["service.name", "host.name", "workflow.id"]), VALUES, max_size=2),
    EVENTS,
    st.sampled_from([0, 1, 2]),
    st.sampled_from(["", "execute_tool x", "tools/call y", "tools/list.mcp", "Abandoned", "claude_code.x", "call_llm"]),
    st.integers(0, 3),
)
def test_no_span_makes_it_fail(
    attributes: dict[str, Any],
    resource: dict[str, Any],
    events: list[SpanEvent],
    status: int,
    name: str,
    dropped: int,
) -> None:
    span = make_span(
        attributes,
        resource=resource,
        events=tuple(events),
        status_code=status,
        status_message=name,
        name=name,
        kind=status + 1,
        dropped_attributes_count=dropped,
    )
    memory = History()
    first, again = read_span(span, memory), read_span(span, memory)
    assert again.messages == ()
    assert (first.input, first.output) == (again.input, again.output)
    assert {m.digest for m in first.messages} == set(first.input + first.output)
    # It must survive the bus: only types that every stage can read.
    batch = ReadingBatch(conversation_id="c", epoch=0, trace_id=span.trace_id, readings=(first,))
    assert isinstance(decode_detect_input(encode(batch)), ReadingBatch)


def test_a_digest_does_not_depend_on_the_memory_of_another_trace() -> None:
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": WORDS[18]}
    span, other = make_span(attributes), make_span(attributes, trace_id="f" * 32)
    assert read_span(span, History()).messages == read_span(other, History()).messages != ()


def test_a_failed_span_that_is_no_tool_says_so() -> None:
    found = read({"gen_ai.operation.name": "chat"}, status_code=2, events=(exception("x.TimeoutError"),))
    assert (found.kind, found.status_error, found.error_type) == ("model", True, "timeout")
