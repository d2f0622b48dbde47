"""A real Apache Kafka for tests and demos: one KRaft broker from Maven Central's jars.

`python -m tests.services.kafka fetch` brings the jars; `... run --port 9092` serves in the foreground.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
POM = ROOT / ".ci" / "kafka" / "pom.xml"
VERSION = "4.1.2"
START_SECONDS = 90.0
USER, PASSWORD = "otelmon", "only-for-tests"


class ServiceError(Exception):
    """The service can not be had here; the message is one line and says what to do."""


def _need(program: str, package: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise ServiceError(
            f"{program}: not found; Apache Kafka needs it; install it (Debian: apt-get install {package})"
        )
    return path


def fetch() -> Path:
    """The folder with Kafka's jars, downloaded once. OTELMON_KAFKA_LIBS names another folder."""
    given = os.environ.get("OTELMON_KAFKA_LIBS")
    folder = Path(given) if given else ROOT / ".cache" / "kafka" / VERSION
    if any(folder.glob("kafka_2.13-*.jar")):
        return folder
    maven = _need("mvn", "maven")
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    command = [maven, "-q", "-B", "-f", str(POM), "dependency:copy-dependencies"]
    done = subprocess.run(
        [*command, "-DincludeScope=runtime", f"-DoutputDirectory={part}"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0 or not any(part.glob("kafka_2.13-*.jar")):
        lines = (done.stdout + done.stderr).strip().splitlines() or ["no output"]
        raise ServiceError(f"{POM}: maven could not bring Kafka's jars; {lines[0]}; check the network, then again")
    shutil.rmtree(folder, ignore_errors=True)
    part.replace(folder)
    return folder


def free_port() -> int:
    """A TCP port of 127.0.0.1 that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _listeners(**ports: int) -> str:
    return ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())


class KafkaServer:
    """One broker with its data in a folder; can be stopped, killed and started again on the same port."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.folder = folder
        self.port = port or free_port()
        self.login_port = free_port()
        self.log = folder / "kafka.log"
        self._java = _need("java", "default-jre-headless")
        self._libs = fetch()
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0
        self._format()

    @property
    def bootstrap(self) -> str:
        """host:port for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def login_bootstrap(self) -> str:
        """host:port for clients that log in (SASL_PLAINTEXT, PLAIN) as USER with PASSWORD."""
        return f"127.0.0.1:{self.login_port}"

    def start(self) -> None:
        """Returns when the broker answers."""
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command("kafka.Kafka", str(self._properties), heap="512m"),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            if self._answers():
                return
            time.sleep(0.1)
        self.stop()
        raise ServiceError(f"{self.log}: Kafka did not start; its last lines: {self.tail(5)}")

    def stop(self) -> None:
        """A clean shutdown."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """As a crash would end it."""
        self._end(signal.SIGKILL)

    def wait(self) -> int:
        """The exit code, when the broker ends by itself."""
        return self._process.wait() if self._process is not None else 0

    def tail(self, lines: int) -> str:
        """The end of the broker's log."""
        return " | ".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    @property
    def _properties(self) -> Path:
        return self.folder / "server.properties"

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(how)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process = None

    def _answers(self) -> bool:
        if "Kafka Server started" not in self.log.read_text(errors="replace")[self._log_start :]:
            return False
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _command(self, main: str, *arguments: str, heap: str = "128m") -> list[str]:
        return [
            self._java,
            f"-Xmx{heap}",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-Dlog4j2.level=INFO",
            "-cp",
            f"{self._libs}/*",
            main,
            *arguments,
        ]

    def _format(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        controller = free_port()
        self._properties.write_text(
            "\n".join(
                (
                    "process.roles=broker,controller",
                    "node.id=1",
                    f"controller.quorum.voters=1@127.0.0.1:{controller}",
                    f"listeners={_listeners(PLAINTEXT=self.port, LOGIN=self.login_port, CONTROLLER=controller)}",
                    f"advertised.listeners={_listeners(PLAINTEXT=self.port, LOGIN=self.login_port)}",
                    "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,LOGIN:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
                    "inter.broker.listener.name=PLAINTEXT",
                    "listener.name.login.sasl.enabled.mechanisms=PLAIN",
                    "listener.name.login.plain.sasl.jaas.config="
                    "org.apache.kafka.common.security.plain.PlainLoginModule required "
                    f'user_{USER}="{PASSWORD}";',
                    "controller.listener.names=CONTROLLER",
                    f"log.dirs={self.folder / 'data'}",
                    "offsets.topic.replication.factor=1",
                    "offsets.topic.num.partitions=4",
                    "transaction.state.log.replication.factor=1",
                    "transaction.state.log.min.isr=1",
                    "share.coordinator.state.topic.replication.factor=1",
                    "share.coordinator.state.topic.min.isr=1",
                    "group.initial.rebalance.delay.ms=0",
                    "group.min.session.timeout.ms=1000",
                    "auto.create.topics.enable=false",
                    "broker.session.timeout.ms=2000",  # a killed broker may come back soon
                    "broker.heartbeat.interval.ms=500",
                    "log.cleaner.dedupe.buffer.size=16777216",
                    "",
                )
            )
        )
        if (self.folder / "data" / "meta.properties").exists():
            return
        command = self._command(
            "kafka.tools.StorageTool", "format", "-t", "b3RlbG1vbi10ZXN0cy0wMQ", "-c", str(self._properties)
        )
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ServiceError(f"{self.folder}: Kafka's storage could not be formatted; {done.stderr.strip()[-300:]}")


@contextmanager
def running(port: int = 0) -> Iterator[KafkaServer]:
    """A started broker with data in a temporary folder, gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="otelmon-kafka-"))
    try:
        server = KafkaServer(folder, port)
        try:
            server.start()
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def kafka_server(request: pytest.FixtureRequest) -> Iterator[KafkaServer]:
    """One broker for the whole test run. When a test fails, its log is kept in .cache/kafka-failed.log."""
    with running() as server:
        yield server
        if request.session.testsfailed:
            shutil.copy(server.log, ROOT / ".cache" / "kafka-failed.log")


def main(arguments: list[str]) -> int:
    """The command line. 0 done, 3 something needed is not there."""
    parser = argparse.ArgumentParser(prog="python -m tests.services.kafka", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("fetch", help="download the jars only")
    run = verbs.add_parser("run", help="serve in the foreground until interrupted")
    run.add_argument("--port", type=int, default=9092)
    options = parser.parse_args(arguments)
    try:
        if options.verb == "fetch":
            sys.stdout.write(f"{fetch()}\n")
            return 0
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with running(options.port) as server:
            sys.stdout.write(f"kafka {VERSION} serves on {server.bootstrap}; interrupt to stop\n")
            sys.stdout.flush()
            return server.wait()
    except ServiceError as error:
        sys.stderr.write(f"{error}\n")
        return 3
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
