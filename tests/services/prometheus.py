"""Real Prometheus and Alertmanager (Debian's) for tests: started on free ports, stopped at the end."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.services.kafka import ServiceError, free_port

START_SECONDS = 60.0


def program(name: str, package: str) -> str:
    """The path of a program. Raises ServiceError with what to install."""
    path = shutil.which(name)
    if path is None:
        raise ServiceError(f"{name}: not found; install it (Debian: apt-get install {package})")
    return path


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run promtool."""
    command = [program("promtool", "prometheus"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


class _Server:
    def __init__(self, folder: Path, port: int, command: list[str]) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._log = folder / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=folder)
        self._wait()

    def _wait(self) -> None:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self._process.poll() is None:
            try:
                if httpx.get(f"{self.url}/-/ready", trust_env=False).is_success:
                    return
            except httpx.HTTPError:
                time.sleep(0.1)
        self.stop()
        raise ServiceError(f"{self.url} did not start: {self._log.read_text()[-2000:]}")

    def get(self, path: str, **params: str) -> Any:
        answer = httpx.get(f"{self.url}{path}", params=params, trust_env=False, timeout=30)
        assert answer.is_success, answer.text
        return answer.json()

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Alertmanager(_Server):
    """Takes alerts and notifies nobody."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        config = folder / "alertmanager.yaml"
        config.write_text(yaml.safe_dump({"route": {"receiver": "nobody"}, "receivers": [{"name": "nobody"}]}))
        port = free_port()
        command = [
            program("prometheus-alertmanager", "prometheus-alertmanager"), f"--config.file={config}",
            f"--storage.path={folder / 'data'}", f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address=",
        ]  # fmt: skip
        super().__init__(folder, port, command)

    def alerts(self) -> list[dict[str, Any]]:
        """What it was told is firing."""
        found: list[dict[str, Any]] = self.get("/api/v2/alerts")
        return found


class Prometheus(_Server):
    """Scrapes one target twice a second, evaluates rule files as often, and tells an Alertmanager."""

    def __init__(self, folder: Path, target: str, rules: Path, alertmanager: Alertmanager, token: str = "") -> None:
        folder.mkdir()
        port = free_port()
        job: dict[str, Any] = {"job_name": "otelmon", "static_configs": [{"targets": [target]}]}
        if token:
            job["authorization"] = {"credentials": token}
        managers = [{"static_configs": [{"targets": [alertmanager.url.removeprefix("http://")]}]}]
        config = folder / "prometheus.yaml"
        config.write_text(yaml.safe_dump({
            "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "500ms"},
            "rule_files": [str(rules)],
            "scrape_configs": [job],
            "alerting": {"alertmanagers": managers},
        }))  # fmt: skip
        command = [
            program("prometheus", "prometheus"), f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]  # fmt: skip
        super().__init__(folder, port, command)

    def query(self, expr: str) -> list[dict[str, Any]]:
        """The instant vector of a query. Fails when Prometheus can not answer it."""
        answer = self.get("/api/v1/query", query=expr)
        assert answer["status"] == "success", answer
        assert not answer.get("warnings"), answer
        result: list[dict[str, Any]] = answer["data"]["result"]
        return result

    def target(self) -> dict[str, Any]:
        """The target's health and last error."""
        [found] = self.get("/api/v1/targets")["data"]["activeTargets"]
        return dict(found)

    def firing(self) -> set[str]:
        """Names of the alerts that fire now."""
        alerts = self.get("/api/v1/alerts")["data"]["alerts"]
        return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}
