"""Monitors for the tests of pages and API."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services.browser import chromium as chromium
from tests.services.full import full as full
from tests.services.monitor import LiveMonitor


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[LiveMonitor]:
    """Holds nothing yet; the test's own."""
    live = LiveMonitor(tmp_path / "empty")
    yield live
    live.stop()
