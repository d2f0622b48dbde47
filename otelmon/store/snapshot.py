"""SQL for people, apart from the writer: a copy of the narrow tables, and read-only queries on it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb
import msgspec
from duckdb import DuckDBPyConnection, StatementType

from otelmon.store.database import Database, first_line, refuse
from otelmon.vocabulary.errors import Problem, UserError

# Rows of these are narrow; the compressed contents and payloads stay behind.
TABLES = (
    "spans", "runs", "tool_calls", "call_lineage", "effects", "messages", "tool_versions", "findings", "not_evaluable", "suppressed", "incidents",
    "incident_findings", "incident_history", "labels", "accounts", "offsets", "golden_tasks",
)  # fmt: skip
ALLOWED = (StatementType.SELECT, StatementType.EXPLAIN)
MAX_ROWS = 10_000
_building = threading.Lock()


class SqlResult(msgspec.Struct, frozen=True):
    """The answer to a query: column names, rows of plain values, and whether rows were left off."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    truncated: bool


def snapshot(database: Database, max_age_seconds: float = 10.0) -> Path:
    """A DuckDB file with one consistent state of the tables, at most `max_age_seconds` old.

    Made by a reader: the writer goes on meanwhile. It lies in snapshots/ beside the database; only
    the newest is kept (whoever has an older one open can go on reading it). Raises DiskFullError.
    """
    folder = database.path.parent / "snapshots"
    with _building:
        folder.mkdir(exist_ok=True)
        newest = max(folder.glob("*.duckdb"), default=None, key=lambda path: path.stat().st_mtime)
        if newest and time.time() - newest.stat().st_mtime <= max_age_seconds:
            return newest
        database.check_space()
        path = folder / f"{time.time_ns()}.duckdb"
        _build(database, path.with_suffix(".part"))
        os.replace(path.with_suffix(".part"), path)
        for old in folder.iterdir():
            if old != path:
                old.unlink(missing_ok=True)
        return path


def _build(database: Database, path: Path) -> None:
    quoted = str(path).replace("'", "''")
    with database.read() as cursor:
        home = cursor.execute("SELECT current_database()").fetchone() or ("",)
        cursor.rollback()
        cursor.execute(f"ATTACH '{quoted}' AS snapshot")
        try:
            _copy(cursor)
            cursor.execute("USE snapshot")
            for definition in _views(cursor, home[0]):
                cursor.execute(definition)
        finally:
            with suppress(duckdb.Error):
                cursor.rollback()
            cursor.execute('USE "' + home[0].replace('"', '""') + '"')
            cursor.execute("DETACH snapshot")


def _copy(cursor: DuckDBPyConnection) -> None:
    cursor.begin()
    for table in TABLES:
        cursor.execute(f"CREATE TABLE snapshot.{table} AS FROM main.{table}")
    cursor.commit()


def _views(cursor: DuckDBPyConnection, database_name: str) -> list[str]:
    rows = cursor.execute(
        "SELECT sql FROM duckdb_views() WHERE database_name = ? AND NOT internal ORDER BY view_oid", [database_name]
    ).fetchall()
    return [row[0] for row in rows]


def run_sql(path: Path, query: str, seconds: float = 30.0, memory: str = "1GB", max_rows: int = MAX_ROWS) -> SqlResult:
    """One reading statement on a snapshot, or on the database itself when no server has it open.

    It can read nothing but the tables of the file: no other file, no network, no settings, no
    Python value. Stopped after `seconds`; at most `max_rows` rows. Raises UserError with the reason.
    """
    with _open(path, memory) as connection:
        _check(connection, query)
        overdue = threading.Event()
        timer = threading.Timer(seconds, _stop, (connection, overdue))
        timer.start()
        try:
            result = connection.execute(query)
            columns = tuple(column[0] for column in result.description or ())
            rows = result.fetchmany(max_rows + 1)
        except duckdb.Error as error:
            if overdue.is_set():
                raise UserError(
                    Problem("query", f"stopped after {seconds:g} s", do="narrow it down, or raise store.sql_seconds")
                ) from error
            raise UserError(Problem("query", first_line(error))) from error
        finally:
            timer.cancel()
        return SqlResult(columns, tuple(rows[:max_rows]), len(rows) > max_rows)


def _stop(connection: DuckDBPyConnection, overdue: threading.Event) -> None:
    overdue.set()
    connection.interrupt()


@contextmanager
def _open(path: Path, memory: str) -> Iterator[DuckDBPyConnection]:
    settings: dict[str, str | bool | int | float | list[str]] = {
        "enable_external_access": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
        "memory_limit": memory,
        "max_temp_directory_size": "0KB",
        "threads": 1,
        "lock_configuration": True,
    }
    try:
        connection = duckdb.connect(str(path), read_only=True, config=settings)
    except duckdb.Error as error:
        refuse(path, error)
    try:
        yield connection
    finally:
        connection.close()


def _check(connection: DuckDBPyConnection, query: str) -> None:
    try:
        statements = connection.extract_statements(query)
    except duckdb.Error as error:
        raise UserError(Problem("query", first_line(error))) from error
    if len(statements) != 1 or statements[0].type not in ALLOWED:
        raise UserError(
            Problem("query", "it is not one reading statement", "a single SELECT, WITH, EXPLAIN, DESCRIBE, SHOW or SUMMARIZE")
        )  # fmt: skip
