"""Typed reads: what was written comes back whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from duckdb import DuckDBPyConnection

from otelmon.incidents.grouping import Grouping
from otelmon.store import queries, results
from otelmon.store.database import Database
from otelmon.store.results import CallDetail, Found, IncidentFilter, MessageDetail, RunFilter
from otelmon.store.writer import StoreWriter
from otelmon.vocabulary.config import IncidentsConfig
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.reading import Approval, HttpFields, RequestedCall
from tests.store.build import (
    SECOND,
    T0,
    TRACE,
    assistant,
    call,
    definition,
    finding,
    record,
    record_messages,
    run,
    span_request,
    spans_message,
    user,
    verdict,
)

B = "b" * 32
LONG = "a long answer with \x00 and \U0001f600 " * 100
ONE = call(
    "1" * 16, 1, arguments={"note": "n" * 2000, "amount": 10.50, "id": 2**60}, result={"ok": True, "text": LONG},
    result_text=msgspec.json.encode({"ok": True, "text": LONG}).decode(), tool_call_id="call_1", idempotency_key="k",
    approval=Approval("approved", by="ann"), http=(HttpFields("POST", "/charge", 200),), nested_calls=0, host="pod-1",
    service_namespace="pay", attempt=2, retry_of="x", error_message="late", trigger="job-7", effect_hint="write",
)  # fmt: skip
TWO = call("2" * 16, 2, outcome="unknown", arguments=None, arguments_text="{not json", result=None, result_text=None)
MESSAGES = (
    user("please charge " + "x" * 500, 0),
    msgspec.structs.replace(assistant("done", 3), requests=(RequestedCall("charge_card", "call_1", {"amount": 30}),)),
)


@pytest.fixture
def cursor(database: Database) -> Iterator[DuckDBPyConnection]:
    twice = finding("f1", span_ids=("2" * 16, "1" * 16))
    claim = finding(
        "f2", rule_id="false_success", at=T0 + 5, span_ids=("9" * 16,), trace_id=B, tool_name=None, severity="medium"
    )
    record_a = record(
        ONE, TWO, messages=MESSAGES, definitions=(definition(),), not_evaluable={run().run_id: {"loop": "sampled"}}
    )
    record_b = record(
        call(trace_id=B, tool_name="get_order"), trace_id=B, effects={}, conversation_id="c2",
        runs=(run(B, "c2", start_time_unix_nano=T0 + 9, agent_name="other"),),
    )  # fmt: skip
    writer = StoreWriter(database, Grouping(IncidentsConfig()))
    writer.write(record_messages([record_a, record_b, verdict(twice), verdict(claim, owner=f"trace:{B}")]))
    writer.write([spans_message(0, span_request([(TRACE, "1" * 16, "x"), (B, "1" * 16, "y")]))])
    with database.read() as cursor:
        yield cursor


def test_a_run_comes_back_whole(cursor: DuckDBPyConnection) -> None:
    detail = queries.run(cursor, run().run_id)
    assert detail is not None
    assert detail.run == run()
    assert detail.not_evaluable == {"loop": "sampled"}
    asked, one, two, answered = detail.timeline
    assert one == CallDetail(ONE, "destructive", "additive")
    assert two == CallDetail(TWO, "destructive", "additive")
    assert isinstance(asked, MessageDetail)
    assert isinstance(answered, MessageDetail)
    assert (asked.role, asked.text, asked.turn, asked.final) == ("user", "please charge " + "x" * 500, 1, None)
    assert (answered.role, answered.text, answered.turn, answered.final) == ("assistant", "done", None, True)
    assert answered.requests == (RequestedCall("charge_card", "call_1", {"amount": 30}),)
    assert [item.finding.finding_id for item in detail.findings] == ["f1"]
    assert queries.run(cursor, "nope") is None


def test_answers_travel_as_json(cursor: DuckDBPyConnection) -> None:
    """The pages and the commands beside a running server get them so."""
    detail = queries.run(cursor, run().run_id)
    assert msgspec.json.decode(msgspec.json.encode(detail), type=results.RunDetail) == detail


def test_a_finding_shows_its_calls_side_by_side(cursor: DuckDBPyConnection) -> None:
    (detail,) = queries.findings(cursor, finding="f1")
    assert [item.call for item in detail.calls] == [ONE, TWO]
    assert detail.finding == finding("f1", span_ids=("2" * 16, "1" * 16))
    assert detail.first_seen_unix_nano == T0 + 10 * SECOND
    assert detail.incident_id is not None
    incident = queries.incident(cursor, detail.incident_id)
    assert incident is not None
    assert incident.findings == (detail,)
    assert queries.incident(cursor, "nope") is None


def test_a_call_of_another_trace_counts_when_it_is_named_or_the_same_act(database: Database) -> None:
    """Span ids repeat between traces; the ledger's findings point into other traces."""
    traces = [f"{n:032x}" for n in range(1, 5)]
    made = [call("1" * 16, trace_id=trace) for trace in traces[:3]]
    stranger = call("1" * 16, trace_id=traces[3], arguments={"order_id": "W-9"})
    named = call("2" * 16, 2, trace_id=traces[3], tool_name="refund")
    twice = msgspec.structs.replace(
        finding(trace_id=traces[0], span_ids=("1" * 16, "2" * 16)),
        evidence={"other": {"anchor": named.key}, "times": 2},
    )
    records = [record(one, trace_id=one.trace_id) for one in made]
    records.append(record(stranger, named, trace_id=traces[3]))
    StoreWriter(database).write(record_messages([*records, verdict(twice)]))
    with database.read() as cursor:
        (detail,) = queries.findings(cursor)
    assert sorted(item.call.key for item in detail.calls) == sorted([*(one.key for one in made), named.key])


