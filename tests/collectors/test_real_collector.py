"""The real OpenTelemetry Collector in front of the monitor: forwarding OTLP, and writing the spans topic."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from otelmon.app.bench.traffic import Traffic
from otelmon.app.sender import Sender
from tests.services.kafka import KafkaServer
from tests.system.monitor import ServedMonitor, free_port

ROOT = Path(__file__).parents[2]
BINARY = ROOT / ".cache" / "collector" / "otelcol"
pytestmark = [pytest.mark.collector, pytest.mark.timeout(180)]
SPANS = 500


@contextmanager
def collector(folder: Path, shipped: Path, change: dict[str, Any]) -> Iterator[str]:
    """A Collector with a shipped configuration, its addresses changed; where it takes OTLP/HTTP."""
    config = yaml.safe_load(shipped.read_text())
    port = free_port()
    config["receivers"]["otlp"]["protocols"] = {"http": {"endpoint": f"127.0.0.1:{port}"}}
    config["service"].pop("extensions", None)
    config.pop("extensions", None)
    config["service"]["telemetry"] = {"metrics": {"level": "none"}}
    for name, values in change.items():
        config["exporters"][name].update(values)
    file = folder / "collector.yaml"
    file.write_text(yaml.safe_dump(config))
    with (folder / "collector.log").open("wb") as log:
        process = subprocess.Popen([BINARY, "--config", file], stdout=log, stderr=log)
        try:
            time.sleep(2)
            assert process.poll() is None, (folder / "collector.log").read_text()
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(30)


def send_through(endpoint: str) -> int:
    sender = Sender(endpoint)
    sent = 0
    for body, spans in Traffic(1, 40).tool_spans(SPANS):
        sender.send(body)
        sent += spans
    sender.close()
    return sent


def test_otlp_is_forwarded(tmp_path: Path) -> None:
    monitor = ServedMonitor(tmp_path)
    monitor.start()
    try:
        shipped = ROOT / "collectors" / "otel-collector" / "collector.yaml"
        with collector(tmp_path, shipped, {"otlphttp/otelmon": {"endpoint": monitor.endpoint}}) as endpoint:
            monitor.wait_until_through(send_through(endpoint))
        assert monitor.read("sizes")["rows"]["tool_calls"] > SPANS * 0.9
    finally:
        monitor.stop()


@pytest.mark.kafka
def test_the_spans_topic_is_written_by_the_collector(tmp_path: Path, kafka_server: KafkaServer) -> None:
    monitor = ServedMonitor(tmp_path, bus="kafka", **{"kafka.bootstrap": kafka_server.bootstrap, "kafka.partitions": 4})
    monitor.start()
    try:
        shipped = ROOT / "deploy" / "kafka" / "collector.yaml"
        change = {"kafka": {"brokers": [kafka_server.bootstrap], "sending_queue": {"enabled": True}}}
        with collector(tmp_path, shipped, change) as endpoint:
            monitor.wait_until_through(send_through(endpoint))
        assert monitor.metrics()["otelmon_strays_total"] == 0, "the Collector and otelmon must agree on partitions"
    finally:
        monitor.stop()
