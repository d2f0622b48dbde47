"""Real samples of instrumentations through the whole path: every call exact, once, in its run, or said why not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from otelmon.app.laws import load_laws
from otelmon.app.offline import Checker, Report, check_paths
from otelmon.detect.engine import Laws
from otelmon.receive.files import read_worlds
from otelmon.vocabulary.config import Config
from otelmon.vocabulary.event import AssistantMessage, Run, ToolCall, UserMessage

pytestmark = pytest.mark.data

ORDER = {"order_id": "ORD-1001", "status": "delivered", "total": 42.5, "currency": "EUR", "customer": "cus_77"}
REFUND = {"refund_id": "re_1", "order_id": "ORD-1001", "amount": 42.5, "status": "succeeded"}
Row = tuple[int, str, Any, Any, str]  # run, tool, arguments, result, outcome
GET: Row = (1, "get_order", {"order_id": "ORD-1001"}, ORDER, "succeeded")
ISSUE: Row = (1, "issue_refund", {"order_id": "ORD-1001", "amount": 42.5}, REFUND, "succeeded")
CANCEL: Row = (2, "cancel_order", {"order_id": "ORD-9"}, None, "failed")
TRACK: Row = (3, "track_shipment", {"order_id": "ORD-5"}, None, "unknown")
SCENARIO = [GET, ISSUE, CANCEL, TRACK]
ANSWERS = [
    "I have refunded 42.50 EUR for order ORD-1001.",
    "Sorry, the cancellation failed.",
    "The tracking service did not answer in time.",
]
QUESTIONS = ["Please refund my order ORD-1001", "Please cancel ORD-9", "Where is my shipment ORD-5"]


@dataclass(frozen=True)
class Sample:
    """A file and what must come of it. `logs`: its log records are read with it. `ids`: every call has its call id.
    `says`: the last words of the runs, in order. `gaps`: what the rule that needs all content says
    it lacks. `finds`: the rules that fire, by right."""

    name: str
    calls: Sequence[Row] = tuple(SCENARIO)
    logs: bool = False
    derived: bool = False
    ids: bool = True
    asks: Sequence[str] = tuple(QUESTIONS)
    says: Sequence[str] = tuple(ANSWERS)
    runs: int = 3
    finds: Sequence[str] = ()
    gaps: frozenset[str] = frozenset()

    @property
    def title(self) -> str:
        return self.name + (" and logs" if self.logs else "")


def _short(row: Row, result: Any) -> Row:
    run, name, arguments, _, outcome = row
    return run, name, arguments, result, outcome


OFF, ENDLESS = frozenset({"content_off"}), frozenset({"incomplete_run"})
UNSEEN = frozenset({"prior_turns_unseen"})
MCP: list[Row] = [
    (1, "get_order", None, None, "succeeded"),
    (1, "issue_refund", None, None, "succeeded"),
    (1, "cancel_order", None, None, "failed"),
    (1, "issue_refund", None, None, "failed"),
    (1, "track_shipment", None, None, "unknown"),
]
HOOKS = [_short(GET, {"order_id": "ORD-1001", "total": 42.5}), _short(ISSUE, {"refund_id": "re_1"}), CANCEL, TRACK]
RETRIES = [GET, ISSUE, *[CANCEL] * 4, *[TRACK] * 4]
SMOL_ASKS = [
    *(f"New task:\n{question}" for question in QUESTIONS[:2]),
    f"Based on the above, please provide an answer to the following user task:\n{QUESTIONS[1]}",
    f"New task:\n{QUESTIONS[2]}",
    f"Based on the above, please provide an answer to the following user task:\n{QUESTIONS[2]}",
]

SAMPLES = [
    Sample("dual-openinference+genai__langgraph@1.2.24", says=ANSWERS[:1], gaps=ENDLESS),
    Sample("dual-openinference+genai__langgraph@1.2.24", logs=True, says=ANSWERS[:1], gaps=ENDLESS),
    Sample("genai-semconv__langgraph@1.2.24+1.3b0", says=ANSWERS[:1], gaps=ENDLESS),
    Sample("genai-semconv__langgraph@1.2.24+1.3b0", logs=True, says=ANSWERS[:1], gaps=ENDLESS),
    Sample("genai-semconv__openai-agents-responses@0.24.0+1.3b0", ids=False, asks=[], says=[], gaps=OFF),
    Sample("genai-semconv-otel__openai@3.57.0+1.3b0", derived=True),
    Sample("genai-semconv-otelev__openai@3.57.0+1.3b0", [], asks=[], says=[], gaps=OFF),
    Sample("genai-semconv-otelev__openai@3.57.0+1.3b0", logs=True, derived=True),
    Sample("genai-semconv-legacy-events__openai@1.109.1+2.1b0", [], asks=[], says=[], gaps=OFF),
    Sample("genai-semconv-legacy-events__openai@1.109.1+2.1b0", logs=True, derived=True),
    Sample("genai-semconv-sk__semantic-kernel@1.45.0", [GET, _short(ISSUE, {"refund_id": "re_1", "status": "succeeded"}), CANCEL, TRACK], logs=True),
    Sample("mcp-semconv__fastmcp@4.2.3+mcp2.3.0", MCP, runs=1, ids=False, asks=[], says=[], gaps=OFF),
    Sample("openinference__claude-agent-sdk-toolhooks@0.2.189+0.1.22", HOOKS, says=[], gaps=ENDLESS),
    Sample("openinference__crewai@1.15.30+1.1.21", SCENARIO[:3], runs=2, ids=False, asks=[], says=ANSWERS[:2], gaps=UNSEEN),
    Sample("openinference__langgraph@1.2.24+0.1.80", says=ANSWERS[:1], gaps=ENDLESS),
    Sample("openinference__llama-index@0.14.25+4.6.1"),
    Sample("openinference__openai+decorators@3.57.0+0.1.66"),
    Sample("openinference__openai-agents-responses@0.24.0+2.6.0"),
    Sample("openinference__smolagents@1.26.0+0.1.43", RETRIES, asks=SMOL_ASKS, says=ANSWERS[:1], gaps=ENDLESS, finds=["loop", "maladaptive_retry"] * 2),
    Sample("openllmetry-legacy__openai+traceloop-sdk@1.109.1+0.40.14"),
    Sample("openllmetry__crewai@1.15.30+0.62.4", [], runs=2, asks=[], says=[], gaps=OFF),
    Sample("openllmetry__langgraph@1.2.24+0.62.4", says=ANSWERS[:1], gaps=ENDLESS),
    Sample("openllmetry__openai+traceloop-sdk@3.57.0+0.62.4"),
    Sample("openllmetry__openai-agents-chat@0.24.0+0.62.4", says=[], gaps=ENDLESS),
    Sample("openllmetry__openai-agents-responses@0.24.0+0.62.4"),
    Sample("truncated__sdk-limits@1.45.2", [(1, "issue_refund", None, {"ok": True}, "succeeded")], runs=1, ids=False, asks=[], says=[], gaps=OFF),
]  # fmt: skip


@pytest.fixture(scope="module")
def laws() -> Laws:
    return load_laws(Config())


def paths(shared: Path, sample: Sample) -> list[Path]:
    found = [shared / "spans" / f"{sample.name}.otlp.json"]
    return [*found, shared / "spans" / f"{sample.name}.logs.otlp.json"] if sample.logs else found


class Judged:
    """A sample, judged: its runs and calls in order, as a server would store them, and the report."""

    def __init__(self, files: list[Path], laws: Laws) -> None:
        checker = Checker(laws, Config())
        for path in files:
            for world in read_worlds(path):
                checker.add(world)
        self.report: Report = checker.finish()
        self.runs: list[Run] = sorted(
            (r for t in checker.records() for r in t.runs), key=lambda r: r.start_time_unix_nano
        )
        start = {run.run_id: run.start_time_unix_nano for run in self.runs}
        self.calls: list[ToolCall] = sorted(
            (call for record in checker.records() for call in record.calls),
            key=lambda call: (start[call.run_id], call.position),
        )
        self.messages = sorted(
            (m for record in checker.records() for m in record.messages), key=lambda m: (start[m.run_id], m.position)
        )

    def rows(self) -> list[Row]:
        runs = {run_id: number for number, run_id in enumerate(dict.fromkeys(c.run_id for c in self.calls), 1)}
        return [(runs[c.run_id], c.tool_name, c.arguments, c.result, c.outcome) for c in self.calls]

    def final(self) -> list[str]:
        said = [m.text for m in self.messages if isinstance(m, AssistantMessage) and m.final and m.text]
        return [text for text, before in zip(said, [None, *said], strict=False) if text != before]

    def asked(self) -> list[str]:
        return [m.text for m in self.messages if isinstance(m, UserMessage)]


@pytest.fixture(params=SAMPLES, ids=lambda sample: sample.title)
def sample(request: pytest.FixtureRequest) -> Sample:
    found: Sample = request.param
    return found


def test_calls_of_a_sample_are_exact_and_once_each(shared: Path, sample: Sample, laws: Laws) -> None:
    judged = Judged(paths(shared, sample), laws)
    assert judged.rows() == list(sample.calls)
    assert judged.report.tool_calls == len(sample.calls)
    assert judged.report.runs == sample.runs
    assert all(call.derived == sample.derived for call in judged.calls)
    ids = [call.tool_call_id for call in judged.calls]
    assert not sample.ids or len(set(ids) - {None}) == len(ids)
    for call, following in pairwise(judged.calls):
        assert call.run_id != following.run_id or call.start_time_unix_nano <= following.start_time_unix_nano
    for call in judged.calls:
        if call.outcome == "unknown":
            assert call.error_type in ("timeout", "abandoned")


def test_what_a_sample_says_is_told_and_what_it_does_not_has_a_reason(shared: Path, sample: Sample, laws: Laws) -> None:
    judged = Judged(paths(shared, sample), laws)
    assert judged.asked() == list(sample.asks)
    assert judged.final() == list(sample.says)
    reasons = set(judged.report.not_evaluable.get("false_success", {}))
    assert reasons == sample.gaps
    assert [finding.rule_id for finding in judged.report.findings] == list(sample.finds)


def test_the_command_reads_what_the_parts_read(shared: Path, sample: Sample, laws: Laws) -> None:
    """Files of logs are joined with the traces they are named after, in any order."""
    files = paths(shared, sample)
    report = check_paths(files[::-1], laws, Config())
    assert report.problems == []
    assert report.tool_calls == len(sample.calls)
    assert report.runs == sample.runs
