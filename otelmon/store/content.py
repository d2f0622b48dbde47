"""Long texts: their beginning in the hot row, the whole once and compressed in `contents`."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable

import zstandard
from duckdb import DuckDBPyConnection

from otelmon.store.tables import Row, append, short_key

ARGUMENTS_PREVIEW = 1000
TEXT_PREVIEW = 200

_local = threading.local()


def compress(data: bytes) -> bytes:
    """zstd, level 3. One context per thread: they are not shareable and dear to make."""
    if not hasattr(_local, "compressor"):
        _local.compressor = zstandard.ZstdCompressor(level=3)
    compressed: bytes = _local.compressor.compress(data)
    return compressed


def expand(data: bytes) -> bytes:
    """What `compress` was given."""
    if not hasattr(_local, "decompressor"):
        _local.decompressor = zstandard.ZstdDecompressor()
    expanded: bytes = _local.decompressor.decompress(data)
    return expanded


class Contents:
    """The long texts of one batch, by hash."""

    def __init__(self) -> None:
        self._texts: dict[str, bytes] = {}

    def shorten(self, text: str, limit: int = TEXT_PREVIEW) -> tuple[str, str | None]:
        """(beginning, hash of the whole); the hash is None when the beginning is the whole."""
        if len(text) <= limit:
            return text, None
        data = text.encode("utf-8", "surrogatepass")
        key = hashlib.blake2b(data, digest_size=16).hexdigest()
        self._texts[key] = data
        return text[:limit], key

    def write(self, connection: DuckDBPyConnection) -> None:
        """Store the texts that are not there yet."""
        if not self._texts:
            return
        known = {row[0] for row in _find(connection, "hash", self._texts)}
        fresh = [(key, data, compress(data)) for key, data in self._texts.items() if key not in known]
        rows = [(key, len(data), len(compressed), compressed, short_key(key)) for key, data, compressed in fresh]
        append(connection, "contents", rows)


def load(connection: DuckDBPyConnection, hashes: Iterable[str | None]) -> dict[str, str]:
    """The whole texts by hash; hashes that retention removed are not in the answer."""
    wanted = {key for key in hashes if key}
    rows = _find(connection, "hash, data", wanted) if wanted else []
    return {key: expand(data).decode("utf-8", "surrogatepass") for key, data in rows}


def _find(connection: DuckDBPyConnection, columns: str, hashes: Iterable[str]) -> list[Row]:
    wanted = sorted(hashes)
    return connection.execute(
        f"SELECT {columns} FROM contents"  # noqa: S608 - names are ours
        " WHERE rowid IN (SELECT rowid FROM contents WHERE hash_key IN (SELECT unnest($short::UBIGINT[])))"
        " AND hash IN (SELECT unnest($hashes::VARCHAR[]))",
        {"hashes": wanted, "short": [short_key(key) for key in wanted]},
    ).fetchall()
