"""What every test may use: the shared real data, named by OTELMON_DATA."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.demo import demo as demo
from tests.services.browser import chromium as chromium
from tests.services.kafka import kafka_server as kafka_server

DATA = os.environ.get("OTELMON_DATA", "")
# What decides whether a change lands must not be luck: the same examples every time. HYPOTHESIS=explore looks for new ones.
settings.register_profile("steady", derandomize=True)
settings.register_profile("explore")
settings.load_profile(os.environ.get("HYPOTHESIS", "steady"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests on real labelled data need OTELMON_DATA; without it they are left out, and that is said."""
    if DATA:
        return
    data = [item for item in items if item.get_closest_marker("data")]
    if data:
        config.hook.pytest_deselected(items=data)
        items[:] = [item for item in items if not item.get_closest_marker("data")]
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if reporter:
            reporter.write_line(f"{len(data)} tests on real data left out: OTELMON_DATA is not set")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder that holds datasets/, spans/, incidents/ and tools/."""
    return Path(DATA).resolve().parent
