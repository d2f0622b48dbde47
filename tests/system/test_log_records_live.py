"""Content that comes only in log records, over real sockets: before or after the spans, and sent again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from opentelemetry._logs import LogRecord
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from otelmon.app.sender import Sender, send_files
from tests.system.conftest import Serve
from tests.system.monitor import ServedMonitor

pytestmark = pytest.mark.timeout(300)

ASKED = {"id": "c1", "type": "function", "function": {"name": "get_order", "arguments": '{"order_id": "A-1"}'}}
SPANS = 2


def exchange(logger: Any, tracer: Any, parts: list[tuple[str, dict[str, Any]]]) -> None:
    """A call of the model: the span shows only that it was made, the log records what was said."""
    with tracer.start_as_current_span("chat m", attributes={"gen_ai.operation.name": "chat"}):
        for name, body in parts:
            logger.emit(LogRecord(event_name=f"gen_ai.{name}", body=body))
        logger.emit(LogRecord(body="200 OK"))


def run_agent(monitor: ServedMonitor, logs_first: bool) -> None:
    """An agent that writes what is said only into log records, exported by the SDK."""
    spans, logs = TracerProvider(), LoggerProvider()
    spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(monitor.grpc, insecure=True)))
    logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(monitor.grpc, insecure=True)))
    tracer, logger = spans.get_tracer("agent"), logs.get_logger("agent")
    asks = ("user.message", {"content": "Where is order A-1?"})
    with tracer.start_as_current_span("request"):
        exchange(logger, tracer, [asks, ("choice", {"message": {"tool_calls": [ASKED]}})])
        exchange(
            logger,
            tracer,
            [
                asks,
                ("assistant.message", {"tool_calls": [ASKED]}),
                ("tool.message", {"id": "c1", "content": '{"status": "on its way"}'}),
                ("choice", {"message": {"content": "On its way."}}),
            ],
        )
    logger.emit(LogRecord(body="of no span"))
    for provider in (logs, spans) if logs_first else (spans, logs):
        provider.shutdown()


@pytest.mark.parametrize("logs_first", [True, False], ids=["logs first", "spans first"])
def test_an_agent_that_says_all_in_log_records_is_understood(serve: Serve, logs_first: bool) -> None:
    monitor = serve()
    run_agent(monitor, logs_first)
    monitor.wait_until_through(SPANS + 1)
    [run] = monitor.read("runs")
    story = json.dumps(monitor.read("run", id=run["run"]["run_id"]))
    for part in ("Where is order A-1?", "get_order", "on its way", "On its way."):
        assert part in story
    accounts = [a for a in monitor.read("accounts") if a["topic"] == "otelmon.spans"]
    assert sum(a["stored"] for a in accounts) == SPANS + 1 + 6
    assert sum(a["filtered"] for a in accounts) == 2  # the plain lines under the spans
    assert monitor.metrics()['otelmon_log_records_filtered_total{reason="no_trace_context"}'] == 1
    assert monitor.otelmon("doctor").returncode == 0


@pytest.mark.data
def test_files_of_logs_are_replayed_and_replay_keeps_their_signal(serve: Serve, shared: Path) -> None:
    monitor = serve()
    name = "genai-semconv-legacy-events__openai@1.109.1+2.1b0"
    sender = Sender(monitor.endpoint)
    sent = send_files([shared / "spans" / f"{name}{end}.otlp.json" for end in (".logs", "")], sender)
    sender.close()
    assert (sent.problems, sent.rejected) == ([], 0)
    monitor.wait_until_through(sent.spans)

    def state() -> tuple[int, set[tuple[str, str, str, str]], list[Any]]:
        kept = [a for a in monitor.read("accounts") if a["topic"] == "otelmon.spans"]
        return monitor.read("sizes")["rows"]["tool_calls"], monitor.findings(), [a["stored"] for a in kept]

    before = state()
    assert before[0] == 4
    received = sum(a["received"] for a in monitor.read("accounts") if a["topic"] == "otelmon.spans")
    answer = monitor.otelmon("replay", "--from", "2020-01-01")
    assert answer.returncode == 0, answer.stderr
    monitor.wait_until_taken(2 * received)
    assert state() == before
    kept = [a for a in monitor.read("accounts") if a["topic"] == "otelmon.spans"]
    assert sum(a["dead_lettered"] + a["conflict"] for a in kept) == 0
