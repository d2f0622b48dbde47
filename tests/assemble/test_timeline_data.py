"""Real input: the samples of each instrumentation, and labelled transcripts in every form."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from otelmon.assemble.timeline import build
from otelmon.assemble.traces import TraceTable
from otelmon.vocabulary.config import AssembleConfig
from otelmon.vocabulary.event import Timeline, ToolCall
from otelmon.vocabulary.messages import Handover
from otelmon.vocabulary.reading import Reading
from tests.assemble.builders import calls
from tests.assemble.dialect_spans import converted, converter, read_file

pytestmark = pytest.mark.data

RECORDS = 24

# Instrumentations that show everything: name, arguments and result of each call of the scenario.
FULL = [
    "dual-openinference+genai__langgraph@1.2.24",
    "genai-semconv-otel__openai@3.57.0+1.3b0",
    "genai-semconv__langgraph@1.2.24+1.3b0",
    "genai-semconv__pydantic-ai@2.68.0",
    "openinference__langgraph@1.2.24+0.1.80",
    "openinference__openai+decorators@3.57.0+0.1.66",
    "openinference__openai-agents-responses@0.24.0+2.6.0",
    "openllmetry-legacy__openai+traceloop-sdk@1.109.1+0.40.14",
    "openllmetry__langgraph@1.2.24+0.62.4",
    "openllmetry__openai+traceloop-sdk@3.57.0+0.62.4",
    "openllmetry__openai-agents-responses@0.24.0+0.62.4",
    "otelmon-shim__opentelemetry-util-genai@1.3b0",
    "pydantic-ai-v6__pydantic-ai@2.68.0",
    "strands-latest__strands-agents@1.62.0",
    "vercel-legacy__ai-sdk@7.0.173+otel1.0.173",
    "vercel-otel__ai-sdk@7.0.173+otel1.0.173",
    "vercel__ai-sdk@6.0.326",
]


def conversations(readings: list[Reading]) -> list[Timeline]:
    """Through the trace table, as a detector would hold them, in order of their first span."""
    table = TraceTable(AssembleConfig())
    held: dict[str, dict[str, dict[str, Reading]]] = {}
    for message in table.feed(readings, 0, 1):
        if isinstance(message, Handover):
            held.get(message.conversation_id, {}).pop(message.trace_id, None)
        else:
            trace = held.setdefault(message.conversation_id, {}).setdefault(message.trace_id, {})
            trace |= {reading.span_id + reading.digest: reading for reading in message.readings}
    timelines = [
        build(conversation, [r for trace in traces.values() for r in trace.values()])
        for conversation, traces in held.items()
        if traces
    ]
    return sorted((t for t in timelines if t.runs), key=lambda timeline: timeline.runs[0].start_time_unix_nano)


def sample(shared: Path, name: str) -> list[ToolCall]:
    timelines = conversations(read_file(shared / "spans" / f"{name}.otlp.json"))
    return [c for timeline in timelines for c in calls(timeline)]


@pytest.mark.parametrize("name", FULL)
def test_the_calls_of_the_scenario_are_exact_and_once_each(shared: Path, name: str) -> None:
    found = sample(shared, name)
    assert [(c.tool_name, c.arguments, c.outcome) for c in found] == [
        ("get_order", {"order_id": "ORD-1001"}, "succeeded"),
        ("issue_refund", {"order_id": "ORD-1001", "amount": 42.5}, "succeeded"),
        ("cancel_order", {"order_id": "ORD-9"}, "failed"),
        ("track_shipment", {"order_id": "ORD-5"}, "unknown"),
    ]
    order, refund, *_ = found
    assert order.result["order_id"] == "ORD-1001"
    assert order.result["total"] == 42.5
    assert refund.result["refund_id"] == "re_1"


def test_two_instrumentations_of_one_agent_give_each_call_two_spans(shared: Path) -> None:
    assert [len(c.span_ids) for c in sample(shared, FULL[0])] == [2, 2, 2, 2]


def test_calls_that_only_model_spans_show_are_derived(shared: Path) -> None:
    assert all(c.derived for c in sample(shared, "genai-semconv-otel__openai@3.57.0+1.3b0"))


def test_mcp_client_and_server_spans_are_one_call_each(shared: Path) -> None:
    found = sample(shared, "mcp-semconv__fastmcp@4.2.3+mcp2.3.0")
    assert [len(c.span_ids) for c in found] == [3] * len(found)
    assert found[0].tool_name == "get_order"
    assert found[-1].tool_name == "track_shipment"
    assert found[-1].outcome == "unknown"


def test_an_agent_that_tried_four_times_called_four_times(shared: Path) -> None:
    found = sample(shared, "openinference__smolagents@1.26.0+0.1.43")
    assert [c.outcome for c in found if c.tool_name == "cancel_order"] == ["failed"] * 4
    assert [c.outcome for c in found if c.tool_name == "track_shipment"] == ["unknown"] * 4


# -- transcripts -----------------------------------------------------------------------------------
FORMS: list[dict[str, Any]] = [
    {},
    {"one_trace": True},
    {"shuffle": 3},
    {"shim_attrs": False},
    {"tool_spans": False},
    {"tool_spans": False, "one_trace": True, "shuffle": 1},
]


def records(shared: Path, name: str, user_tools: bool = True) -> Iterator[dict[str, Any]]:
    """Transcripts spread over the whole set; `user_tools` false: only the agent has tools."""
    with gzip.open(shared / "datasets" / name / "dev.jsonl.gz", "rt", encoding="utf-8") as lines:
        every = [json.loads(line) for line in lines]
    usable = [
        r for r in every if user_tools or not any(m["role"] == "user" and m.get("tool_calls") for m in r["messages"])
    ]
    yield from usable[:: max(1, len(usable) // RECORDS)]


Expected = list[tuple[str, str, str]]


def expected_calls(module: Any, record: dict[str, Any]) -> tuple[Expected, Expected]:
    """(calls of the transcript that have a result, those whose result a later model span shows)."""
    body = [m for m in record["messages"] if m["role"] not in ("system", "developer")]
    results = module.match_results(body)
    shown_until = max((i for i, m in enumerate(body) if m["role"] == "assistant"), default=0)
    found, shown = [], []
    for index, message in enumerate(body):
        for place, request in enumerate(message.get("tool_calls") or []):
            result = results.get((index, place))
            if message["role"] == "assistant" and result is not None:
                arguments = json.dumps(module.parsed_arguments(request.get("arguments")), sort_keys=True)
                row = (request["name"], arguments, module.result_text(result))
                found.append(row)
                if index < shown_until:
                    shown.append(row)
    return found, shown


def actual_calls(timeline: Timeline) -> Expected:
    return [
        (
            c.tool_name,
            json.dumps(c.arguments_text if c.arguments is None else c.arguments, sort_keys=True),
            (c.error_message if c.result_text is None else c.result_text) or "",
        )
        for c in calls(timeline)
    ]


@pytest.mark.parametrize("name", ["tau2", "taubench"])
@pytest.mark.parametrize("dialect", ["genai", "openinference", "openllmetry"])
def test_every_form_of_a_transcript_has_its_calls_in_order(shared: Path, name: str, dialect: str) -> None:
    module = converter(shared)
    wrong = []
    for record in records(shared, name):
        every, shown = expected_calls(module, record)
        for form in FORMS:
            [timeline] = conversations(converted(module, record, dialect=dialect, **form)) or [Timeline("", (), ())]
            want = every if form.get("tool_spans", True) else shown
            if actual_calls(timeline) != want:
                wrong.append((record["id"], form))
    assert wrong == []


@pytest.mark.parametrize("dialect", ["genai", "openinference", "openllmetry"])
def test_every_message_of_a_transcript_is_told_once(shared: Path, dialect: str) -> None:
    module = converter(shared)
    wrong = []
    for record in records(shared, "tau2", user_tools=False):
        spoken = [m for m in record["messages"] if m["role"] in ("user", "assistant")]
        for form in FORMS:
            [timeline] = conversations(converted(module, record, dialect=dialect, **form))
            told = [type(e).__struct_config__.tag for e in timeline.events]
            told = [tag for tag in told if tag in ("user", "assistant")]
            want = [m["role"] for m in spoken]
            # A last word of the user that no model span saw stands only on the span of its turn.
            if told not in (want, want[:-1] if want[-1] == "user" else want):
                wrong.append((record["id"], form))
    assert wrong == []
