"""Batches: conservation, duplicates, epochs, replacement, and what a record makes of the rows."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from otelmon.bus.protocol import Delivered
from otelmon.store.accounts import Totals, conservation
from otelmon.store.database import Database
from otelmon.store.verdicts import Change
from otelmon.store.writer import StoreWriter
from otelmon.vocabulary.config import ReceiveConfig
from otelmon.vocabulary.messages import RECORDS, SPANS, Account
from tests.store.build import (
    SECOND,
    T0,
    TRACE,
    assistant,
    call,
    definition,
    dump,
    finding,
    record,
    record_message,
    record_messages,
    run,
    span_request,
    spans_message,
    user,
    verdict,
)

B = "b" * 32


def rows(database: Database, query: str) -> list[tuple[Any, ...]]:
    with database.read() as cursor:
        return cursor.execute(query).fetchall()


def totals(database: Database, topic: str = SPANS, end: int | None = None) -> Totals:
    with database.read() as cursor:
        found = conservation(cursor, {} if end is None else {(topic, 0): end})
    return next(total for total in found if total.topic == topic)


def test_every_span_is_accounted_for(database: Database) -> None:
    writer = StoreWriter(database)
    good = span_request([(TRACE, "1" * 16, "a"), (TRACE, "2" * 16, "b")])
    bad = span_request([(TRACE, "3" * 16, "c"), ("0" * 32, "4" * 16, "no trace"), (TRACE, "0" * 16, "no span")])
    other = span_request([(TRACE, "1" * 16, "changed"), (TRACE, "5" * 16, "e"), (TRACE, "5" * 16, "e")])
    writer.write([spans_message(3, good), spans_message(4, bad), spans_message(5, good), spans_message(6, b"\xff\xff")])
    writer.write([spans_message(9, other)])
    total = totals(database, end=12)
    assert total == Totals(
        topic=SPANS, partition=0, first_offset=3, next_offset=10, received=11, stored=5, duplicate=3, conflict=1,
        dead_lettered=1, rejected={"invalid_span_id": 1, "invalid_trace_id": 1}, pending=2,
    )  # fmt: skip
    assert total.missing == 0
    assert rows(database, "SELECT count(*) FROM spans") == [(5,)]
    assert rows(database, "SELECT span_id, name, conflict FROM spans WHERE conflict OR name = 'a' ORDER BY name") == [
        ("1" * 16, "a", False),
        ("1" * 16, "changed", True),
    ]


def test_a_span_row_says_where_its_payload_is(database: Database) -> None:
    value = span_request([(TRACE, "1" * 16, "a"), (TRACE, "2" * 16, "b")])
    StoreWriter(database).write([spans_message(7, value, partition=2)])
    query = "SELECT span_id, service_name, environment, start_time_unix_nano, payload_partition, payload_offset, payload_index FROM spans ORDER BY 1"
    assert rows(database, query) == [
        ("1" * 16, "shop", "prod", T0, 2, 7, 0),
        ("2" * 16, "shop", "prod", T0, 2, 7, 1),
    ]
    assert rows(database, 'SELECT topic, partition, "offset", spans, bytes_raw, encoding FROM payloads') == [
        (SPANS, 2, 7, 2, len(value), "otlp_proto")
    ]


def test_a_message_of_duplicates_alone_is_not_kept_again(database: Database) -> None:
    value = span_request([(TRACE, "1" * 16, "a")])
    StoreWriter(database).write([spans_message(0, value), spans_message(1, value)])
    assert rows(database, 'SELECT "offset" FROM payloads') == [(0,)]


def test_json_is_read_as_well_and_is_the_same_span(database: Database) -> None:
    body = b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"%s","spanId":"%s","name":"n","startTimeUnixNano":"5","endTimeUnixNano":"6"}]}]}]}'
    body %= (TRACE.encode(), b"1" * 16)
    StoreWriter(database).write([spans_message(0, body), spans_message(1, body[:-9])])
    assert rows(database, "SELECT trace_id, name, start_time_unix_nano FROM spans") == [(TRACE, "n", 5)]
    assert totals(database).dead_lettered == 1


def test_the_receivers_limits_hold_in_the_store(database: Database) -> None:
    value = span_request([(TRACE, "1" * 16, "long" * 100), (TRACE, "2" * 16, "short")])
    StoreWriter(database, limits=ReceiveConfig(max_span_bytes=200)).write([spans_message(0, value)])
    assert totals(database).rejected == {"span_too_large": 1}
    assert rows(database, "SELECT name FROM spans") == [("short",)]


@pytest.mark.parametrize("again", [0, 1, 2])
def test_messages_below_the_stored_offset_are_ignored(database: Database, again: int) -> None:
    messages: list[Delivered] = [
        spans_message(0, span_request([(TRACE, "1" * 16, "a")])),
        record_message(0, record(call(), messages=(user("hi"),), definitions=(definition(),))),
        record_message(1, verdict(finding())),
    ]
    writer = StoreWriter(database)
    offsets = writer.write(messages)
    assert offsets == {(SPANS, 0): 1, (RECORDS, 0): 2}
    before = dump(database)
    assert writer.write(messages[again:]) == offsets
    assert StoreWriter(database).write(messages[again:]) == offsets
    assert dump(database) == before


def test_a_new_writer_goes_on_where_the_last_one_stopped(database: Database) -> None:
    StoreWriter(database).write([record_message(4, verdict(finding()), partition=3)])
    assert StoreWriter(database).offset(RECORDS, 3) == 5
    assert StoreWriter(database).offset(RECORDS, 0) is None


def test_an_exception_in_the_hook_stores_nothing(database: Database) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no")

    writer = StoreWriter(database, fail)
    before = dump(database)
    with pytest.raises(RuntimeError):
        writer.write([record_message(0, verdict(finding()))])
    assert dump(database) == before
    assert writer.offset(RECORDS, 0) is None
    assert StoreWriter(database).write([record_message(0, verdict(finding()))]) == {(RECORDS, 0): 1}


def test_a_record_that_can_not_be_read_is_counted_and_the_rest_goes_on(database: Database) -> None:
    StoreWriter(database).write([record_message(0, b"\xc1"), record_message(1, verdict(finding()))])
    total = totals(database, RECORDS)
    assert (total.received, total.stored, total.dead_lettered, total.missing) == (2, 1, 1, 0)
    assert rows(database, "SELECT count(*) FROM open_findings") == [(1,)]


def test_what_other_stages_refused_is_an_upsert(database: Database) -> None:
    def account(n: int) -> Account:
        return Account(id="receive:1", stage="receive", received=n, rejected={"too_deep": n}, observed_unix_nano=T0)

    StoreWriter(database).write(record_messages([account(1), account(2)]))
    StoreWriter(database).write(record_messages([account(3)], start=2))
    query = "SELECT kind, reason, amount FROM accounts WHERE stage = 'receive' ORDER BY kind"
    assert rows(database, query) == [("received", "", 3), ("rejected", "too_deep", 3)]


# -- verdicts ------------------------------------------------------------------------------------
STATUSES = "SELECT finding_id, status, retracted_unix_nano FROM findings ORDER BY finding_id"


def test_a_verdict_replaces_what_its_owner_said(database: Database) -> None:
    writer = StoreWriter(database)
    later = T0 + 60 * SECOND
    writer.write(record_messages([verdict(finding("f1"), finding("f2")), verdict(finding("f9"), owner="trace:z")]))
    writer.write(record_messages([verdict(finding("f2"), finding("f3"), observed=later)], start=2))
    assert rows(database, STATUSES) == [
        ("f1", "retracted", later), ("f2", "open", None), ("f3", "open", None), ("f9", "open", None),
    ]  # fmt: skip
    writer.write(record_messages([verdict(finding("f1", summary="again"), observed=later + SECOND)], start=3))
    query = "SELECT finding_id, status, summary, first_seen_unix_nano FROM findings WHERE finding_id = 'f1'"
    assert rows(database, query) == [("f1", "open", "again", T0 + 10 * SECOND)]


def test_a_lower_epoch_is_ignored_and_counted(database: Database) -> None:
    writer = StoreWriter(database)
    writer.write(record_messages([verdict(finding("f1"), epoch=1), verdict(finding("f2"), epoch=0)]))
    writer.write(record_messages([verdict(epoch=0), record(call(), epoch=2), record(epoch=1)], start=2))
    assert rows(database, STATUSES) == [("f1", "open", None)]
    assert rows(database, "SELECT call_key FROM tool_calls") == [(f"{TRACE}:{'1' * 16}",)]
    total = totals(database, RECORDS)
    assert (total.stored, total.filtered, total.missing) == (2, 3, 0)
    writer.write(record_messages([verdict(epoch=1)], start=5))
    assert rows(database, "SELECT status FROM findings") == [("retracted",)]


def test_an_empty_verdict_of_a_higher_epoch_is_remembered(database: Database) -> None:
    writer = StoreWriter(database)
    writer.write(record_messages([verdict(epoch=1)]))
    writer.write(record_messages([verdict(finding(), epoch=0)], start=1))
    assert rows(database, "SELECT count(*) FROM findings") == [(0,)]


def test_a_finding_of_two_owners_is_open_while_one_lists_it(database: Database) -> None:
    writer = StoreWriter(database)
    by_ledger, by_trace = finding(summary="ledger"), finding(summary="trace")
    owner = "effect:k"
    writer.write(record_messages([verdict(by_trace), verdict(by_ledger, owner=owner)]))
    shown = "SELECT summary, status FROM findings WHERE shown"
    assert rows(database, shown) == [("ledger", "open")]
    writer.write(record_messages([verdict(owner=owner)], start=2))
    assert rows(database, shown) == [("trace", "open")]
    writer.write(record_messages([verdict()], start=3))
    assert rows(database, shown) == [("ledger", "retracted")]


def test_the_hook_hears_what_changed_in_order(database: Database) -> None:
    heard: list[tuple[str, str]] = []

    def hook(_: object, changes: Any) -> None:
        heard.extend((change.kind, change.finding.finding_id) for change in changes if isinstance(change, Change))

    writer = StoreWriter(database, hook)
    messages = record_messages([verdict(finding("a")), verdict(finding("b")), verdict(finding("b"), finding("a"))])
    writer.write(messages)
    assert heard == [("new", "a"), ("retracted", "a"), ("new", "b"), ("restored", "a")]
    heard.clear()
    writer.write(record_messages([verdict(finding("b"), finding("a", severity="low"))], start=3))
    writer.write(record_messages([verdict(finding("b"), finding("a", severity="low"))], start=4))
    assert heard == [("updated", "a")]


# -- trace records -------------------------------------------------------------------------------
def keys(database: Database, table: str = "tool_calls") -> list[str]:
    return [row[0] for row in rows(database, f"SELECT call_key FROM {table} ORDER BY call_key")]


def test_calls_that_a_record_does_not_name_leave_and_unchanged_ones_stay(database: Database) -> None:
    one, two, three = call("1" * 16), call("2" * 16, 2), call("3" * 16, 3)
    writer = StoreWriter(database)
    writer.write(record_messages([record(one, two), record(call(trace_id=B), trace_id=B)]))
    changed = call("2" * 16, 2, outcome="unknown")
    writer.write(record_messages([record(changed, three, keys=(two.key, three.key))], start=2))
    assert keys(database) == sorted([two.key, three.key, f"{B}:{'1' * 16}"])
    assert keys(database, "effects") == keys(database)
    writer.write(record_messages([record(keys=(two.key,))], start=3))
    assert rows(database, f"SELECT call_key, outcome FROM tool_calls WHERE trace_id = '{TRACE}'") == [
        (two.key, "unknown")
    ]


def test_a_call_dropped_and_named_again_without_its_row_is_gone_in_any_cut(database: Database) -> None:
    one = call("1" * 16)
    writer = StoreWriter(database)
    writer.write(record_messages([record(one)]))
    writer.write(record_messages([record(keys=()), record(keys=(one.key,))], start=1))
    assert keys(database) == []


def test_a_call_of_two_traces_is_a_row_of_each(database: Database) -> None:
    """A derived call moves between traces: the order of their records must not matter."""
    derived_a, derived_b = call(key="derived:1", derived=True), call(key="derived:1", derived=True, trace_id=B)
    writer = StoreWriter(database)
    writer.write(record_messages([record(derived_a), record(derived_b, trace_id=B)]))
    writer.write(record_messages([record(keys=())], start=2))
    assert rows(database, "SELECT call_key, trace_id FROM tool_calls") == [("derived:1", B)]


def test_messages_are_replaced_when_any_are_sent(database: Database) -> None:
    writer = StoreWriter(database)
    writer.write(record_messages([record(messages=(user("first"), assistant("draft")))]))
    writer.write(record_messages([record()], start=1))
    assert rows(database, "SELECT text FROM messages ORDER BY position") == [("first",), ("draft",)]
    writer.write(record_messages([record(messages=(user("first"), user("x" * 500, 1), assistant("done", 5)))], start=2))
    query = "SELECT role, text, content IS NOT NULL, turn, final FROM messages ORDER BY position"
    assert rows(database, query) == [
        ("user", "first", False, 1, None), ("user", "x" * 200, True, 1, None), ("assistant", "done", False, None, True),
    ]  # fmt: skip


def test_runs_and_gaps_are_replaced(database: Database) -> None:
    writer = StoreWriter(database)
    other = msgspec.structs.replace(run(), run_id=f"{TRACE}:other")
    gaps = {run().run_id: {"false_success": "sampled"}, other.run_id: {"ungrounded_argument": "content_off"}}
    writer.write(record_messages([record(runs=(run(), other), not_evaluable=gaps)]))
    assert rows(database, "SELECT count(*) FROM runs") == [(2,)]
    assert rows(database, "SELECT rule_id, reason, agent_name FROM not_evaluable ORDER BY 1") == [
        ("false_success", "sampled", "billing-bot"), ("ungrounded_argument", "content_off", "billing-bot"),
    ]  # fmt: skip
    writer.write(record_messages([record(suppressed={run().run_id: {"loop": 2}})], start=1))
    assert rows(database, "SELECT rule_id, amount, agent_name FROM suppressed") == [("loop", 2, "billing-bot")]
    writer.write(record_messages([record()], start=2))
    assert rows(database, "SELECT count(*) FROM suppressed") == [(0,)]
    assert rows(database, "SELECT run_id FROM runs") == [(run().run_id,)]
    assert rows(database, "SELECT count(*) FROM not_evaluable") == [(0,)]


def test_rows_that_stay_follow_their_trace_to_its_conversation(database: Database) -> None:
    writer = StoreWriter(database)
    one = call()
    alone = f"trace:{TRACE}"
    writer.write(record_messages([record(one, messages=(user("hi"),), conversation_id=alone)]))
    writer.write(record_messages([record(keys=(one.key,), epoch=1, conversation_id="c7")], start=1))
    assert rows(database, "SELECT conversation_id FROM tool_calls UNION ALL SELECT conversation_id FROM messages") == [
        ("c7",),
        ("c7",),
    ]


def test_versions_of_a_tool_keep_first_and_last_seen(database: Database) -> None:
    writer = StoreWriter(database)
    writer.write(record_messages([record(definitions=(definition(at=T0 + 5), definition(hash_="sha256:2", at=T0)))]))
    writer.write(record_messages([record(trace_id=B, definitions=(definition(at=T0 + 1, trace_id=B),))], start=1))
    writer.write(record_messages([record(trace_id=B, definitions=(definition(at=T0 + 9, trace_id=B),))], start=2))
    query = "SELECT tool_name, service_name, definition_hash, first_seen_unix_nano, last_seen_unix_nano FROM tool_versions ORDER BY 3"
    assert rows(database, query) == [
        ("charge_card", "shop", "sha256:1", T0 + 1, T0 + 9), ("charge_card", "shop", "sha256:2", T0, T0),
    ]  # fmt: skip


def test_a_long_text_is_stored_once(database: Database) -> None:
    long = "result " * 1000
    calls = [call(f"{n:016x}", n, result=None, result_text=long) for n in range(1, 30)]
    StoreWriter(database).write(record_messages([record(*calls)]))
    StoreWriter(database).write(
        record_messages([record(call(trace_id=B, result=None, result_text=long), trace_id=B)], 1)
    )
    assert rows(database, "SELECT bytes_raw FROM contents") == [(len(long),)]
    assert rows(database, "SELECT max(length(tool_call_result)) FROM tool_calls") == [(200,)]