def test_a_conversation_holds_its_runs(cursor: DuckDBPyConnection) -> None:
    detail = queries.conversation(cursor, "c1")
    assert detail is not None
    assert detail.runs == (run(),)
    assert len(detail.timeline) == 4
    assert [item.finding.finding_id for item in detail.findings] == ["f1", "f2"]
    assert queries.conversation(cursor, "nope") is None


@pytest.mark.parametrize(
    ("wanted", "rules"),
    [
        (IncidentFilter(), ["false_success", "duplicate_write"]),
        (IncidentFilter(severity="high"), ["duplicate_write"]),
        (IncidentFilter(states=("resolved", "retracted")), []),
        (IncidentFilter(states=("open",), family="effect"), ["false_success", "duplicate_write"]),
        (IncidentFilter(family="truth"), []),
        (IncidentFilter(tool="charge_card"), ["duplicate_write"]),
        (IncidentFilter(agent="nobody"), []),
        (IncidentFilter(environment="dev"), []),
        (IncidentFilter(label="unreviewed"), ["false_success", "duplicate_write"]),
        (IncidentFilter(since=T0 + 1), ["false_success"]),
    ],
)
def test_incident_filters(cursor: DuckDBPyConnection, wanted: IncidentFilter, rules: list[str]) -> None:
    page = queries.incidents(cursor, wanted)
    assert [rule for incident in page.incidents for rule in incident.rule_ids] == rules
    assert page.total == len(rules)


def test_pages_of_incidents(cursor: DuckDBPyConnection) -> None:
    pages = [queries.incidents(cursor, limit=1, offset=n) for n in (0, 1)]
    assert [page.incidents[0].rule_ids for page in pages] == [("false_success",), ("duplicate_write",)]
    assert [page.total for page in pages] == [2, 2]


@pytest.mark.parametrize(
    ("wanted", "conversations"),
    [
        (RunFilter(), ["c2", "c1"]),
        (RunFilter(agent="other"), ["c2"]),
        (RunFilter(trace=TRACE), ["c1"]),
        (RunFilter(conversation="c2"), ["c2"]),
        (RunFilter(service="nope"), []),
        (RunFilter(environment="prod", since=T0 + 1), ["c2"]),
    ],
)
def test_run_filters(cursor: DuckDBPyConnection, wanted: RunFilter, conversations: list[str]) -> None:
    assert [summary.run.conversation_id for summary in queries.runs(cursor, wanted)] == conversations


def test_runs_count_their_calls_and_findings(cursor: DuckDBPyConnection) -> None:
    found = queries.runs(cursor)
    assert [(item.calls, item.findings) for item in found] == [(1, 1), (2, 1)]
    assert [item.run.trace_id for item in queries.runs(cursor, RunFilter(with_findings=True))] == [B, TRACE]


