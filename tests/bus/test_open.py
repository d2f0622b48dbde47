"""The configuration decides which bus it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from otelmon.bus import open_bus
from otelmon.bus.kafka import KafkaBus
from otelmon.bus.spool import SpoolBus
from otelmon.vocabulary.config import Config, KafkaConfig
from otelmon.vocabulary.messages import SPANS
from tests.bus.places import message
from tests.services.kafka import KafkaServer


def test_embedded_is_a_spool_in_the_data_folder(tmp_path: Path) -> None:
    bus = open_bus(Config(data=str(tmp_path / "data")))
    try:
        assert isinstance(bus, SpoolBus)
        assert bus.partitions(SPANS) == 1
        bus.publish(SPANS, [message("k")])
    finally:
        bus.close()
    assert list((tmp_path / "data" / "spool").rglob("*.seg"))


@pytest.mark.kafka
def test_kafka_is_kafka(kafka_server: KafkaServer) -> None:
    bus = open_bus(Config(bus="kafka", kafka=KafkaConfig(bootstrap=kafka_server.bootstrap, partitions=4)))
    try:
        assert isinstance(bus, KafkaBus)
        assert bus.partitions(SPANS) == 4
    finally:
        bus.close()


def test_the_embedded_bus_does_not_load_kafka(tmp_path: Path) -> None:
    code = (
        "import sys; from otelmon.bus import open_bus; from otelmon.vocabulary.config import Config;"
        f"open_bus(Config(data={str(tmp_path)!r})).close(); sys.exit('kafka' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
