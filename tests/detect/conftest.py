"""A real spool with four partitions, that can be closed and opened again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bus.places import SpoolPlace


@pytest.fixture
def place(tmp_path: Path) -> Iterator[SpoolPlace]:
    opened = SpoolPlace(tmp_path / "spool")
    yield opened
    opened.close()
