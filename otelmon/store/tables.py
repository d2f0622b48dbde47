"""Batched writes: append thousands of rows at once, replace rows by key inside the transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from duckdb import DuckDBPyConnection

Row = tuple[Any, ...]


def append(connection: DuckDBPyConnection, table: str, rows: Sequence[Row]) -> None:
    """Append rows, one value per column of the table."""
    if rows:
        appender = connection.appender(table)
        appender.append_rows(rows)
        appender.flush()


def delete(connection: DuckDBPyConnection, table: str, column: str, keys: Collection[str]) -> None:
    """Delete the rows whose `column` is one of `keys`."""
    if keys:
        connection.execute(
            f"DELETE FROM {table} WHERE {column} IN (SELECT unnest(?::VARCHAR[]))",  # noqa: S608 - names are ours
            [sorted(keys)],
        )


def replace(
    connection: DuckDBPyConnection, table: str, column: str, keys: Collection[str], rows: Sequence[Row]
) -> None:
    """Delete the rows of `keys`, then append `rows`."""
    delete(connection, table, column, keys)
    append(connection, table, rows)


def short_key(key: str) -> int:
    """8 bytes of a long key, for fast scans; rows found by it still need the long key compared."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big")


def of_traces(table: str) -> str:
    """The condition that a row belongs to one of the traces of `traces_parameters`.

    Two steps, because a scan that reads no other column is the cheap one.
    """
    return (
        f"rowid IN (SELECT rowid FROM {table} WHERE trace_key IN (SELECT unnest($short::UBIGINT[])))"  # noqa: S608
        " AND trace_id IN (SELECT unnest($traces::VARCHAR[]))"
    )


def traces_parameters(traces: Collection[str]) -> dict[str, list[str] | list[int]]:
    """The parameters of `of_traces`."""
    ids = sorted(traces)
    return {"traces": ids, "short": [short_key(trace_id) for trace_id in ids]}


def replace_traces(connection: DuckDBPyConnection, table: str, traces: Collection[str], rows: Sequence[Row]) -> None:
    """Delete the rows of the traces, then append `rows`."""
    if traces:
        connection.execute(f"DELETE FROM {table} WHERE {of_traces(table)}", traces_parameters(traces))  # noqa: S608
    append(connection, table, rows)


def select(connection: DuckDBPyConnection, query: str, keys: Iterable[str]) -> list[Row]:
    """Rows of a query whose only parameter is a list of texts; none when there are no keys."""
    wanted = sorted(set(keys))
    return connection.execute(query, [wanted]).fetchall() if wanted else []
