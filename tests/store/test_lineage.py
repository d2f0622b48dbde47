"""Where arguments came from, stored: one row a call, one of the view an argument, replaced and removed with it."""

from __future__ import annotations

from typing import Any

from otelmon.store import queries
from otelmon.store.database import Database
from otelmon.store.results import ArgumentOrigin, CallDetail
from otelmon.store.retention import remove_before
from otelmon.store.snapshot import run_sql, snapshot
from otelmon.store.writer import StoreWriter
from otelmon.vocabulary.messages import ArgumentLineage
from tests.store.build import T0, call, record, record_messages, run

LOOKED_UP = call("1" * 16, 1, tool_name="get_order", arguments={"order_id": "W-1"})
CHARGED = call("3" * 16, 3)
SAID = ArgumentLineage("order_id", "id", "user", "2" * 16, "verbatim or formatting", True)
READ = ArgumentLineage("amount", "amount", "result", LOOKED_UP.key, "N times N", False)
NOWHERE = ArgumentLineage("order_id", "id", "none", "", "", True)


def rows(database: Database, query: str) -> list[tuple[Any, ...]]:
    with database.read() as cursor:
        return cursor.execute(query).fetchall()


def test_each_argument_is_a_row_of_the_view(database: Database) -> None:
    StoreWriter(database).write(
        record_messages([record(LOOKED_UP, CHARGED, lineage={LOOKED_UP.key: (SAID,), CHARGED.key: (SAID, READ)})])
    )
    found = rows(database, "SELECT tool_name, path, source, anchor, transformation, sure FROM lineage ORDER BY ALL")
    assert found == [
        ("charge_card", "amount", "result", LOOKED_UP.key, "N times N", False),
        ("charge_card", "order_id", "user", "2" * 16, "verbatim or formatting", True),
        ("get_order", "order_id", "user", "2" * 16, "verbatim or formatting", True),
    ]
    answer = run_sql(snapshot(database), "SELECT path FROM lineage WHERE NOT sure")
    assert answer.rows == (("amount",),)


def test_what_changed_is_replaced_and_the_rest_stays(database: Database) -> None:
    writer = StoreWriter(database)
    first = {LOOKED_UP.key: (SAID,), CHARGED.key: (SAID, READ)}
    writer.write(record_messages([record(LOOKED_UP, CHARGED, lineage=first)]))
    keys = (LOOKED_UP.key, CHARGED.key)
    writer.write(record_messages([record(keys=keys, effects={}, lineage={CHARGED.key: (NOWHERE,)})], start=1))
    found = rows(database, "SELECT call_key, source FROM lineage ORDER BY ALL")
    assert found == [(LOOKED_UP.key, "user"), (CHARGED.key, "none")]
    writer.write(record_messages([record(keys=keys, effects={})], start=2))
    assert rows(database, "SELECT count(*) FROM lineage") == [(2,)]


def test_a_call_that_went_away_takes_it_out_of_sight_and_retention_out_of_the_file(database: Database) -> None:
    writer = StoreWriter(database)
    writer.write(record_messages([record(LOOKED_UP, CHARGED, lineage={LOOKED_UP.key: (SAID,), CHARGED.key: (READ,)})]))
    writer.write(record_messages([record(keys=(CHARGED.key,), effects={})], start=1))
    assert rows(database, "SELECT call_key FROM lineage") == [(CHARGED.key,)]
    remove_before(database, T0 + 10**12)
    assert rows(database, "SELECT count(*) FROM call_lineage") == [(0,)]


def test_a_call_is_read_with_it(database: Database) -> None:
    StoreWriter(database).write(record_messages([record(LOOKED_UP, CHARGED, lineage={CHARGED.key: (SAID, READ)})]))
    with database.read() as cursor:
        detail = queries.run(cursor, run().run_id)
    assert detail is not None
    looked_up, charged = (item for item in detail.timeline if isinstance(item, CallDetail))
    assert looked_up.lineage == ()
    assert charged.lineage == (
        ArgumentOrigin("order_id", "id", "user", "2" * 16, "verbatim or formatting", True, None),
        ArgumentOrigin("amount", "amount", "result", LOOKED_UP.key, "N times N", False, "get_order"),
    )
