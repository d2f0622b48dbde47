"""The DuckDB file: opened by one process, written through one connection, read through cursors.

See docs/adr/0008-one-duckdb-writer.md for why.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import duckdb
from duckdb import DuckDBPyConnection

from otelmon.store.sqlfiles import migrations
from otelmon.vocabulary.config import StoreConfig
from otelmon.vocabulary.errors import Problem, UnreachableError, UserError

MIN_FREE_BYTES = 512 * 1024 * 1024
_HOLDER = re.compile(r"held in (?P<program>.*?) \(PID (?P<pid>\d+)\)")
_open_here: set[Path] = set()
_open_lock = threading.Lock()


class DiskFullError(UnreachableError):
    """There is too little free disk space to write. Nothing was written; the same batch can be tried again."""


class Database:
    """The store's file. One per process and file: `Database.open`.

    Writing is serialised by a lock; each reader sees one consistent state and never waits for the
    writer.
    """

    def __init__(self, path: Path, connection: DuckDBPyConnection, min_free_bytes: int) -> None:
        self.path = path
        self.min_free_bytes = min_free_bytes
        self._root = connection
        self._writer = connection.cursor()
        self._write_lock = threading.Lock()
        self._cursor_lock = threading.Lock()

    @classmethod
    def open(
        cls,
        path: str | Path,
        config: StoreConfig | None = None,
        threads: int = 2,
        min_free_bytes: int = MIN_FREE_BYTES,
    ) -> Database:
        """Open or create the file and bring its schema up to date.

        Raises UnreachableError when another process has it or it can not be opened, UserError when
        a newer otelmon wrote it.
        """
        config = config or StoreConfig()
        file = Path(path).resolve()
        _claim(file)
        try:
            connection = _connect(file, config, threads)
            try:
                migrate(connection, file)
                return cls(file, connection, min_free_bytes)
            except BaseException:
                connection.close()
                raise
        except BaseException:
            _release(file)
            raise

    @contextmanager
    def write(self) -> Iterator[DuckDBPyConnection]:
        """The writing connection inside one transaction: committed at the end, rolled back on any
        exception. Raises DiskFullError before anything is written when the disk is nearly full."""
        with self._write_lock:
            self.check_space()
            self._writer.begin()
            try:
                yield self._writer
            except BaseException:
                self._rollback()
                raise
            self._commit()

    def _commit(self) -> None:
        try:
            self._writer.commit()
        except duckdb.Error as error:
            self._rollback()
            raise UnreachableError(
                Problem(str(self.path), f"the batch could not be committed: {first_line(error)}", do="it is retried; look at the disk and at the permissions of the file")
            ) from error  # fmt: skip

    def _rollback(self) -> None:
        try:
            self._writer.rollback()
        except duckdb.Error:
            # The failed statement may have ended the transaction already.
            return

    @contextmanager
    def read(self) -> Iterator[DuckDBPyConnection]:
        """A cursor that sees one consistent state for as long as it is used. It can not write."""
        with self._cursor_lock:
            cursor = self._root.cursor()
        try:
            cursor.execute("BEGIN TRANSACTION READ ONLY")
            yield cursor
        finally:
            cursor.close()

    @contextmanager
    def maintenance(self) -> Iterator[DuckDBPyConnection]:
        """The writing connection outside a transaction, for checkpoints. Works on a full disk."""
        with self._write_lock:
            yield self._writer

    def free_bytes(self) -> int:
        """Free space of the disk the file is on, in bytes."""
        return shutil.disk_usage(self.path.parent).free

    @property
    def full(self) -> bool:
        """True while there is too little free disk space to write."""
        return self.free_bytes() < self.min_free_bytes

    def check_space(self) -> None:
        """Raises DiskFullError while there is too little free disk space to write."""
        free = self.free_bytes()
        if free < self.min_free_bytes:
            raise DiskFullError(
                Problem(
                    str(self.path.parent),
                    f"only {free // 2**20} MiB are free",
                    f"at least {self.min_free_bytes // 2**20} MiB",
                    "free disk space or lower store.retention_days; nothing is lost, writing goes on by itself",
                )
            )

    def close(self) -> None:
        """Checkpoint and give the file up. Safe to call twice."""
        with self._write_lock:
            try:
                self._writer.close()
                self._root.close()
            finally:
                _release(self.path)

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def migrate(connection: DuckDBPyConnection, file: Path, up_to: int | None = None) -> int:
    """Apply the migrations the file has not seen, one transaction each; returns its version.

    Raises UserError when the file is newer than this program.
    """
    connection.execute("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)")
    row = connection.execute("SELECT max(version) FROM schema_version").fetchone()
    version: int = (row[0] if row else None) or 0
    scripts = migrations()
    newest = scripts[-1][0]
    if version > newest:
        raise UserError(
            Problem(
                str(file),
                f"the database has schema version {version}, this otelmon knows up to {newest}",
                "a database of this or an older version",
                "install the newer otelmon, or name another data folder",
            )
        )
    for number, script in scripts:
        if version < number and (up_to is None or number <= up_to):
            _apply(connection, number, script)
            version = number
    return version


def _apply(connection: DuckDBPyConnection, number: int, script: str) -> None:
    connection.begin()
    try:
        connection.execute(script)
        connection.execute("INSERT INTO schema_version VALUES (?)", [number])
        connection.commit()
    except BaseException:
        connection.rollback()
        raise


def _connect(file: Path, config: StoreConfig, threads: int) -> DuckDBPyConnection:
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": config.memory_limit,
        "threads": threads,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        return duckdb.connect(str(file), config=settings)
    except (duckdb.InvalidInputException, duckdb.ParserException) as error:
        raise UserError(
            Problem("store.memory_limit", first_line(error), "a size such as 2GB", "correct the configuration")
        ) from error
    except (duckdb.Error, OSError) as error:
        refuse(file, error)


def refuse(file: Path, error: Exception) -> NoReturn:
    """Raise UnreachableError that says who holds the file, or why it can not be opened."""
    held = _HOLDER.search(str(error))
    if held:
        raise UnreachableError(_in_use(file, held["pid"])) from error
    raise UnreachableError(
        Problem(str(file), f"the database can not be opened: {first_line(error)}", do="check the path, its permissions and the disk")
    ) from error  # fmt: skip


def _in_use(file: Path, pid: str | int) -> Problem:
    return Problem(
        str(file),
        f"the database is in use by process {pid}",
        "one process at a time",
        "ask the running server (the commands do so when it answers), or stop it first",
    )


def _claim(file: Path) -> None:
    # DuckDB would hand out the same instance twice inside one process, with two writers on it.
    with _open_lock:
        if file in _open_here:
            raise UnreachableError(_in_use(file, os.getpid()))
        _open_here.add(file)


def _release(file: Path) -> None:
    with _open_lock:
        _open_here.discard(file)


def first_line(error: Exception) -> str:
    """The first line of an error's text: what a person needs of it."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__
