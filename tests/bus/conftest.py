"""Every contract test runs on both buses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from otelmon.bus.protocol import Bus
from tests.bus.places import KafkaPlace, Place, SpoolPlace
from tests.services.kafka import KafkaServer


@pytest.fixture(params=["spool", pytest.param("kafka", marks=pytest.mark.kafka)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A spool's folder, or a broker."""
    if request.param == "spool":
        made: Place = SpoolPlace(tmp_path / "spool")
    else:
        server: KafkaServer = request.getfixturevalue("kafka_server")
        made = KafkaPlace(server.bootstrap)
    yield made
    made.close()


@pytest.fixture
def bus(place: Place) -> Bus:
    """The bus, opened once."""
    return place.open()
