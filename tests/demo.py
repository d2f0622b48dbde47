"""One run of `otelmon demo --once`, shared by all who look at what it left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.system.monitor import free_port

COMMAND = Path(sys.executable).with_name("otelmon")


class Demo(msgspec.Struct, frozen=True):
    """What the demo printed and how it ended; `folder` is where it ran, `arguments` make any command
    read what it stored."""

    folder: Path
    code: int
    out: str
    err: str
    arguments: tuple[str, ...]

    @property
    def data(self) -> Path:
        return self.folder / "otelmon-data" / "demo"


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    folder = tmp_path_factory.mktemp("demo")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("OTELMON_", "OTEL_"))}
    addresses = {key: f"127.0.0.1:{free_port()}" for key in ("receive.grpc", "receive.http", "web.listen")}
    settings = [part for key, value in addresses.items() for part in ("--set", f"{key}={value}")]
    done = subprocess.run(
        [COMMAND, *settings, "demo", "--once"], cwd=folder, env=kept, capture_output=True, text=True, timeout=100, check=False
    )  # fmt: skip
    reading = ("--set", f"data={folder}/otelmon-data/demo", *settings)
    return Demo(folder, done.returncode, done.stdout, done.stderr, reading)