def test_find_by_the_beginning_of_any_id(cursor: DuckDBPyConnection) -> None:
    assert [(found.kind, found.id) for found in queries.find(cursor, "aaaa")] == [
        ("run", run().run_id),
        ("trace", TRACE),
    ]
    assert queries.find(cursor, "c2") == (Found("conversation", "c2", "1 runs"),)
    assert queries.find(cursor, "f1") == (Found("finding", "f1", "duplicate_write: 2 charges landed for one order"),)
    incident = queries.incidents(cursor).incidents[0]
    assert queries.find(cursor, incident.incident_id[:9])[0] == Found("incident", incident.incident_id, incident.title)
    assert queries.find(cursor, "%") == ()


def test_counts(cursor: DuckDBPyConnection) -> None:
    assert [(c.rule_id, c.severity, c.status, c.amount) for c in queries.finding_counts(cursor)] == [
        ("duplicate_write", "high", "open", 1),
        ("false_success", "medium", "open", 1),
    ]
    assert [(c.severity, c.state, c.amount) for c in queries.incident_counts(cursor)] == [
        ("high", "open", 1),
        ("medium", "open", 1),
    ]
    assert sorted((c.tool_name, c.effect, c.outcome, c.amount) for c in queries.call_counts(cursor)) == [
        ("charge_card", "destructive", "succeeded", 1),
        ("charge_card", "destructive", "unknown", 1),
        ("get_order", "unknown", "succeeded", 1),
    ]
    assert queries.call_counts(cursor, since=T0 + 100) == ()
    assert [(c.rule_id, c.agent_name, c.reason, c.amount) for c in queries.not_evaluable_counts(cursor)] == [
        ("loop", "billing-bot", "sampled", 1)
    ]
    agents = queries.agents(cursor)
    assert [(a.agent_name, a.runs, a.dialects) for a in agents] == [
        ("billing-bot", 1, ("genai",)),
        ("other", 1, ("genai",)),
    ]
    assert queries.sizes(cursor) == {"spans": 2, "runs": 2, "tool_calls": 3, "findings": 2, "incidents": 2}


def test_tool_versions(cursor: DuckDBPyConnection) -> None:
    (version,) = queries.tool_versions(cursor)
    assert (version.tool_name, version.input_schema, version.annotations) == ("charge_card", {"type": "object"}, None)
    assert queries.tool_versions(cursor, "nope") == ()


def test_payloads_come_back_as_they_were(database: Database) -> None:
    values = [span_request([(trace, f"{n + 1:016x}", "x")]) for n, trace in enumerate((TRACE, B, TRACE))]
    StoreWriter(database).write([spans_message(n, value, time=T0 + n) for n, value in enumerate(values)])

    def offsets(**wanted: Any) -> list[int]:
        return [payload.offset for payload in queries.payloads(database, **wanted)]

    assert [payload.value for payload in queries.payloads(database)] == values
    assert offsets(since=T0 + 1) == [1, 2]
    assert offsets(until=T0 + 1) == [0]
    assert offsets(trace_id=TRACE) == [0, 2]
    assert offsets(trace_id="c" * 32) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"result": None, "result_text": None},
        {"result": None, "result_text": "plain"},
        {"result": {"a": [1, None]}, "result_text": None},
        {"result": {"a": 1}, "result_text": '{"a":1}'},
        {"result": {"a": 1}, "result_text": '{ "a": 1 }\nmore'},
        {"result": "text", "result_text": "text"},
        {"result": [1.5, "\u00e9"], "result_text": "x" * 300},
        {"arguments": [], "arguments_text": ""},
        {"arguments": {"a": "b" * 3000}, "arguments_text": None},
    ],
)
def test_arguments_and_results_are_exact(database: Database, fields: dict[str, Any]) -> None:
    made: ToolCall = call(**fields)
    StoreWriter(database).write(record_messages([record(made)]))
    with database.read() as cursor:
        detail = queries.run(cursor, run().run_id)
    assert detail is not None
    assert detail.timeline == (CallDetail(made, "destructive", "additive"),)
