"""Send files to a running monitor the way an exporter would: OTLP/HTTP, and again when it is busy."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable
from pathlib import Path

import httpx
import msgspec
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from otelmon.receive.files import World, read_worlds
from otelmon.vocabulary.errors import Problem, UnreachableError

PROTOBUF = "application/x-protobuf"
BATCH_BYTES = 4 * 1024 * 1024
GIVE_UP_S = 120.0
AGAIN = frozenset((429, 502, 503, 504))


class Sent(msgspec.Struct):
    """What was sent: spans, requests, spans the server rejected, bytes before compression, and what
    could not be sent."""

    spans: int = 0
    requests: int = 0
    rejected: int = 0
    body_bytes: int = 0
    problems: list[Problem] = []


class _BusyError(Exception):
    """The server asked to send the same again."""


class Sender:
    """Posts OTLP requests of traces and of logs to `endpoint` (http://host:port)."""

    def __init__(self, endpoint: str, token: str = "") -> None:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        self._endpoint = endpoint.rstrip("/")
        self._client = httpx.Client(headers=headers, timeout=60.0, trust_env=False)

    def send(self, body: bytes, signal: str = "traces") -> int:
        """Send one request (protobuf); spans or log records the server rejected. Raises UnreachableError after two
        minutes of trying."""
        try:
            for attempt in Retrying(
                retry=retry_if_exception_type((_BusyError, httpx.TransportError)),
                wait=wait_random_exponential(0.2, max=5.0), stop=stop_after_delay(GIVE_UP_S), reraise=True,
            ):  # fmt: skip
                with attempt:
                    return self._post(body, signal)
        except (_BusyError, httpx.HTTPError) as error:
            raise UnreachableError(
                Problem(
                    self._endpoint,
                    f"no answer: {error}",
                    "a running `otelmon serve`",
                    "start it, or name it: --endpoint",
                )
            ) from None
        raise AssertionError("a retry loop ends with a result or an exception")

    def _post(self, body: bytes, signal: str) -> int:
        from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

        headers = {"content-type": PROTOBUF, "content-encoding": "gzip"}
        response = self._client.post(f"{self._endpoint}/v1/{signal}", content=gzip.compress(body, 1), headers=headers)
        if response.status_code in AGAIN:
            raise _BusyError(f"busy ({response.status_code})")
        response.raise_for_status()
        if signal == "logs":
            return int(ExportLogsServiceResponse.FromString(response.content).partial_success.rejected_log_records)
        return int(ExportTraceServiceResponse.FromString(response.content).partial_success.rejected_spans)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


def send_files(paths: Iterable[Path], sender: Sender, on_progress: Callable[[Sent], None] | None = None) -> Sent:
    """Send all requests of the files, small ones joined. Transcripts are named as problems: they are
    not spans. Raises UserError for a path that can not be opened, UnreachableError without a server."""
    sent = Sent()
    waiting: list[bytes] = []
    size = 0
    for path in paths:
        for world in read_worlds(path, lambda _, problem: sent.problems.append(problem)):
            if world.logs is not None:
                _flush(sender, [world.logs.SerializeToString()], sent, "logs")
                continue
            body = _body(world, sent)
            if not body:
                continue
            waiting.append(body)
            size += len(body)
            if size >= BATCH_BYTES:
                _flush(sender, waiting, sent)
                size = 0
                if on_progress:
                    on_progress(sent)
    _flush(sender, waiting, sent)
    return sent


def _body(world: World, sent: Sent) -> bytes:
    if world.request is None:
        sent.problems.append(
            Problem(world.source, "a chat transcript holds no spans", "OTLP", "judge it with `otelmon check`")
        )
        return b""
    sent.spans += sum(len(s.spans) for r in world.request.resource_spans for s in r.scope_spans)
    body: bytes = world.request.SerializeToString()
    return body


def _flush(sender: Sender, waiting: list[bytes], sent: Sent, signal: str = "traces") -> None:
    """Concatenated protobuf messages are one message: their repeated fields follow each other."""
    if not waiting:
        return
    body = b"".join(waiting)
    waiting.clear()
    sent.rejected += sender.send(body, signal)
    sent.requests += 1
    sent.body_bytes += len(body)
