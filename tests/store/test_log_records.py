"""Log records in the store: every one accounted for, known again, kept with its signal, and found by its trace."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from otelmon.assemble.stage import JSON, content_type, shape_of
from otelmon.bus.protocol import Delivered
from otelmon.receive import otlp
from otelmon.store.accounts import Totals, conservation
from otelmon.store.database import Database
from otelmon.store.log_records import headers_of
from otelmon.store.queries import payloads
from otelmon.store.retention import remove_before
from otelmon.store.writer import StoreWriter
from otelmon.vocabulary.messages import SIGNAL, SPANS
from tests.store.build import T0, TRACE, span_request, spans_message

B = "b" * 32
SAID, ASKED, NOISE = "gen_ai.user.message", "gen_ai.choice", "app.started"


def log_request(records: Sequence[tuple[str, str, str, str]]) -> bytes:
    """A request with log records given as (trace id, span id, event name, content)."""
    request = ExportLogsServiceRequest()
    scope_logs = request.resource_logs.add().scope_logs.add()
    for trace_id, span_id, name, content in records:
        record = scope_logs.log_records.add(event_name=name, time_unix_nano=T0)
        record.trace_id, record.span_id = bytes.fromhex(trace_id), bytes.fromhex(span_id)
        record.body.kvlist_value.values.add(key="content").value.string_value = content
    serialized: bytes = request.SerializeToString()
    return serialized


def logs_message(offset: int, value: bytes, time: int = T0, *more: tuple[str, bytes]) -> Delivered:
    return Delivered(SPANS, 0, offset, "", value, time, ((SIGNAL, b"logs"), *more))


def totals(database: Database) -> Totals:
    with database.read() as cursor:
        [total] = conservation(cursor)
    assert total.missing == 0
    return total


def rows(database: Database, query: str) -> list[tuple[Any, ...]]:
    with database.read() as cursor:
        return cursor.execute(query).fetchall()


MIXED = log_request([
    (TRACE, "1" * 16, SAID, "hi"), (TRACE, "1" * 16, NOISE, "x"), (TRACE, "1" * 16, SAID, ""), (TRACE, "", SAID, "hi"),
    (TRACE, "7" * 8, SAID, "hi"), (B, "2" * 16, ASKED, "hello"),
])  # fmt: skip


def test_every_log_record_is_accounted_for(database: Database) -> None:
    writer = StoreWriter(database)
    spans = span_request([(TRACE, "1" * 16, "a")])
    writer.write([logs_message(0, MIXED), spans_message(1, spans), logs_message(2, b"\xff")])
    writer.write([logs_message(3, MIXED)])
    total = totals(database)
    assert (total.received, total.stored, total.duplicate) == (14, 3, 2)
    assert (total.filtered, total.rejected, total.dead_lettered, total.conflict) == (6, {"invalid_span_id": 2}, 1, 0)
    kept = rows(database, "SELECT reason, amount FROM accounts WHERE kind = 'filtered' ORDER BY 1")
    assert kept == [("no_agent_content", 4), ("no_trace_context", 2)]
    assert rows(database, "SELECT trace_id FROM spans") == [(TRACE,)]
    assert rows(database, "SELECT trace_id, span_id FROM log_records ORDER BY 1") == [(TRACE, "1" * 16), (B, "2" * 16)]


def test_a_request_without_agent_content_is_not_kept(database: Database) -> None:
    StoreWriter(database).write([logs_message(0, log_request([(TRACE, "1" * 16, NOISE, "x")]))])
    assert totals(database).filtered == 1
    assert list(payloads(database)) == []


def test_a_payload_comes_back_with_its_signal_and_by_its_trace(database: Database) -> None:
    span = span_request([(TRACE, "1" * 16, "a")])
    mine, other = log_request([(TRACE, "1" * 16, SAID, "hi")]), log_request([(B, "1" * 16, SAID, "hi")])
    StoreWriter(database).write([spans_message(0, span), logs_message(1, mine), logs_message(2, other)])
    found = list(payloads(database, trace_id=TRACE))
    assert [(p.value, p.encoding) for p in found] == [(span, "otlp_proto"), (mine, "otlp_proto_logs")]
    assert [headers_of(p.encoding) for p in found] == [(), ((SIGNAL, b"logs"),)]


def test_json_is_sent_again_as_json(database: Database) -> None:
    for encoding, shape in (("otlp_json", otlp.TRACES), ("otlp_json_logs", otlp.LOGS)):
        message = Delivered(SPANS, 0, 0, "", b"x", T0, headers_of(encoding))
        assert (content_type(message), shape_of(message)) == (JSON, shape)
    body = otlp.dump_json(ExportLogsServiceRequest.FromString(log_request([(TRACE, "1" * 16, SAID, "hi")])))
    assert body["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0]["traceId"] == TRACE


def test_log_records_leave_with_their_age(database: Database) -> None:
    old, new = log_request([(TRACE, "1" * 16, SAID, "old")]), log_request([(TRACE, "1" * 16, SAID, "new")])
    StoreWriter(database).write([logs_message(0, old), logs_message(1, new, T0 + 10)])
    remove_before(database, T0 + 5)
    assert rows(database, "SELECT payload_offset FROM log_records") == [(1,)]
    assert [p.offset for p in payloads(database)] == [1]


RECORDS = st.tuples(
    st.sampled_from([TRACE, B]), st.sampled_from(["1" * 16, "2" * 16, "", "7" * 8]), st.sampled_from([SAID, ASKED, NOISE]),
    st.sampled_from(["", "hi", "hello"]),
)  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(RECORDS, max_size=5), max_size=5), st.integers(1, 5))
def test_what_came_is_what_became_of_it(requests: list[list[tuple[str, str, str, str]]], size: int) -> None:
    with TemporaryDirectory() as folder, Database.open(Path(folder) / "otelmon.duckdb") as database:
        writer = StoreWriter(database)
        messages = [logs_message(offset, log_request(records)) for offset, records in enumerate(requests)]
        for start in range(0, len(messages), size):
            writer.write(messages[start : start + size])
        good = [r for records in requests for r in records if len(r[1]) == 16 and r[2] != NOISE and r[3]]
        with database.read() as cursor:
            found = conservation(cursor)
        assert sum(t.missing for t in found) == 0
        assert sum(t.received for t in found) == sum(map(len, requests))
        assert sum(t.stored for t in found) == len(set(good))
        assert sum(t.duplicate for t in found) == len(good) - len(set(good))
