"""A real DuckDB file for every test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from otelmon.store.database import Database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path / "otelmon.duckdb") as opened:
        yield opened
