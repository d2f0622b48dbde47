"""Messages for the tests of the store and of incidents, and the whole content of a database to compare."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from otelmon.bus.protocol import Delivered
from otelmon.store.database import Database
from otelmon.vocabulary.event import AssistantMessage, Run, ToolCall, ToolDefinition, UserMessage
from otelmon.vocabulary.finding import Finding, Severity, Status
from otelmon.vocabulary.messages import RECORDS, SPANS, StoreRecord, TraceRecord, Verdict, encode

SECOND = 1_000_000_000
T0 = 1_700_000_000 * SECOND
TRACE = "a" * 32


def span_request(spans: Iterable[tuple[str, str, str]], service: str = "shop", environment: str = "prod") -> bytes:
    """A request with spans given as (trace id, span id, name)."""
    request = ExportTraceServiceRequest()
    resource_spans = request.resource_spans.add()
    for key, value in (("service.name", service), ("deployment.environment.name", environment)):
        attribute = resource_spans.resource.attributes.add()
        attribute.key, attribute.value.string_value = key, value
    scope_spans = resource_spans.scope_spans.add()
    for trace_id, span_id, name in spans:
        span = scope_spans.spans.add()
        span.trace_id, span.span_id, span.name = bytes.fromhex(trace_id), bytes.fromhex(span_id), name
        span.start_time_unix_nano, span.end_time_unix_nano = T0, T0 + SECOND
    serialized: bytes = request.SerializeToString()
    return serialized


def spans_message(offset: int, value: bytes, partition: int = 0, time: int = T0) -> Delivered:
    return Delivered(SPANS, partition, offset, "", value, time)


def record_message(offset: int, record: StoreRecord | bytes, partition: int = 0, time: int = T0) -> Delivered:
    value = record if isinstance(record, bytes) else encode(record)
    return Delivered(RECORDS, partition, offset, "", value, time)


def record_messages(records: Sequence[StoreRecord], start: int = 0) -> list[Delivered]:
    return [record_message(start + index, record) for index, record in enumerate(records)]


def finding(
    finding_id: str = "f1",
    *,
    severity: Severity = "high",
    status: Status = "open",
    at: int = T0,
    rule_id: str = "duplicate_write",
    tool_name: str | None = "charge_card",
    agent_name: str | None = "billing-bot",
    summary: str = "2 charges landed for one order",
    span_ids: tuple[str, ...] = ("1" * 16,),
    trace_id: str = TRACE,
) -> Finding:
    return Finding(
        finding_id=finding_id, rule_id=rule_id, rule_version="v1", family="effect", severity=severity, status=status,
        trace_id=trace_id, conversation_id="c1", run_id=f"{trace_id}:{'0' * 16}", span_ids=span_ids,
        tool_call_id=None, tool_name=tool_name, agent_name=agent_name, environment="prod", service_name="shop",
        summary=summary, evidence={"other": {"amount": 30}}, event_time_unix_nano=at,
    )  # fmt: skip


def verdict(
    *findings: Finding, owner: str = f"trace:{TRACE}", epoch: int = 0, observed: int = T0 + 10 * SECOND
) -> Verdict:
    return Verdict(owner=owner, epoch=epoch, findings=findings, observed_unix_nano=observed)


def run(trace_id: str = TRACE, conversation_id: str = "c1", **fields: Any) -> Run:
    values: dict[str, Any] = {
        "agent_name": "billing-bot", "service_name": "shop", "environment": "prod",
        "start_time_unix_nano": T0, "end_time_unix_nano": T0 + SECOND, "last_received_unix_nano": T0 + 2 * SECOND,
        "dialects": ("genai",), "gaps": ("sampled",),
    }  # fmt: skip
    return Run(run_id=f"{trace_id}:{'0' * 16}", trace_id=trace_id, conversation_id=conversation_id, **(values | fields))


def _place(trace_id: str, span_id: str, position: int) -> dict[str, Any]:
    return {
        "position": position, "trace_id": trace_id, "span_id": span_id, "run_id": f"{trace_id}:{'0' * 16}",
        "start_time_unix_nano": T0 + position, "end_time_unix_nano": T0 + position + 1, "agent_name": "billing-bot",
    }  # fmt: skip


def call(span_id: str = "1" * 16, position: int = 1, trace_id: str = TRACE, **fields: Any) -> ToolCall:
    values: dict[str, Any] = {
        "key": f"{trace_id}:{span_id}", "tool_name": "charge_card", "raw_name": "charge_card",
        "arguments": {"order_id": "W-1", "amount": 30}, "span_ids": (span_id,), "result": {"ok": True},
        "result_text": '{"ok":true}', "service_name": "shop", "environment": "prod",
    }  # fmt: skip
    return ToolCall(**(_place(trace_id, span_id, position) | values | fields))


def user(text: str, position: int = 0, trace_id: str = TRACE) -> UserMessage:
    return UserMessage(text=text, turn=1, **_place(trace_id, "2" * 16, position))


def assistant(text: str, position: int = 9, trace_id: str = TRACE) -> AssistantMessage:
    return AssistantMessage(text=text, final=True, **_place(trace_id, "2" * 16, position))


def definition(
    name: str = "charge_card", hash_: str = "sha256:1", at: int = T0, trace_id: str = TRACE
) -> ToolDefinition:
    place = _place(trace_id, "2" * 16, 0) | {"start_time_unix_nano": at}
    return ToolDefinition(
        name=name, description="Charge", input_schema={"type": "object"}, definition_hash=hash_, **place
    )


def record(
    *calls: ToolCall, trace_id: str = TRACE, epoch: int = 0, keys: tuple[str, ...] | None = None, **fields: Any
) -> TraceRecord:
    conversation = fields.pop("conversation_id", "c1")
    values: dict[str, Any] = {
        "runs": (run(trace_id, conversation),),
        "call_keys": tuple(c.key for c in calls) if keys is None else keys,
        "effects": {c.key: ("destructive", "additive") for c in calls},
    }
    return TraceRecord(trace_id=trace_id, epoch=epoch, conversation_id=conversation, calls=calls, **(values | fields))


def dump(database: Database) -> dict[str, list[str]]:
    """Every row of every table as text, sorted. Contents that nothing points at are left out: when
    they are written depends on the cut of the batches, and retention takes them."""
    tables: dict[str, list[str]] = {}
    with database.read() as cursor:
        names = cursor.execute("SELECT table_name FROM duckdb_tables() WHERE NOT temporary").fetchall()
        for (name,) in names:
            tables[name] = sorted(repr(row) for row in cursor.execute(f"FROM {name}").fetchall())
        tables["contents"] = sorted(
            repr(row)
            for row in cursor.execute(
                "FROM contents WHERE hash IN (SELECT unnest([arguments_content, result_content]) FROM tool_calls)"
                " OR hash IN (SELECT content FROM messages)"
            ).fetchall()
        )
    return tables
