"""Real spans of each instrumentation: every call of the scenario is read exactly, once a span."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from otelmon.vocabulary.reading import Reading
from tests.assemble.dialect_spans import all_messages, converted, converter, read_file

pytestmark = pytest.mark.data

ORDER = {"order_id": "ORD-1001", "status": "delivered", "total": 42.5, "currency": "EUR", "customer": "cus_77"}
NO_CUSTOMER = {key: value for key, value in ORDER.items() if key != "customer"}
REFUND = {"refund_id": "re_1", "order_id": "ORD-1001", "amount": 42.5, "status": "succeeded"}
SHORT_REFUND = {"refund_id": "re_1", "status": "succeeded"}
FAILED = "inventory backend exploded: 503"
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("get_order", {"order_id": "ORD-1001"}),
    ("issue_refund", {"order_id": "ORD-1001", "amount": 42.5}),
    ("cancel_order", {"order_id": "ORD-9"}),
    ("track_shipment", {"order_id": "ORD-5"}),
]


class Sample:
    """What is particular to a file: results, how each failure shows, and which fields there are."""

    def __init__(self, file: str, dialect: str, **differences: Any) -> None:
        self.file = file
        self.dialect = dialect
        self.order: Any = ORDER
        self.refund: Any = REFUND
        self.raised: set[str] = {"status_error", "exception"}
        self.raised_type: str | None = "RuntimeError"
        self.timed_out: set[str] = {"status_error", "exception", "timeout"}
        self.timed_out_type: str | None = "timeout"
        self.call_ids = False
        self.conversation: str | None = None
        self.principal: str | None = None
        self.calls = CALLS
        self.__dict__.update(differences)


TYPED = {"status_error", "error_type"}
ALL_SIGNS = {"status_error", "error_type", "exception"}
TEXT_ONLY: dict[str, Any] = {"raised": {"status_error"}, "raised_type": None, "timed_out_type": None}
KNOWN: dict[str, Any] = {"conversation": "conv-42", "principal": "u-7"}
PYDANTIC: dict[str, Any] = {"call_ids": True, "conversation": "conv-42"}
BARE = [(n, a if n == "issue_refund" else a["order_id"]) for n, a in CALLS]
FOUR_TIMES = [*CALLS[:2], *[CALLS[2]] * 4, *[CALLS[3]] * 4]

SAMPLES = [
    Sample("genai-semconv__langgraph@1.2.24+1.3b0", "genai", call_ids=True, raised=TYPED, timed_out=TYPED | {"timeout"}),
    Sample("genai-semconv__openai-agents-responses@0.24.0+1.3b0", "genai", **TEXT_ONLY | {"raised": TYPED, "raised_type": "_OTHER", "timed_out": {"timeout"}}),
    Sample("genai-semconv__pydantic-ai@2.68.0", "pydantic_ai", **PYDANTIC),
    Sample("pydantic-ai-v2__pydantic-ai@2.68.0", "pydantic_ai", **PYDANTIC),
    Sample("pydantic-ai-v3__pydantic-ai@2.68.0", "pydantic_ai", **PYDANTIC),
    Sample("pydantic-ai-v4__pydantic-ai@2.68.0", "pydantic_ai", **PYDANTIC),
    Sample("pydantic-ai-v6__pydantic-ai@2.68.0", "pydantic_ai", **PYDANTIC),
    Sample("genai-semconv-sk__semantic-kernel@1.45.0", "semantic_kernel", call_ids=True, refund=SHORT_REFUND, raised=ALL_SIGNS, timed_out=ALL_SIGNS | {"timeout"}),
    Sample("otelmon-shim__opentelemetry-util-genai@1.3b0", "otelmon", call_ids=True, refund=SHORT_REFUND, raised=TYPED, timed_out=TYPED | {"timeout"}, **KNOWN),
    Sample("vercel-otel__ai-sdk@7.0.173+otel1.0.173", "genai", call_ids=True, order=NO_CUSTOMER, raised_type="Error"),
    Sample("vercel__ai-sdk@6.0.326", "vercel", call_ids=True, order=NO_CUSTOMER, raised_type="Error", **KNOWN),
    Sample("vercel-legacy__ai-sdk@7.0.173+otel1.0.173", "vercel", call_ids=True, order=NO_CUSTOMER, raised_type="Error"),
    Sample("openinference__langgraph@1.2.24+0.1.80", "openinference", calls=BARE, **KNOWN),
    Sample("openinference__llama-index@0.14.25+4.6.1", "openinference", **KNOWN),
    Sample("openinference__openai+decorators@3.57.0+0.1.66", "openinference"),
    Sample("openinference__openai-agents-responses@0.24.0+2.6.0", "openinference", **TEXT_ONLY | KNOWN | {"timed_out": {"timeout", "status_ok"}}),
    Sample("openinference__smolagents@1.26.0+0.1.43", "openinference", calls=FOUR_TIMES, **KNOWN),
    Sample("openinference__crewai@1.15.30+1.1.21", "openinference", calls=CALLS[:3]),
    Sample("openinference__claude-agent-sdk-toolhooks@0.2.189+0.1.22", "openinference", call_ids=True, order={"order_id": "ORD-1001", "total": 42.5}, refund={"refund_id": "re_1"}, raised_type="Exception", timed_out={"status_error", "abandoned"}, timed_out_type=None),
    Sample("openllmetry-legacy__openai+traceloop-sdk@1.109.1+0.40.14", "openllmetry", **KNOWN),
    Sample("openllmetry__openai+traceloop-sdk@3.57.0+0.62.4", "openllmetry", **KNOWN),
    Sample("openllmetry__langgraph@1.2.24+0.62.4", "openllmetry", call_ids=True, raised=ALL_SIGNS, timed_out=ALL_SIGNS | {"timeout"}, **KNOWN),
    Sample("openllmetry__openai-agents-chat@0.24.0+0.62.4", "openllmetry", **TEXT_ONLY | {"timed_out": {"timeout", "status_ok"}}),
    Sample("openllmetry__openai-agents-responses@0.24.0+0.62.4", "openllmetry", **TEXT_ONLY | {"timed_out": {"timeout", "status_ok"}}),
]  # fmt: skip


def tool_readings(readings: list[Reading]) -> list[Reading]:
    return [reading for reading in readings if reading.kind == "tool"]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: s.file)
def test_calls_of_a_real_run_are_read_exactly(sample: Sample, shared: Path) -> None:
    found = tool_readings(read_file(shared / "spans" / f"{sample.file}.otlp.json"))

    calls = [(r.tool.name, r.tool.arguments) for r in found if r.tool]
    assert sorted(map(str, calls)) == sorted(map(str, sample.calls))
    for reading in found:
        assert reading.tool is not None
        assert reading.dialect == sample.dialect
        assert reading.content == "full"
        assert reading.conversation_id == sample.conversation
        assert reading.principal == sample.principal
        assert reading.tool.arguments_fidelity in ("exact", "decoded")
        assert not sample.call_ids or reading.tool.call_id


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: s.file)
def test_results_and_failures_of_a_real_run_are_read_exactly(sample: Sample, shared: Path) -> None:
    found = tool_readings(read_file(shared / "spans" / f"{sample.file}.otlp.json"))
    tools = {r.tool.name: r.tool for r in found if r.tool}

    assert tools["get_order"].result == sample.order
    assert tools["issue_refund"].result == sample.refund
    assert set(tools["get_order"].signals) <= {"status_ok"}
    assert set(tools["cancel_order"].signals) == sample.raised
    assert tools["cancel_order"].error_type == sample.raised_type
    assert tools["cancel_order"].result is None
    if sample.raised_type not in (None, "_OTHER"):
        assert tools["cancel_order"].error_message == FAILED
    if "track_shipment" in dict(sample.calls):
        assert set(tools["track_shipment"].signals) == sample.timed_out
        assert tools["track_shipment"].error_type == sample.timed_out_type


WITH_MESSAGES = [
    "genai-semconv__langgraph@1.2.24+1.3b0",
    "genai-semconv__pydantic-ai@2.68.0",
    "pydantic-ai-v6__pydantic-ai@2.68.0",
    "genai-semconv-otel__openai@3.57.0+1.3b0",
    "openinference__langgraph@1.2.24+0.1.80",
    "openinference__openai+decorators@3.57.0+0.1.66",
    "openinference__smolagents@1.26.0+0.1.43",
    "openllmetry-legacy__openai+traceloop-sdk@1.109.1+0.40.14",
    "openllmetry__openai+traceloop-sdk@3.57.0+0.62.4",
    "openllmetry__langgraph@1.2.24+0.62.4",
    "vercel__ai-sdk@6.0.326",
    "vercel-otel__ai-sdk@7.0.173+otel1.0.173",
]


@pytest.mark.parametrize("file", WITH_MESSAGES)
def test_the_history_of_a_real_run_has_one_digest_a_message(file: str, shared: Path) -> None:
    readings = read_file(shared / "spans" / f"{file}.otlp.json")
    steps = [r for r in readings if r.kind == "model"][:3]
    messages = all_messages(readings)

    # What a step answers is what the next one starts from, whatever the encodings of the two.
    assert [len(step.input) for step in steps] == [2, 4, 6]
    for step, following in pairwise(steps):
        assert following.input[: len(step.input) + 1] == step.input + step.output
    assert all(step.history_complete for step in steps)
    roles = [messages[digest].role for digest in steps[-1].input + steps[-1].output]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool", "assistant"]
    asked = [request for digest in steps[-1].input for request in messages[digest].requests]
    assert [(r.tool_name, r.arguments) for r in asked] == CALLS[:2]
    assert messages[steps[-1].output[0]].text == "I have refunded 42.50 EUR for order ORD-1001."


@pytest.mark.parametrize("file", WITH_MESSAGES)
def test_the_definitions_of_a_real_run_are_read(file: str, shared: Path) -> None:
    step = next(r for r in read_file(shared / "spans" / f"{file}.otlp.json") if r.kind == "model")
    found = {d.name: d for d in step.definitions}
    assert {name for name, _ in CALLS} <= found.keys()
    refund = found["issue_refund"]
    assert refund.input_schema is not None
    assert set(refund.input_schema["properties"]) == {"order_id", "amount"}
    assert refund.schema_hash.startswith("sha256:")
    assert refund.definition_hash != refund.schema_hash


def test_the_three_spans_of_an_mcp_call_are_all_read(shared: Path) -> None:
    readings = read_file(shared / "spans" / "mcp-semconv__fastmcp@4.2.3+mcp2.3.0.otlp.json")
    found = [r for r in tool_readings(readings) if r.tool and r.tool.name == "track_shipment"]
    assert [r.dialect for r in found] == ["mcp"] * 3
    assert {r.content for r in found} == {"off"}
    server = next(r for r in found if r.tool and "server_side" in r.tool.signals)
    client = next(r for r in found if r.tool and r.tool.error_message == "Request 'tools/call' timed out")
    assert server.tool
    assert client.tool
    assert server.tool.server == "orders-mcp"
    assert set(server.tool.signals) == {"server_side"}
    assert client.tool.error_type == "timeout"
    assert len(tool_readings(readings)) == 15


def test_autogen_shows_that_calls_were_made_but_not_what_they_said(shared: Path) -> None:
    found = tool_readings(read_file(shared / "spans" / "genai-semconv-autogen__autogen-agentchat@0.7.5.otlp.json"))
    assert [(r.tool.name, r.tool.arguments_fidelity, r.content) for r in found if r.tool] == [
        (name, "absent", "off") for name, _ in CALLS
    ]


def test_a_tool_span_that_lost_its_attributes_is_still_a_call(shared: Path) -> None:
    (found,) = tool_readings(read_file(shared / "spans" / "truncated__sdk-limits@1.45.2.otlp.json"))
    assert found.tool
    assert (found.tool.name, found.tool.arguments_fidelity, found.content) == ("issue_refund", "truncated", "truncated")
    assert found.tool.result == {"ok": True}
    assert found.dropped == 6


WRAPPERS = ("tools", "running tools", "execute_task tools", "AutoFunctionInvocationLoop", "BaseWorkflowAgent.call_tool")


def test_wrappers_of_tool_spans_are_no_calls(shared: Path) -> None:
    seen = set()
    for path in sorted((shared / "spans").glob("*.otlp.json")):
        if not path.name.endswith(".logs.otlp.json"):
            for reading in read_file(path):
                if reading.name in WRAPPERS:
                    seen.add(reading.name)
                    assert reading.kind == "other", (path.name, reading.name)
    assert len(seen) > 3


def test_every_sample_is_read(shared: Path) -> None:
    for path in sorted((shared / "spans").glob("*.otlp.json")):
        if not path.name.endswith(".logs.otlp.json"):
            assert read_file(path), path.name


@pytest.mark.parametrize("options", [{}, {"shim_attrs": False}, {"content": False}, {"one_trace": True}], ids=str)
def test_three_dialects_tell_the_same_of_one_transcript(options: dict[str, Any], shared: Path) -> None:
    module = converter(shared)
    lines = (shared / "incidents" / "cases.jsonl").read_text().splitlines()
    records = [record for record in map(json.loads, lines) if record.get("messages")]
    assert len(records) > 20
    for record in records:
        told = {d: _told(converted(module, record, dialect=d, **options)) for d in module.DIALECTS}
        assert told["genai"] == told["openinference"] == told["openllmetry"], record["id"]


def _told(readings: list[Reading]) -> list[Any]:
    """What a dialect tells, without what only its own encoding has."""
    ours = [r for r in readings if r.kind in ("tool", "model")]
    return [
        (
            r.kind,
            r.content,
            r.span_id,
            r.input,
            r.output,
            [(d.name, d.server, d.definition_hash) for d in r.definitions],
            _call(r),
        )
        for r in ours
    ]


def _call(reading: Reading) -> Any:
    tool = reading.tool
    if tool is None:
        return None
    own = {"exception", "error_type", "status_ok"}
    given, returned = ("exact" if f == "decoded" else f for f in (tool.arguments_fidelity, tool.result_fidelity))
    return (
        (tool.name, tool.arguments, tool.arguments_text, given),
        (tool.result, tool.result_text, returned),
        (tool.error_type, tool.error_message, set(tool.signals) - own),
        (tool.server, tool.approval, tool.outcome_hint, tool.outcome_source),
        (reading.conversation_id, reading.principal),
    )
