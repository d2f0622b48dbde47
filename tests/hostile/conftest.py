"""A served monitor that gets what nobody should send, and good runs in the same requests that must not suffer."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from tests.receive.build import a_group, a_span, as_json, as_protobuf
from tests.system.monitor import ServedMonitor

PROTOBUF, JSON = "application/x-protobuf", "application/json"
FOUND_S = 90.0
SECOND = 1_000_000_000


def ident(*parts: object) -> bytes:
    """32 bytes that belong to a name."""
    return hashlib.sha256(repr(parts).encode()).digest()


class Answer:
    """What a door said: HTTP status, refused spans, and the words."""

    def __init__(self, response: httpx.Response) -> None:
        self.status, self.refused, self.words = response.status_code, 0, response.content.decode("utf-8", "replace")
        if response.is_success and response.headers["content-type"] == JSON:
            partial = response.json().get("partialSuccess", {})
            self.refused, self.words = int(partial.get("rejectedSpans", 0)), partial.get("errorMessage", "")
        elif response.is_success:
            partial = ExportTraceServiceResponse.FromString(response.content).partial_success
            self.refused, self.words = partial.rejected_spans, partial.error_message


class Good:
    """A run in which one write is made twice: wherever it is sent it must be stored and found."""

    def __init__(self, name: str, begin: int) -> None:
        self.name = name
        self.conversation = f"good-{name}"
        self.trace = ident("good", name)[:16]
        order = {"order_id": f"G-{ident(name).hex()[:10]}", "amount": 12.5}
        common = {"gen_ai.conversation.id": self.conversation, "gen_ai.agent.name": "till"}
        root = {**common, "gen_ai.operation.name": "invoke_agent"}
        call = {
            **common, "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "issue_refund",
            "gen_ai.tool.call.arguments": json.dumps(order), "gen_ai.tool.call.result": '{"ok": true}',
        }  # fmt: skip
        ids = [ident(name, n)[:8] for n in range(3)]
        self.spans = [
            self._span(ids[0], b"", begin, 9, root),
            self._span(ids[1], ids[0], begin + SECOND, 1, {**call, "gen_ai.tool.call.id": "c1"}),
            self._span(ids[2], ids[0], begin + 4 * SECOND, 1, {**call, "gen_ai.tool.call.id": "c2"}),
        ]

    def _span(self, span: bytes, parent: bytes, start: int, seconds: int, attributes: dict[str, Any]) -> dict[str, Any]:
        return a_span(
            trace=self.trace, span=span, parent=parent, start=start, end=start + seconds * SECOND, attributes=attributes
        )


class Target:
    """The monitor with what the tests ask of it. `accepted` are spans, over everything sent."""

    def __init__(self, monitor: ServedMonitor) -> None:
        self.monitor = monitor
        self.accepted = 0
        self.patience_s = FOUND_S
        self.begin = time.time_ns() - 3600 * SECOND

    def good(self, name: str) -> Good:
        """A new good run."""
        return Good(name, self.begin)

    def post(self, body: bytes, content_type: str = PROTOBUF, spans: int = 0, **headers: str) -> Answer:
        """Send a body that holds so many spans."""
        response = httpx.post(
            f"{self.monitor.endpoint}/v1/traces", content=body, trust_env=False, timeout=120,
            headers={"content-type": content_type, **{k.replace("_", "-"): v for k, v in headers.items()}},
        )  # fmt: skip
        answer = Answer(response)
        if answer.status == httpx.codes.OK:
            self.accepted += spans - answer.refused
        return answer

    def send(self, spans: list[dict[str, Any]], good: Good, content_type: str = PROTOBUF) -> Answer:
        """Send spans and a good run in one request, the good run around them."""
        encode = as_protobuf if content_type == PROTOBUF else as_json
        body = encode([a_group(good.spans[0], *spans, *good.spans[1:])])
        return self.post(body, content_type, len(spans) + len(good.spans))

    def findings(self, conversation: str) -> list[dict[str, Any]]:
        """Open findings of a conversation."""
        found = self.monitor.read("findings", conversation=conversation, status="open")
        return [item["finding"] for item in found]

    def wait_for(self, conversation: str, rule: str) -> list[dict[str, Any]]:
        """Until a rule has fired in a conversation."""
        end = time.monotonic() + self.patience_s
        while True:
            found = [f for f in self.findings(conversation) if f["rule_id"] == rule]
            if found:
                return found
            assert time.monotonic() < end, f"{rule} is not found in {conversation}\n{self.monitor.log()}"
            time.sleep(0.2)

    def wait_until_closed(self, conversation: str) -> None:
        """Until every run of a conversation is over: busy judging, a stage has no run open that it could count."""
        end = time.monotonic() + self.patience_s
        while True:
            runs = self.monitor.read("runs", conversation=conversation)
            if runs and all(summary["run"]["closed"] for summary in runs):
                return
            assert time.monotonic() < end, f"{conversation} does not end\n{self.monitor.log()}"
            time.sleep(0.2)

    def assert_unhurt(self, good: Good) -> None:
        """The good run was stored and judged, and the monitor is as well as before."""
        assert len(self.wait_for(good.conversation, "duplicate_write")) == 1
        [run] = self.monitor.read("runs", conversation=good.conversation)
        assert run["run"]["spans"] == 3
        self.assert_well()

    def assert_well(self) -> None:
        """Every stage works, none was started again, no check failed."""
        assert httpx.get(f"{self.monitor.web}/readyz", trust_env=False).status_code == httpx.codes.OK
        metrics = self.monitor.metrics()
        assert {v for k, v in metrics.items() if k.startswith("otelmon_up_stage")} == {1}
        assert {v for k, v in metrics.items() if k.startswith("otelmon_stage_restarts_total")} == {0}
        assert {v for k, v in metrics.items() if k.startswith("otelmon_check_errors_total")} == {0}
        assert {v for k, v in metrics.items() if k.startswith("otelmon_dead_letters_total")} == {0}

    def runs(self, conversation: str) -> list[dict[str, Any]]:
        """The runs of a conversation in full."""
        summaries = self.monitor.read("runs", conversation=conversation)
        return [self.monitor.read("run", id=summary["run"]["run_id"]) for summary in summaries]

    def calls(self, conversation: str) -> list[dict[str, Any]]:
        """The calls of a conversation."""
        return [i["call"] for run in self.runs(conversation) for i in run["timeline"] if i["type"] == "call"]

    def page(self, path: str) -> str:
        """A page as HTML."""
        response = httpx.get(f"{self.monitor.web}{path}", trust_env=False)
        assert response.is_success, response.text
        return response.content.decode("utf-8", "strict")

    def assert_strict(self, conversation: str) -> None:
        """Everything that is said of a conversation is JSON by the letter, in Unicode."""

        def refuse(word: str) -> float:
            raise AssertionError(word)

        for summary in self.monitor.read("runs", conversation=conversation):
            run_id = summary["run"]["run_id"]
            self.page(f"/runs/{run_id}")
            text = self.page(f"/api/v1/run?id={run_id}")
            json.dumps(json.loads(text, parse_constant=refuse), ensure_ascii=False).encode("utf-8", "strict")

    def total(self, kind: str) -> int:
        """Spans of an account."""
        return sum(a[kind] for a in self.monitor.read("accounts") if a["topic"] == "otelmon.spans")

    def assert_conserved(self) -> None:
        """What was taken is what is accounted for."""
        end = time.monotonic() + self.patience_s
        while self.total("received") < self.accepted and time.monotonic() < end:
            time.sleep(0.3)
        assert self.total("received") == self.accepted
        assert self.total("dead_lettered") == 0
        assert self.total("stored") + self.total("duplicate") == self.accepted
        answer = self.monitor.otelmon("doctor")
        assert answer.returncode == 0, answer.stdout + answer.stderr


def served(folder: Path, **settings: object) -> Iterator[Target]:
    """A monitor from start to stop; its account must add up at the end."""
    monitor = ServedMonitor(folder, **settings)
    monitor.start()
    target = Target(monitor)
    try:
        yield target
        target.assert_conserved()
        assert monitor.stop() == 0
    finally:
        monitor.stop()


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """One monitor for all tests of a file."""
    yield from served(tmp_path_factory.mktemp("hostile"))
