"""Real spans of each framework, all the way to the timeline: what was asked, which calls were made with
what and how they ended, what was answered, who it was, which tools there were; or why that is not known."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from otelmon.vocabulary.event import AssistantMessage, SystemMessage, Timeline, ToolCall, ToolDefinition, UserMessage
from tests.assemble.dialect_spans import read_file
from tests.assemble.test_timeline_data import conversations

pytestmark = pytest.mark.data

ORDER = {"order_id": "ORD-1001", "status": "delivered", "total": 42.5, "currency": "EUR", "customer": "cus_77"}
REFUND = {"refund_id": "re_1", "order_id": "ORD-1001", "amount": 42.5, "status": "succeeded"}
SHORT_REFUND = {"refund_id": "re_1", "status": "succeeded"}
TOOLS = {"get_order", "issue_refund", "cancel_order", "track_shipment"}
ASKED = ("Please refund my order ORD-1001", "Please cancel ORD-9", "Where is my shipment ORD-5")
ANSWERED = (
    "I have refunded 42.50 EUR for order ORD-1001.",
    "Sorry, the cancellation failed.",
    "The tracking service did not answer in time.",
)
RAISED_OUT = (ANSWERED[0], None, None)  # the failure ended the run
UNSEEN = (None, None, None)
NO_GAPS: tuple[tuple[str, ...], ...] = ((), (), ())
ENDED_EARLY: tuple[tuple[str, ...], ...] = ((), ("incomplete_run",), ("incomplete_run",))
HIDDEN = (("content_off", "prior_turns_unseen", "incomplete_run"),) * 3

Call = tuple[str, Any, Any, str]


@dataclass(frozen=True)
class Sample:
    """A file: one run each for a refund, a tool that raises, a tool that times out.

    `calls` by run: name, arguments, result (its text when it is only text), outcome. `error` is type and
    message of the call that raised.
    """

    file: str
    dialect: str
    calls: tuple[tuple[Call, ...], ...]
    asked: tuple[str | None, ...] = ASKED
    answered: tuple[str | None, ...] = ANSWERED
    gaps: tuple[tuple[str, ...], ...] = NO_GAPS
    system: str | None = "You are a support agent."
    tools: frozenset[str] = frozenset(TOOLS)
    conversation: str | None = None
    principal: str | None = None
    agent: str | None = "support_agent"
    error: tuple[str | None, str | None] = ("RuntimeError", "inventory backend exploded: 503")
    call_ids: bool = True


def scenario(refund: Any = REFUND, failed: str | None = None, late: str | None = None) -> tuple[tuple[Call, ...], ...]:
    return (
        (
            ("get_order", {"order_id": "ORD-1001"}, ORDER, "succeeded"),
            ("issue_refund", {"order_id": "ORD-1001", "amount": 42.5}, refund, "succeeded"),
        ),
        (("cancel_order", {"order_id": "ORD-9"}, failed, "failed"),),
        (("track_shipment", {"order_id": "ORD-5"}, late, "unknown"),),
    )


NAMES_ONLY: tuple[tuple[Call, ...], ...] = (
    (("get_order", None, None, "succeeded"), ("issue_refund", None, None, "succeeded")),
    (("cancel_order", None, None, "failed"),),
    (("track_shipment", None, None, "unknown"),),
)
CLAUDE_SAID = {"order_id": "ORD-1001"}  # the look-alike gives every tool the same input
CLAUDE_CALLS: tuple[tuple[Call, ...], ...] = (
    (("get_order", CLAUDE_SAID, {}, "succeeded"), ("issue_refund", CLAUDE_SAID, {}, "succeeded")),
    (("cancel_order", CLAUDE_SAID, None, "failed"),),
    (("track_shipment", CLAUDE_SAID, None, "unknown"),),
)
SPRING_CALLS: tuple[tuple[Call, ...], ...] = (
    (
        ("get_order", {"order_id": "ORD-1001"}, {"total": 42.5}, "succeeded"),
        ("issue_refund", {"order_id": "ORD-1001", "amount": 42.5}, {"refund_id": "re_1"}, "succeeded"),
    ),
    (("cancel_order", {"order_id": "ORD-9"}, None, "failed"),),
)
ADK_SYSTEM = 'You are a support agent.\n\nYou are an agent. Your internal name is "support_agent".'
KNOWN: dict[str, Any] = {"conversation": "conv-42", "principal": "u-7"}
PYDANTIC: dict[str, Any] = {"dialect": "pydantic_ai", "calls": scenario(), "answered": RAISED_OUT, "gaps": ENDED_EARLY, "conversation": "conv-42"}  # fmt: skip
STRANDS: dict[str, Any] = {
    "dialect": "strands",
    "calls": scenario(failed="Error: RuntimeError - inventory backend exploded: 503", late="Error: TimeoutError - "),
    **KNOWN,
}

SAMPLES = [
    Sample(
        "langfuse-observe__langfuse@5.0.4", "langfuse", scenario(),
        answered=tuple(f"done: {text}" for text in ASKED), system=None, tools=frozenset(), call_ids=False,
        error=("tool_error", "inventory backend exploded: 503"), **KNOWN,
    ),
    Sample(
        "langfuse__langgraph@1.2.24+5.0.4", "langfuse", scenario(), answered=RAISED_OUT, gaps=ENDED_EARLY,
        error=("tool_error", "inventory backend exploded: 503"), **KNOWN,
    ),
    Sample("langsmith-otel__langgraph@1.2.24+0.15.1", "langsmith", scenario(), answered=RAISED_OUT, gaps=ENDED_EARLY, **KNOWN),
    Sample(
        "mlflow__mlflow-skinny@3.17.2", "mlflow",
        scenario(
            failed="RuntimeError: inventory backend exploded: 503",
            late="TimeoutError: tracking API did not answer in 0.05 s",
        ),
    ),
    Sample("pydantic-ai-v2__pydantic-ai@2.68.0", **PYDANTIC),
    Sample("pydantic-ai-v3__pydantic-ai@2.68.0", **PYDANTIC),
    Sample("pydantic-ai-v4__pydantic-ai@2.68.0", **PYDANTIC),
    Sample("genai-semconv__pydantic-ai@2.68.0", **PYDANTIC),
    Sample("pydantic-ai-v6__pydantic-ai@2.68.0", **PYDANTIC),
    Sample(
        "logfire__openai-agents@0.24.0+logfire5.4.0", "logfire_agents",
        scenario(
            failed="An error occurred while running the tool. Please try again.",
            late="Tool 'track_shipment' timed out after 0.05 seconds.",
        ),
        error=("tool_error", "An error occurred while running the tool. Please try again."),
    ),
    Sample("adk-latest__google-adk@2.13.0", "google_adk", scenario(), answered=RAISED_OUT, gaps=ENDED_EARLY, system=ADK_SYSTEM),
    Sample(
        "adk-native__google-adk@2.13.0", "google_adk", NAMES_ONLY,
        asked=UNSEEN, answered=UNSEEN, gaps=HIDDEN, system=None, call_ids=False,
    ),
    Sample("strands-events__strands-agents@1.62.0", tools=frozenset({"get_order", "issue_refund"}), **STRANDS),
    Sample("strands-latest__strands-agents@1.62.0", **STRANDS),
    Sample(
        "genai-semconv-sk__semantic-kernel@1.45.0", "semantic_kernel", scenario(refund=SHORT_REFUND),
        asked=UNSEEN, gaps=(("content_off", "prior_turns_unseen"),) * 3, system=None,
    ),
    Sample(
        "genai-semconv-autogen__autogen-agentchat@0.7.5", "autogen", NAMES_ONLY,
        asked=UNSEEN, answered=UNSEEN, gaps=HIDDEN, system=None, tools=frozenset(),
    ),
    Sample(
        "spring-ai__SYNTHETIC-from-docs", "spring_ai", SPRING_CALLS, asked=UNSEEN[:2], answered=UNSEEN[:2],
        gaps=HIDDEN[:2], system=None, tools=frozenset({"get_order", "issue_refund"}), conversation="conv-42",
        agent=None, call_ids=False,
    ),
    Sample(
        "claude-code__SYNTHETIC-from-docs", "claude_code", CLAUDE_CALLS, asked=(*ASKED[:2], "Where is my shipment"),
        answered=UNSEEN, gaps=(("content_off", "incomplete_run"),) * 3, system=None, tools=frozenset(),
        conversation="conv-42", principal="anon-hash", agent="claude_code", error=("McpToolError", "McpToolError"),
    ),
]  # fmt: skip


@pytest.fixture(params=SAMPLES, ids=lambda s: s.file)
def sample(request: pytest.FixtureRequest) -> Sample:
    found: Sample = request.param
    return found


@pytest.fixture
def told(sample: Sample, shared: Path) -> list[Timeline]:
    return conversations(read_file(shared / "spans" / f"{sample.file}.otlp.json"))


def of_kind(told: list[Timeline], run_id: str, kind: type[Any]) -> list[Any]:
    return [e for timeline in told for e in timeline.events if isinstance(e, kind) and e.run_id == run_id]


def run_ids(told: list[Timeline]) -> list[str]:
    return [run.run_id for timeline in told for run in timeline.runs]


def shown(call: ToolCall) -> Call:
    return (call.tool_name, call.arguments, call.result if call.result is not None else call.result_text, call.outcome)


def test_the_runs_and_their_calls_are_exact_in_order_and_once_each(sample: Sample, told: list[Timeline]) -> None:
    found = [tuple(shown(call) for call in of_kind(told, run_id, ToolCall)) for run_id in run_ids(told)]
    assert found == list(sample.calls)


def test_the_question_and_the_answer_of_each_run_are_there(sample: Sample, told: list[Timeline]) -> None:
    ids = run_ids(told)
    questions = [[m.text for m in of_kind(told, i, UserMessage)] for i in ids]
    answers = [[m.text for m in of_kind(told, i, AssistantMessage) if m.final] for i in ids]
    assert questions == [[] if text is None else [text] for text in sample.asked]
    assert answers == [[] if text is None else [text] for text in sample.answered]


def test_the_instructions_and_the_tools_of_a_run_are_there(sample: Sample, told: list[Timeline]) -> None:
    first = run_ids(told)[0]
    assert {d.name for d in of_kind(told, first, ToolDefinition)} == sample.tools
    assert [m.text for m in of_kind(told, first, SystemMessage)] == ([sample.system] if sample.system else [])


def test_who_it_was_and_what_could_not_be_seen(sample: Sample, told: list[Timeline]) -> None:
    runs = [run for timeline in told for run in timeline.runs]
    assert [run.gaps for run in runs] == list(sample.gaps)
    assert {run.agent_name for run in runs} == {sample.agent}
    assert {run.principal for run in runs} == {sample.principal}
    assert {dialect for run in runs for dialect in run.dialects} <= {sample.dialect, "other"}
    if sample.conversation is not None:
        assert [timeline.conversation_id for timeline in told] == [sample.conversation]
    else:
        assert len({timeline.conversation_id for timeline in told}) == len(runs)


def test_failures_say_what_they_were(sample: Sample, told: list[Timeline]) -> None:
    every = [call for run_id in run_ids(told) for call in of_kind(told, run_id, ToolCall)]
    (failed,) = [call for call in every if call.outcome == "failed"]
    assert (failed.error_type, failed.error_message) == sample.error
    assert all(call.tool_call_id for call in every) or not sample.call_ids


def test_claude_code_shows_who_allowed_a_call(shared: Path) -> None:
    told = conversations(read_file(shared / "spans" / "claude-code__SYNTHETIC-from-docs.otlp.json"))
    every = [e for timeline in told for e in timeline.events if isinstance(e, ToolCall)]
    assert [(c.approval.decision, c.approval.source) for c in every if c.approval] == [
        ("approved", "user_temporary")
    ] * 4
    assert {c.server for c in every} == {"shop"}
    assert [len(c.span_ids) for c in every] == [3] * 4


def test_a_span_that_lost_its_attributes_is_counted_as_known_by_its_name(shared: Path) -> None:
    (told,) = conversations(read_file(shared / "spans" / "truncated__sdk-limits@1.45.2.otlp.json"))
    (call,) = [e for e in told.events if isinstance(e, ToolCall)]
    assert (call.tool_name, call.arguments, call.result) == ("issue_refund", None, {"ok": True})
    assert told.runs[0].dialects == ("name_only",)
    assert "truncated" in told.runs[0].gaps


def test_listing_the_tools_of_a_server_is_no_run(shared: Path) -> None:
    told = conversations(read_file(shared / "spans" / "mcp-semconv__fastmcp@4.2.3+mcp2.3.0.otlp.json"))
    assert len(run_ids(told)) == 1
