"""How much one monitor takes: spans and bytes per second of CPU, every rule on, stored.

The monitor runs as a process of its own, exactly as served; its CPU time is read from the kernel before
and after. Wall time is printed too, but it is the machine's, not ours.
"""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import httpx
import msgspec

from otelmon.app.bench.traffic import Traffic
from otelmon.app.sender import Sender
from otelmon.vocabulary.errors import Problem, UnreachableError

MIXES = ("tool spans", "whole histories")
READY_S = 30.0
DRAIN_S = 300.0


class Result(msgspec.Struct, frozen=True):
    """One run over one mix."""

    mix: str
    spans: int
    body_bytes: int
    cpu_seconds: float
    wall_seconds: float

    @property
    def spans_per_core(self) -> float:
        return self.spans / self.cpu_seconds

    @property
    def megabytes_per_core(self) -> float:
        return self.body_bytes / 1e6 / self.cpu_seconds


def measure(mix: str, spans: int, rounds: int, bus: str) -> list[Result]:
    """Run one mix several times, each against a fresh monitor."""
    return [_round(mix, spans, number, bus) for number in range(rounds)]


def _round(mix: str, spans: int, number: int, bus: str) -> Result:
    traffic = Traffic(number, 512 if mix == MIXES[0] else 64)
    made = list(traffic.tool_spans(spans) if mix == MIXES[0] else traffic.histories(spans))
    with tempfile.TemporaryDirectory(prefix="otelmon-bench-") as folder, _Monitor(Path(folder), bus) as monitor:
        before, started = monitor.cpu_seconds(), time.monotonic()
        sender = Sender(monitor.endpoint)
        for body, _ in made:
            sender.send(body)
        sender.close()
        monitor.drain(sum(count for _, count in made))
        return Result(mix, sum(count for _, count in made), sum(len(body) for body, _ in made),
                      monitor.cpu_seconds() - before, time.monotonic() - started)  # fmt: skip


class _Monitor:
    """`otelmon serve` in a process of its own, on free ports."""

    def __init__(self, folder: Path, bus: str) -> None:
        grpc, http, web = (_free_port() for _ in range(3))
        self.endpoint, self._web = f"http://127.0.0.1:{http}", f"http://127.0.0.1:{web}"
        options = {
            "receive.grpc": f"127.0.0.1:{grpc}", "receive.http": f"127.0.0.1:{http}", "web.listen": f"127.0.0.1:{web}",
            "data": str(folder), "bus": bus, "assemble.settle_seconds": "1",
        }  # fmt: skip
        settings = [part for key, value in options.items() for part in ("--set", f"{key}={value}")]
        self._log = (folder / "log").open("wb")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "otelmon", *settings, "serve"], stdout=self._log, stderr=self._log
        )

    def __enter__(self) -> _Monitor:
        end = time.monotonic() + READY_S
        while time.monotonic() < end:
            try:
                if httpx.get(f"{self._web}/readyz", trust_env=False).is_success:
                    return self
            except httpx.HTTPError:
                time.sleep(0.1)
        self.__exit__()
        raise UnreachableError(Problem("bench", "the monitor did not become ready", f"within {READY_S:g} s"))

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(30)
        self._log.close()

    def cpu_seconds(self) -> float:
        """CPU time of the process so far, user and system."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def drain(self, spans: int) -> None:
        """Wait until every span is stored, every run judged and every record written."""
        end = time.monotonic() + DRAIN_S
        while time.monotonic() < end:
            metrics = httpx.get(f"{self._web}/metrics", trust_env=False).text
            values = {
                line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in metrics.splitlines() if line[0] != "#"
            }
            lag = sum(value for name, value in values.items() if name.startswith("otelmon_lag_messages"))
            if values["otelmon_runs_open"] == 0 and lag == 0 and self._stored() >= spans:
                return
            time.sleep(0.5)
        raise UnreachableError(Problem("bench", f"{spans} spans were not through after {DRAIN_S:g} s"))

    def _stored(self) -> int:
        return int(httpx.get(f"{self._web}/api/v1/sizes", trust_env=False).json()["rows"]["spans"])


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def table(results: Iterable[list[Result]]) -> str:
    """Medians with the range of the rounds, as a Markdown table."""
    lines = ["| mix | spans | bytes a span | spans/s a core | MB/s a core | wall s |", "|---|--:|--:|--:|--:|--:|"]
    for rounds in results:
        first = rounds[0]
        lines.append(
            f"| {first.mix} | {first.spans} | {first.body_bytes // first.spans} | {_spread([r.spans_per_core for r in rounds], 0)} "
            f"| {_spread([r.megabytes_per_core for r in rounds], 1)} | {_spread([r.wall_seconds for r in rounds], 1)} |"
        )
    return "\n".join(lines)


def _spread(values: list[float], digits: int) -> str:
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"
