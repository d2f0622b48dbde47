"""The bus that the configuration names."""

from __future__ import annotations

from pathlib import Path

from otelmon.bus.protocol import Bus
from otelmon.bus.spool import SpoolBus
from otelmon.vocabulary.config import Config


def open_bus(config: Config) -> Bus:
    """The spool lies in `<data>/spool`. Raises UnreachableError when the bus can not be used."""
    if config.bus == "embedded":
        return SpoolBus(Path(config.data) / "spool", config.spool)
    from otelmon.bus.kafka import KafkaBus  # kafka-python is loaded by those who use it

    return KafkaBus(config.kafka)
