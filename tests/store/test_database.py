"""Opening, locking, migrating, and what happens when the disk is full."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import pytest

from otelmon.store import database as module
from otelmon.store.database import Database, DiskFullError, migrate
from otelmon.store.sqlfiles import migrations
from otelmon.store.writer import StoreWriter
from otelmon.vocabulary.config import StoreConfig
from otelmon.vocabulary.errors import UnreachableError, UserError
from tests.store.build import record, record_message, span_request, spans_message, verdict


def test_a_new_file_has_the_newest_schema(database: Database) -> None:
    with database.read() as cursor:
        versions = cursor.execute("SELECT version FROM schema_version ORDER BY version").fetchall()
    assert versions == [(number,) for number, _ in migrations()]


def test_migration_from_the_version_before_keeps_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "old.duckdb"
    before = migrations()[-2][0]
    connection = duckdb.connect(str(path))
    assert migrate(connection, path, up_to=before) == before
    connection.execute("INSERT INTO offsets VALUES ('otelmon.spans', 0, 3, 7)")
    connection.close()
    with Database.open(path) as opened, opened.read() as cursor:
        assert cursor.execute("FROM offsets").fetchall() == [("otelmon.spans", 0, 3, 7)]
        assert cursor.execute("FROM open_incidents").fetchall() == []
        assert cursor.execute("SELECT max(version) FROM schema_version").fetchone() == (migrations()[-1][0],)


def test_a_migration_that_fails_leaves_the_version_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "old.duckdb"
    broken = [*migrations(), (999, "CREATE TABLE half (a INTEGER); SELECT no_such_function();")]
    monkeypatch.setattr(module, "migrations", lambda: broken)
    with pytest.raises(duckdb.Error):
        Database.open(path)
    monkeypatch.undo()
    with Database.open(path) as opened, opened.read() as cursor:
        assert cursor.execute("SELECT max(version) FROM schema_version").fetchone() == (migrations()[-1][0],)
        assert cursor.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'half'").fetchone() == (0,)


def test_a_newer_file_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "new.duckdb"
    with Database.open(path) as opened, opened.write() as connection:
        connection.execute("INSERT INTO schema_version VALUES (1000)")
    with pytest.raises(UserError) as caught:
        Database.open(path)
    assert str(path) in str(caught.value)
    assert "schema version 1000" in str(caught.value)
    assert str(migrations()[-1][0]) in str(caught.value)


def test_another_process_has_it(database: Database) -> None:
    script = f"from otelmon.store.database import Database\nDatabase.open({str(database.path)!r})"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    last = ended.stderr.strip().splitlines()[-1]
    assert "UnreachableError" in last
    assert str(database.path) in last
    assert f"in use by process {os.getpid()}" in last
    assert "stop it" in last


def test_twice_in_one_process_is_refused_and_closing_frees_it(database: Database) -> None:
    with pytest.raises(UnreachableError, match="in use by process"):
        Database.open(database.path)
    database.close()
    with Database.open(database.path) as again:
        assert again.path == database.path


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "x.duckdb"
    path.write_bytes(b"not a database" * 1000)
    with pytest.raises(UnreachableError, match=r"x\.duckdb: the database can not be opened"):
        Database.open(path)
    path.unlink()
    Database.open(path).close()


def test_a_wrong_memory_limit_names_the_setting(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"store\.memory_limit"):
        Database.open(tmp_path / "x.duckdb", StoreConfig(memory_limit="much"))


def test_an_exception_rolls_back(database: Database) -> None:
    with pytest.raises(duckdb.Error, match="no_such_table"), database.write() as connection:
        connection.execute("INSERT INTO offsets VALUES ('t', 0, 0, 1); FROM no_such_table")
    with database.read() as cursor:
        assert cursor.execute("FROM offsets").fetchall() == []
    with database.write() as connection:
        connection.execute("INSERT INTO offsets VALUES ('t', 0, 0, 1)")
    with database.read() as cursor:
        assert len(cursor.execute("FROM offsets").fetchall()) == 1


def test_a_reader_can_not_write_and_sees_one_state(database: Database) -> None:
    with database.read() as cursor:
        assert cursor.execute("SELECT count(*) FROM offsets").fetchone() == (0,)
        with database.write() as connection:
            connection.execute("INSERT INTO offsets VALUES ('t', 0, 0, 1)")
        assert cursor.execute("SELECT count(*) FROM offsets").fetchone() == (0,)
        with pytest.raises(duckdb.Error, match="read-only"):
            cursor.execute("DELETE FROM offsets")


def test_a_full_disk_stops_writing_before_anything_is_lost(tmp_path: Path) -> None:
    message = spans_message(0, span_request([("a" * 32, "1" * 16, "x")]))
    with Database.open(tmp_path / "x.duckdb", min_free_bytes=2**62) as opened:
        writer = StoreWriter(opened)
        full = [opened.full]
        with pytest.raises(DiskFullError, match="nothing is lost"):
            writer.write([message])
        assert writer.offset(message.topic, 0) is None
        opened.min_free_bytes = 0
        full.append(opened.full)
        assert full == [True, False]
        writer.write([message])
        assert writer.offset(message.topic, 0) == 1


def test_reads_while_writing_are_consistent(database: Database) -> None:
    """Each read sees rows, accounts and offsets of the same batch."""
    writer = StoreWriter(database)
    seen: list[tuple[int, int, int]] = []
    problems: list[BaseException] = []
    done = threading.Event()

    def look() -> None:
        try:
            while not done.is_set():
                with database.read() as cursor:
                    stored = cursor.execute(
                        "SELECT coalesce(sum(amount), 0) FROM accounts WHERE kind = 'stored' AND topic = 'otelmon.spans'"
                    ).fetchall()[0][0]
                    rows = cursor.execute("SELECT count(*) FROM spans").fetchall()[0][0]
                    offset = cursor.execute(
                        "SELECT coalesce(max(next_offset), 0) FROM offsets WHERE topic = 'otelmon.spans'"
                    ).fetchall()[0][0]
                seen.append((int(stored), rows, offset * 10))
        except BaseException as error:  # noqa: BLE001 - shown by the assertion below
            problems.append(error)

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    for offset in range(60):
        spans = [("a" * 32, f"{offset * 10 + n + 1:016x}", "x") for n in range(10)]
        writer.write(
            [spans_message(offset, span_request(spans)), record_message(2 * offset, record()), record_message(2 * offset + 1, verdict())]
        )  # fmt: skip
    done.set()
    for thread in threads:
        thread.join()
    assert problems == []
    assert seen
    assert all(stored == rows == offset for stored, rows, offset in seen)
