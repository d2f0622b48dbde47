"""Retention: rows leave by age, and the oldest leave early when the database is too big.

Age is the recorded time of arrival, so a back-fill of old traces stays as long as anything else. What a
person labelled, golden tasks and the accounts stay for ever (old reports of other stages as their sum).
"""

from __future__ import annotations

import duckdb
from duckdb import DuckDBPyConnection

from otelmon.store.database import Database
from otelmon.store.sqlfiles import sql
from otelmon.vocabulary.config import StoreConfig

AGE_EVERY = 3600 * 10**9
DAY = 86_400 * 10**9
AIM = 0.9  # a database that is too big shrinks to this part of its limit
_BY_TIME = ("spans", "log_records", "payloads", "findings", "epochs", "tool_versions")
_BY_RUN = ("calls_of_old_runs", "messages_of_old_runs", "gaps_of_old_runs", "accepted_of_old_runs", "runs")
_ORPHANS = (
    "orphan_effects",
    "orphan_lineage",
    "orphan_contents",
    "orphan_members",
    "orphan_incidents",
    "orphan_history",
)


class Retention:
    """A chore of the store stage: call it with the wall time in nanoseconds, often."""

    def __init__(self, database: Database, config: StoreConfig) -> None:
        self._database = database
        self._config = config
        self._aged_at: int | None = None

    def __call__(self, now: int) -> int:
        """Remove what is too old (once an hour) and shrink what is too big; returns rows removed."""
        removed = 0
        if self._aged_at is None or now - self._aged_at >= AGE_EVERY:
            self._aged_at = now
            removed += remove_before(self._database, now - int(self._config.retention_days * DAY))
        size = live_bytes(self._database)
        if size > self._config.max_bytes:
            removed += self._shrink(1 - AIM * self._config.max_bytes / size)
        return removed

    def _shrink(self, part: float) -> int:
        with self._database.read() as cursor:
            row = cursor.execute(sql("retention.cutoff"), [min(1.0, part)]).fetchone()
        return remove_before(self._database, row[0] + 1) if row and row[0] is not None else 0


def live_bytes(database: Database) -> int:
    """Bytes that the rows need, estimated from their number and the stored size of long content.

    Not the size of the file: DuckDB gives space back by row groups (122,880 rows), and a limit held against
    the file would take ever more rows without making it smaller.
    """
    with database.read() as cursor:
        row = cursor.execute(sql("retention.size")).fetchone()
    return int(row[0]) if row else 0


def remove_before(database: Database, cutoff: int) -> int:
    """Remove what arrived before `cutoff` (nanoseconds) and what only it needed; returns rows removed."""
    with database.maintenance() as connection:
        connection.begin()
        try:
            removed = _remove(connection, cutoff)
            connection.commit()
        except BaseException:
            connection.rollback()
            raise
        if removed:
            _checkpoint(connection)
    return removed


def _remove(connection: DuckDBPyConnection, cutoff: int) -> int:
    removed = sum(_count(connection, name, [cutoff]) for name in _BY_TIME)
    connection.execute(sql("retention.old_runs"), [cutoff])
    connection.execute(sql("retention.fold_reports"), [cutoff])
    connection.execute(sql("retention.reports"), [cutoff])
    connection.execute(sql("retention.folded_reports"))
    removed += sum(_count(connection, name) for name in _BY_RUN)
    return removed + (sum(_count(connection, name) for name in _ORPHANS) if removed else 0)


def _count(connection: DuckDBPyConnection, name: str, parameters: list[int] | None = None) -> int:
    row = connection.execute(sql(f"retention.{name}"), parameters).fetchone()
    return int(row[0]) if row else 0


def _checkpoint(connection: DuckDBPyConnection) -> None:
    try:
        connection.execute("CHECKPOINT")
    except duckdb.TransactionException:
        # A long read holds the old rows: the space comes back with a later checkpoint.
        return
