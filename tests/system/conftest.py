"""Real traffic for the whole monitor: labelled trajectories as OTLP, and what `otelmon check` says of them."""

from __future__ import annotations

import gzip
import importlib
import json
import random
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from otelmon.app.laws import load_laws
from otelmon.app.offline import check_paths
from otelmon.receive import otlp
from otelmon.vocabulary.config import Config, ReceiveConfig
from tests.system.monitor import ServedMonitor

PER_SET = 40
Final = set[tuple[str, str, str, str]]


@pytest.fixture(scope="session")
def traffic(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trajectories of two sets as OTLP/JSON lines, a request a line."""
    sys.path.insert(0, str(shared / "tools"))
    converter: Any = importlib.import_module("to_otlp")
    file = tmp_path_factory.mktemp("traffic") / "traffic.otlp.jsonl"
    with file.open("w") as out:
        for name in ("taubench", "tau2"):
            with gzip.open(shared / "datasets" / name / "dev.jsonl.gz", "rt") as lines:
                for line in islice(lines, PER_SET):
                    out.write(json.dumps(converter.build(json.loads(line)).request) + "\n")
    return file


@pytest.fixture(scope="session")
def expected(traffic: Path) -> Final:
    """Final findings of `otelmon check` on the same traffic."""
    config = Config()
    report = check_paths([traffic], load_laws(config), config)
    assert not report.problems
    return {(f.finding_id, f.rule_id, f.severity, f.summary) for f in report.findings}


@pytest.fixture(scope="session")
def bodies(traffic: Path) -> list[bytes]:
    """The same traffic as protobuf requests, one a trajectory."""
    with traffic.open("rb") as lines:
        return [otlp.parse(line, "application/json", ReceiveConfig()).SerializeToString() for line in lines]


def span_count(bodies: list[bytes]) -> int:
    """Spans in the requests."""
    requests = (otlp.parse(body, "application/x-protobuf", ReceiveConfig()) for body in bodies)
    return sum(len(s.spans) for request in requests for r in request.resource_spans for s in r.scope_spans)


def shuffled(bodies: list[bytes], seed: int) -> list[bytes]:
    """The same spans, a few to a request, in an order that respects nothing."""
    chance = random.Random(seed)
    singles = []
    for body in bodies:
        request = otlp.parse(body, "application/x-protobuf", ReceiveConfig())
        for resource_spans in request.resource_spans:
            for scope_spans in resource_spans.scope_spans:
                for span in scope_spans.spans:
                    one = type(request)()
                    target = one.resource_spans.add(
                        resource=resource_spans.resource, schema_url=resource_spans.schema_url
                    )
                    target.scope_spans.add(scope=scope_spans.scope, schema_url=scope_spans.schema_url, spans=[span])
                    singles.append(one.SerializeToString())
    chance.shuffle(singles)
    return [b"".join(singles[i : i + 25]) for i in range(0, len(singles), 25)]


Serve = Callable[..., ServedMonitor]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Start monitors; they are stopped at the end of the test."""
    started: list[ServedMonitor] = []

    def start(**settings: object) -> ServedMonitor:
        folder = tmp_path / f"monitor{len(started)}"
        folder.mkdir()
        monitor = ServedMonitor(folder, **settings)
        monitor.start()
        started.append(monitor)
        return monitor

    yield start
    for monitor in started:
        monitor.stop()
