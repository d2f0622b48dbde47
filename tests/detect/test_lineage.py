"""Where arguments came from, as it is said to the store: for runs that are over, without content, once."""

from __future__ import annotations

import msgspec

from otelmon.assemble.timeline import build
from otelmon.checks.view import View
from otelmon.detect.emission import TraceEmission, emit
from otelmon.detect.engine import judge
from otelmon.detect.lineage import MAX_ARGUMENTS, lineages
from otelmon.vocabulary.event import Timeline
from otelmon.vocabulary.messages import TraceRecord
from tests.checks.build import view
from tests.detect.build import laws, refunded


def of(seen: View, timeline: Timeline | None = None) -> list[list[tuple[str, str, str, str, bool]]]:
    seen = View(timeline) if timeline else seen
    found = lineages(seen, {run.run_id for run in seen.runs})
    return [
        [(row.path, row.source, row.anchor, row.transformation, row.sure) for row in found.get(call.key, ())]
        for call in seen.calls
    ]


def test_each_argument_is_told_by_the_call_or_message_that_had_it_first() -> None:
    seen = view(
        {"user": "Refund order W-100."},
        {"tool": "get_order", "args": {"order_id": "W-100"}, "result": {"lines": [{"price": 12.5}, {"price": 4}]}},
        {"tool": "issue_refund", "args": {"order_id": "w100", "amount": 16.5, "ticket_id": "T-555", "note": "ok"}},
    )
    asked = seen.events[0]
    assert of(seen) == [
        [("order_id", "user", asked.span_id, "verbatim or formatting", True)],
        [
            ("order_id", "user", asked.span_id, "verbatim or formatting", True),
            ("amount", "result", "", "sum or difference with N", False),
            ("ticket_id", "none", "", "", True),
            ("note", "composed", "", "verbatim", True),
        ],
    ]
    third = view(
        {"user": "Refund it."},
        {"tool": "get_order", "args": {}, "result": {"price": 12.5}},
        {"tool": "issue_refund", "args": {"amount": 12.5}},
    )
    assert of(third)[1] == [("amount", "result", third.calls[0].key, "verbatim or formatting", True)]


def test_where_something_was_not_seen_no_source_is_not_sure() -> None:
    seen = view({"user": "Go."}, {"tool": "pay", "args": {"order_id": "W-9001"}}, gaps=["truncated"])
    assert of(seen) == [[("order_id", "none", "", "", False)]]


def test_runs_that_go_on_are_not_told_and_long_calls_are_cut() -> None:
    seen = view({"user": "Go."}, {"tool": "pay", "args": {f"a{n}": n for n in range(200)}})
    assert lineages(seen, ()) == {}
    [rows] = of(seen)
    assert len(rows) == MAX_ARGUMENTS


def test_it_is_said_when_the_run_is_over_and_not_again() -> None:
    span, emission = refunded(), TraceEmission()
    trace_id = span.readings[0].trace_id

    def said(closed: bool) -> list[TraceRecord]:
        runs = build("conv", span.readings).runs
        timeline = build("conv", span.readings, {run.run_id: "root" for run in runs} if closed else {})
        records, _ = emit(judge(timeline, laws()), {trace_id: (1, emission)})
        return [record for record in records if isinstance(record, TraceRecord)]

    assert [record.lineage for record in said(closed=False)] == [{}]
    [record] = said(closed=True)
    assert [set(record.lineage), record.calls] == [set(record.call_keys), ()]
    assert said(closed=True) == []
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(record), type=TraceRecord) == record
