"""Batched writes: append thousands of rows at once, replace rows by key inside the transaction."""

from __future__ import annotations

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


def select(connection: DuckDBPyConnection, query: str, keys: Iterable[str]) -> list[Row]:
    """Rows of a query whose only parameter is a list of texts; none when there are no keys."""
    wanted = sorted(set(keys))
    return connection.execute(query, [wanted]).fetchall() if wanted else []
