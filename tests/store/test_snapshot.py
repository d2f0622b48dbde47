"""SQL for people: reads everything stored, and nothing else; never writes; always ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from otelmon.store.database import Database
from otelmon.store.snapshot import run_sql, snapshot
from otelmon.store.writer import StoreWriter
from otelmon.vocabulary.errors import UnreachableError, UserError
from tests.store.build import call, finding, record, record_messages, span_request, spans_message, verdict

TRACE = "a" * 32


@pytest.fixture
def path(database: Database) -> Path:
    writer = StoreWriter(database)
    writer.write(record_messages([record(call()), verdict(finding())]))
    writer.write([spans_message(0, span_request([(TRACE, "1" * 16, "x")]))])
    return snapshot(database)


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT span_id, name FROM spans", (("1" * 16, "x"),)),
        ("WITH f AS (FROM open_findings) SELECT rule_id FROM f", (("duplicate_write",),)),
        ("SELECT tool_name, effect FROM calls", (("charge_card", "destructive"),)),
        ("SELECT json_extract_string(tool_call_arguments, '$.order_id') FROM tool_calls", (("W-1",),)),
        ("FROM open_incidents", ()),
    ],
)
def test_reading(path: Path, query: str, rows: tuple[tuple[object, ...], ...]) -> None:
    assert run_sql(path, query).rows == rows


@pytest.mark.parametrize("query", ["EXPLAIN SELECT 1", "DESCRIBE spans", "SHOW TABLES", "SUMMARIZE spans"])
def test_looking_around(path: Path, query: str) -> None:
    assert run_sql(path, query).rows


def test_columns_and_the_row_limit(path: Path) -> None:
    result = run_sql(path, "SELECT range AS n FROM range(10)", max_rows=4)
    assert (result.columns, result.rows, result.truncated) == (("n",), ((0,), (1,), (2,), (3,)), True)
    assert not run_sql(path, "SELECT range AS n FROM range(4)", max_rows=4).truncated


@pytest.mark.parametrize(
    "query",
    [
        "INSERT INTO offsets VALUES ('t', 0, 0, 1)",
        "WITH gone AS (DELETE FROM runs RETURNING *) SELECT * FROM gone",
        "EXPLAIN ANALYZE DELETE FROM runs",
        "CREATE TABLE x (a INTEGER)",
        "DROP TABLE spans",
        "COPY spans TO '{outside}'",
        "EXPORT DATABASE '{outside}'",
        "ATTACH '{outside}'",
        "SET threads = 4",
        "PRAGMA database_list",
        "INSTALL httpfs",
        "LOAD httpfs",
        "CALL pragma_version()",
        "SELECT 1; SELECT 2",
        "",
        "-- nothing",
        "SELECT * FROM read_text('{secret}')",
        "SELECT * FROM read_csv('{secret}')",
        "SELECT * FROM '{secret}'",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM read_text('http://127.0.0.1:1/x')",
        "SELECT * FROM python_value",
        "SELEC 1",
        "SELECT * FROM no_such_table",
    ],
)
def test_nothing_else_is_possible(path: Path, tmp_path: Path, query: str) -> None:
    python_value = [(1,)]
    assert python_value
    secret, outside = tmp_path / "secret.csv", tmp_path / "outside"
    secret.write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match=r"^query: "):
        run_sql(path, query.format(secret=secret, outside=outside))
    assert not outside.exists()


def test_a_query_that_takes_too_long_is_stopped(path: Path) -> None:
    endless = "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range * b.range = 7"
    with pytest.raises(UserError, match=r"stopped after 0\.2 s; narrow it down"):
        run_sql(path, endless, seconds=0.2)


def test_a_query_that_takes_too_much_memory_is_refused(path: Path) -> None:
    greedy = "SELECT list(range) FROM range(30000000)"
    with pytest.raises(UserError, match="Out of Memory"):
        run_sql(path, greedy, memory="50MB")


def test_a_snapshot_is_kept_for_a_while_then_made_again(database: Database, path: Path) -> None:
    StoreWriter(database).write([spans_message(1, span_request([(TRACE, "2" * 16, "y")]))])
    count = "SELECT count(*) FROM spans"
    assert snapshot(database, max_age_seconds=3600) == path
    assert run_sql(path, count).rows == ((1,),)
    newer = snapshot(database, max_age_seconds=0)
    assert newer != path
    assert run_sql(newer, count).rows == ((2,),)
    assert list(newer.parent.iterdir()) == [newer]


def test_long_contents_and_payloads_stay_behind(path: Path) -> None:
    tables = {row[0] for row in run_sql(path, "SHOW TABLES").rows}
    assert "spans" in tables
    assert not tables & {"payloads", "contents"}


def test_the_writer_goes_on_while_a_snapshot_is_made(database: Database) -> None:
    with database.write() as connection:
        connection.execute("INSERT INTO offsets VALUES ('t', 0, 0, 1)")
        made = snapshot(database, max_age_seconds=0)
    assert run_sql(made, "FROM offsets").rows == ()
    assert StoreWriter(database).offset("t", 0) == 1


def test_a_database_in_use_names_its_holder(database: Database) -> None:
    with pytest.raises(UnreachableError, match=r"otelmon\.duckdb"):
        run_sql(database.path, "SELECT 1")
    database.close()
    assert run_sql(database.path, "SELECT count(*) FROM spans").rows == ((0,),)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match=r"none\.duckdb"):
        run_sql(tmp_path / "none.duckdb", "SELECT 1")
