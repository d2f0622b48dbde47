"""`otelmon serve` as a process of its own, that can be killed and started again on the same data."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

READY_S = 60.0
THROUGH_S = 120.0


def free_port() -> int:
    """A port below those the system hands out by itself: a monitor that was killed finds it free again."""
    while True:
        port = secrets.randbelow(15_000) + 15_000
        with socket.socket() as listening:
            try:
                listening.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


class ServedMonitor:
    """The process and its addresses. Settings stay the same over restarts; `stages` among them (names
    with spaces between) makes it a process with these stages only."""

    def __init__(self, folder: Path, **settings: object) -> None:
        ports = [free_port() for _ in range(3)]
        self.folder = folder
        self.stages = str(settings.pop("stages", "")).split()
        self.endpoint = f"http://127.0.0.1:{ports[1]}"
        self.grpc = f"127.0.0.1:{ports[0]}"
        self.web = f"http://127.0.0.1:{ports[2]}"
        self._settings = {
            "data": folder / "data",
            "receive.grpc": self.grpc,
            "receive.http": f"127.0.0.1:{ports[1]}",
            "web.listen": f"127.0.0.1:{ports[2]}",
            "assemble.settle_seconds": 1,
            "assemble.idle_seconds": 6,
            **settings,
        }
        self._process: subprocess.Popen[bytes] | None = None

    def arguments(self) -> list[str]:
        """Options that make any otelmon command speak with this monitor."""
        return [part for key, value in self._settings.items() for part in ("--set", f"{key}={value}")]

    def start(self) -> None:
        log = (self.folder / "log").open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "otelmon", *self.arguments(), "serve", *self.stages],
            stdout=log,
            stderr=log,
            cwd=self.folder,
        )
        log.close()
        end = time.monotonic() + READY_S
        while time.monotonic() < end:
            assert self._process.poll() is None, self.log()
            try:
                if httpx.get(f"{self.web}/readyz", trust_env=False).is_success:
                    return
            except httpx.HTTPError:
                time.sleep(0.05)
        raise AssertionError(f"not ready within {READY_S:g} s\n{self.log()}")

    def kill(self) -> None:
        """kill -9: nothing is finished, nothing is said."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> int:
        """SIGTERM, and the exit code."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.terminate()
        return self._process.wait(60)

    def peak_bytes(self) -> int:
        """The most memory the process ever had resident."""
        assert self._process is not None
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        [line] = [line for line in status.splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) * 1024

    def log(self) -> str:
        return (self.folder / "log").read_text()[-4000:]

    def read(self, name: str, **params: object) -> Any:
        response = httpx.get(
            f"{self.web}/api/v1/{name}", params={k: str(v) for k, v in params.items()}, trust_env=False
        )
        assert response.is_success, response.text
        return response.json()

    def metrics(self) -> dict[str, float]:
        lines = httpx.get(f"{self.web}/metrics", trust_env=False).text.splitlines()
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if not line.startswith("#")}

    def wait_until_through(self, spans: int) -> None:
        """Until this many distinct spans are stored, every run is judged as a whole, and no message waits."""
        self._wait(lambda: self.read("sizes")["rows"]["spans"] >= spans)

    def wait_until_taken(self, spans: int) -> None:
        """As `wait_until_through`, where spans that came again count too."""
        self._wait(lambda: sum(a["received"] for a in self.read("accounts") if a["topic"] == "otelmon.spans") >= spans)

    def _wait(self, arrived: Callable[[], bool]) -> None:
        end, quiet = time.monotonic() + THROUGH_S, 0
        while quiet < 3:
            assert time.monotonic() < end, f"not through: {self.read('sizes')}\n{self.log()}"
            time.sleep(0.3)
            values = self.metrics()
            lag = sum(value for name, value in values.items() if name.startswith("otelmon_lag_messages"))
            waiting = values["otelmon_runs_open"] + values["otelmon_traces_open"] + lag
            quiet = quiet + 1 if waiting == 0 and arrived() else 0

    def findings(self) -> set[tuple[str, str, str, str]]:
        """Final, non-retracted findings: (id, rule, severity, summary)."""
        found = [item["finding"] for item in self.read("findings", status="open", limit=100_000)]
        return {(f["finding_id"], f["rule_id"], f["severity"], f["summary"]) for f in found}

    def otelmon(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command beside the server."""
        return subprocess.run(
            [sys.executable, "-m", "otelmon", *self.arguments(), *arguments],
            capture_output=True, text=True, cwd=self.folder, timeout=120, check=False,
        )  # fmt: skip
