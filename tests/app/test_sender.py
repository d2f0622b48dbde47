"""Sending files: again while the server is busy, and what it refused is counted."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from tenacity import wait_none

from otelmon.app import sender as module
from otelmon.app.sender import Sender, send_files
from otelmon.vocabulary.errors import UnreachableError
from tests.receive.build import a_group, a_span, as_protobuf
from tests.system.monitor import free_port


class Door(ThreadingHTTPServer):
    """A small OTLP door over real HTTP that answers as it is told: the first answers, then 200."""

    def __init__(self, *answers: int, rejected: int = 0) -> None:
        self.answers, self.rejected = list(answers), rejected
        self.bodies: list[bytes] = []
        self.tokens: list[str | None] = []
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Door

    def do_POST(self) -> None:
        body = gzip.decompress(self.rfile.read(int(self.headers["content-length"])))
        code = self.server.answers.pop(0) if self.server.answers else 200
        self.server.tokens.append(self.headers["authorization"])
        if code == 200:
            self.server.bodies.append(body)
        answer = ExportTraceServiceResponse()
        answer.partial_success.rejected_spans = self.server.rejected
        text = answer.SerializeToString() if code == 200 else b""
        self.send_response(code)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "wait_random_exponential", lambda *_, **__: wait_none())


def test_a_busy_server_gets_the_same_again() -> None:
    door = Door(503, 429, 502, 504)
    sender = Sender(door.endpoint, "secret")
    body = as_protobuf([a_group(a_span())])
    assert sender.send(body) == 0
    assert door.bodies == [body]
    assert door.tokens == ["Bearer secret"] * 5
    sender.close()
    door.shutdown()
    door.server_close()


def test_what_the_server_rejected_is_counted() -> None:
    door = Door(rejected=2)
    sender = Sender(door.endpoint + "/")
    assert sender.send(as_protobuf([a_group(a_span())])) == 2
    sender.close()
    door.shutdown()
    door.server_close()


def test_a_server_that_refuses_or_is_not_there_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GIVE_UP_S", 0.05)
    door = Door(401)
    nobody = f"http://127.0.0.1:{free_port()}"
    for endpoint in (door.endpoint, nobody):
        sender = Sender(endpoint)
        with pytest.raises(UnreachableError, match=endpoint):
            sender.send(b"")
        sender.close()
    door.shutdown()
    door.server_close()


def test_files_are_joined_and_transcripts_named(tmp_path: Path) -> None:
    door = Door()
    for n in range(3):
        (tmp_path / f"{n}.pb").write_bytes(as_protobuf([a_group(a_span(span=bytes([n + 1] * 8)))]))
    (tmp_path / "talk.jsonl").write_text('{"id": "a", "messages": []}\n')
    sender = Sender(door.endpoint)
    sent = send_files(sorted(tmp_path.iterdir()), sender)
    sender.close()
    assert (sent.spans, sent.requests, sent.rejected) == (3, 1, 0)
    assert ["talk.jsonl" in problem.where for problem in sent.problems] == [True]
    [body] = door.bodies
    request = ExportTraceServiceRequest.FromString(body)
    assert sum(len(s.spans) for r in request.resource_spans for s in r.scope_spans) == 3
    door.shutdown()
    door.server_close()
