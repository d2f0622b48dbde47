"""The OTLP/HTTP door with the real exporter, a real client and raw sockets."""

from __future__ import annotations

import gzip
import json
import socket
import ssl
import threading
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
import zstandard
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from otelmon.receive import http as http_module
from otelmon.receive.addresses import split_address
from otelmon.receive.doors import Doors
from otelmon.receive.otlp import JSON, PROTOBUF
from tests.receive.build import a_group, a_span, as_json, as_protobuf, many
from tests.receive.conftest import Sink

OpenDoors = Callable[..., Doors]


def post(
    doors: Doors, body: bytes, content_type: str = PROTOBUF, path: str = "/v1/traces", **headers: str
) -> httpx.Response:
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.post(f"http://{doors.http}{path}", content=body, headers={"content-type": content_type} | headers)


def status_of(response: httpx.Response) -> tuple[Status, str]:
    """The google.rpc.Status of a refusal, and its reason."""
    status = Status.FromString(response.content)
    info = ErrorInfo()
    assert status.details[0].Unpack(info)
    return status, info.reason


@pytest.mark.parametrize("compression", list(Compression))
def test_the_sdk_exporter_delivers(open_doors: OpenDoors, sink: Sink, compression: Compression) -> None:
    doors = open_doors()
    exporter = OTLPSpanExporter(f"http://{doors.http}/v1/traces", compression=compression)
    provider = TracerProvider(resource=Resource.create({"service.name": "agent"}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("tests", "1")
    with tracer.start_as_current_span("parent", attributes={"list": [1, 2], "text": "é"}) as parent:
        for n in range(600):
            with tracer.start_as_current_span(f"child {n}"):
                parent.add_event("tick", {"n": n})
    provider.shutdown()
    spans = {span.name: span for span in sink.spans}
    assert len(spans) == len(sink.spans) == 601
    assert spans["parent"].attributes == {"list": [1, 2], "text": "é"}
    assert spans["parent"].resource["service.name"] == "agent"
    assert spans["child 9"].parent_span_id == spans["parent"].span_id
    assert spans["parent"].events[0].attributes.keys() == {"n"}


@pytest.mark.parametrize(
    "pack", [None, ("gzip", gzip.compress), ("deflate", zlib.compress), ("zstd", zstandard.compress)]
)
@pytest.mark.parametrize(("content_type", "encode"), [(PROTOBUF, as_protobuf), (JSON, as_json)])
def test_every_encoding_gives_the_same_span(
    open_doors: OpenDoors, sink: Sink, content_type: str, encode: Any, pack: Any
) -> None:
    body = encode([a_group(a_span())])
    doors = open_doors()
    if pack:
        response = post(doors, pack[1](body), content_type, content_encoding=pack[0])
    else:
        response = post(doors, body, content_type)
    assert (response.status_code, response.headers["content-type"]) == (200, content_type)
    assert response.content == (b"" if content_type == PROTOBUF else b"{}")
    [span] = sink.spans
    again = sink.receiver()
    again.accept(as_protobuf([a_group(a_span())]), PROTOBUF)
    assert sink.spans[1].digest == span.digest


def test_partial_success_comes_in_the_encoding_of_the_request(open_doors: OpenDoors, sink: Sink) -> None:
    doors = open_doors()
    groups = [a_group(a_span(), a_span(span=b""), a_span(trace=b"", span=b"3" * 8))]
    response = post(doors, as_protobuf(groups))
    partial = ExportTraceServiceResponse.FromString(response.content).partial_success
    assert (response.status_code, partial.rejected_spans) == (200, 2)
    assert "invalid_span_id" in partial.error_message
    response = post(doors, as_json(groups), JSON)
    assert response.status_code == 200
    assert response.json()["partialSuccess"]["rejectedSpans"] == "2"
    assert len(sink.spans) == 2


@pytest.mark.parametrize(
    ("body", "content_type", "encoding", "code", "reason"),
    [
        (b"nonsense", PROTOBUF, "", 400, "invalid_protobuf"),
        (b"{", JSON, "", 400, "invalid_json"),
        (b"nonsense", PROTOBUF, "gzip", 400, "invalid_compression"),
        (b"", "text/plain", "", 415, "unsupported_type"),
        (b"", PROTOBUF, "br", 415, "unsupported_encoding"),
        (b"x" * 5001, PROTOBUF, "", 413, "too_large"),
        (gzip.compress(bytes(5001)), PROTOBUF, "gzip", 413, "too_large"),
    ],
)
def test_what_can_not_be_read_is_refused_with_a_status(
    open_doors: OpenDoors, sink: Sink, body: bytes, content_type: str, encoding: str, code: int, reason: str
) -> None:
    response = post(open_doors(max_request_bytes=5000), body, content_type, content_encoding=encoding)
    assert response.status_code == code
    assert "retry-after" not in response.headers
    if content_type == JSON:
        status = response.json()
        assert (status["code"], status["details"][0]["reason"]) == (3, reason)
        assert status["message"].startswith("body:1:2: ")
    else:
        message, told = status_of(response)
        assert (message.code, told) == (3, reason)
        assert message.message
    assert sink.refused == {reason: 1}
    assert sink.published == []


def test_a_bomb_is_refused_and_the_door_stays_open(open_doors: OpenDoors, sink: Sink) -> None:
    doors = open_doors(max_request_bytes=1 << 20)
    packer = zlib.compressobj(wbits=31)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(512)) + packer.flush()
    assert len(bomb) < 1 << 20
    assert post(doors, bomb, content_encoding="gzip").status_code == 413
    assert post(doors, as_protobuf(many(1))).status_code == 200
    assert len(sink.spans) == 1


def test_ten_thousand_spans_in_one_request(open_doors: OpenDoors, sink: Sink) -> None:
    response = post(open_doors(), gzip.compress(as_protobuf(many(10_000)), 1), content_encoding="gzip")
    assert (response.status_code, response.content) == (200, b"")
    assert len({span.span_id for span in sink.spans}) == len(sink.spans) == 10_000
    assert all(len(message.value) <= 900_000 for message, _ in sink.published)


def test_senders_at_once_lose_nothing(open_doors: OpenDoors, sink: Sink) -> None:
    doors = open_doors()
    bodies = [as_protobuf([a_group(*(a_span(span=b"%04d%04d" % (k, n)) for n in range(50)))]) for k in range(60)]
    with ThreadPoolExecutor(12) as pool:
        codes = set(pool.map(lambda body: post(doors, body).status_code, bodies))
    assert codes == {200}
    assert len({span.span_id for span in sink.spans}) == len(sink.spans) == 3000
    assert sum(account.received for account in sink.accounts) == 3000


def test_back_pressure_says_when_to_come_back(open_doors: OpenDoors, sink: Sink) -> None:
    doors = open_doors()
    sink.error = OSError(28, "No space left on device")
    response = post(doors, as_protobuf(many(1)))
    assert (response.status_code, response.headers["retry-after"]) == (503, "1")
    status, reason = status_of(response)
    assert (status.code, reason) == (14, "busy")
    retry = RetryInfo()
    assert status.details[1].Unpack(retry)
    assert retry.retry_delay.seconds == 1
    sink.error = None
    assert post(doors, as_protobuf(many(1))).status_code == 200


def test_the_sdk_exporter_sends_again_after_back_pressure(open_doors: OpenDoors, sink: Sink) -> None:
    doors = open_doors()
    sink.error = OSError(28, "No space left on device")
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"http://{doors.http}/v1/traces")))
    provider.get_tracer("t").start_span("kept").end()
    flusher = threading.Thread(target=provider.force_flush)
    flusher.start()
    assert sink.waiting.acquire(timeout=10)
    sink.error = None
    flusher.join(20)
    provider.shutdown()
    assert [span.name for span in sink.spans] == ["kept"]
    assert sink.refused["busy"] >= 1


@pytest.mark.parametrize("header", [None, "Bearer wrong", "Bearer", "secret", "Basic secret", "Bearer sécret"])
def test_a_sender_without_the_token_is_turned_away(open_doors: OpenDoors, sink: Sink, header: str | None) -> None:
    doors = open_doors(token="secret")
    headers: Any = {"authorization": header.encode("latin-1")} if header is not None else {}
    response = post(doors, as_protobuf(many(1)), **headers)
    assert (response.status_code, response.headers["www-authenticate"]) == (401, "Bearer")
    assert status_of(response)[1] == "unauthenticated"
    assert sink.published == []
    assert sink.refused == {"unauthenticated": 1}
    for good in ("Bearer secret", "bearer secret"):
        assert post(doors, as_protobuf(many(1)), authorization=good).status_code == 200


def test_tls(open_doors: OpenDoors, sink: Sink, certificate: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # they win over the exporter's own option
        monkeypatch.delenv(name, raising=False)
    doors = open_doors(tls_cert=certificate["cert"], tls_key=certificate["key"], token="secret")
    provider = TracerProvider()
    exporter = OTLPSpanExporter(
        f"https://{doors.http}/v1/traces",
        certificate_file=certificate["ca"],
        headers={"authorization": "Bearer secret"},
    )
    provider.add_span_processor(BatchSpanProcessor(exporter))
    provider.get_tracer("t").start_span("private").end()
    provider.shutdown()
    assert [span.name for span in sink.spans] == ["private"]
    context = ssl.create_default_context(cafile=certificate["ca"])
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    response = httpx.post(f"https://{doors.http}/v1/traces", content=b"", verify=context)
    assert response.status_code == 401


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
@pytest.mark.parametrize("path", ["/v1/traces", "/v1/logs", "/v1/metrics"])
def test_only_posts_are_taken(open_doors: OpenDoors, method: str, path: str) -> None:
    response = httpx.request(method, f"http://{open_doors().http}{path}")
    assert (response.status_code, response.headers["allow"]) == (405, "POST")


def test_other_paths_are_not_found(open_doors: OpenDoors) -> None:
    assert post(open_doors(), b"", path="/v1/other").status_code == 404


def test_metrics_are_answered_so_that_exporters_do_not_retry(open_doors: OpenDoors, sink: Sink) -> None:
    doors = open_doors()
    metrics: Any = {"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"sum": {"dataPoints": [{}]}}]}]}]}
    response = post(doors, json.dumps(metrics).encode(), JSON, "/v1/metrics")
    assert (response.status_code, response.json()["partialSuccess"]["rejectedDataPoints"]) == (200, "1")
    assert "not stored here" in response.json()["partialSuccess"]["errorMessage"]
    assert post(doors, b"", path="/v1/metrics").content == b""
    assert [account.rejected for account in sink.accounts] == [{"unsupported_signal": 1}, {}]


def raw(doors: Doors) -> socket.socket:
    return socket.create_connection(split_address("o", doors.http), timeout=20)


HEAD = b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\n"


def answer(connection: socket.socket) -> bytes:
    """Everything until the server closes or the answer's head is complete."""
    data = b""
    while b"\r\n\r\n" not in data and (block := connection.recv(65536)):
        data += block
    return data


def test_a_body_in_chunks_and_pieces(open_doors: OpenDoors, sink: Sink) -> None:
    body = as_protobuf(many(3))
    with raw(open_doors()) as connection:
        connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        for at in range(0, len(body), 50):
            piece = body[at : at + 50]
            connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
        connection.sendall(b"0\r\n\r\n")
        assert answer(connection).startswith(b"HTTP/1.1 200")
    assert len(sink.spans) == 3


def test_a_body_that_grows_beyond_the_limit_is_refused_before_its_end(open_doors: OpenDoors, sink: Sink) -> None:
    with raw(open_doors(max_request_bytes=100_000)) as connection:
        connection.sendall(HEAD + b"Content-Length: 1000000000\r\n\r\n" + bytes(200_000))
        assert answer(connection).startswith(b"HTTP/1.1 413")
    assert sink.refused == {"too_large": 1}


def test_a_sender_that_leaves_early_is_counted(open_doors: OpenDoors, sink: Sink) -> None:
    doors = open_doors()
    with raw(doors) as connection:
        connection.sendall(HEAD + b"Content-Length: 1000\r\n\r\nhalf")
    doors.close()
    assert sink.refused == {"disconnected": 1}
    assert sink.published == []


def test_a_body_that_does_not_come_is_given_up(
    open_doors: OpenDoors, sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_module, "BODY_SECONDS", 0.05)
    with raw(open_doors()) as connection:
        connection.sendall(HEAD + b"Content-Length: 1000\r\n\r\nhalf")
        assert answer(connection).startswith(b"HTTP/1.1 408")
    assert sink.refused == {"timeout": 1}


def test_what_is_no_http_harms_nobody(open_doors: OpenDoors, sink: Sink) -> None:
    doors = open_doors()
    with raw(doors) as connection:
        connection.sendall(b"\x16\x03\x01 not http at all\r\n\r\n")
        assert answer(connection).startswith(b"HTTP/1.1 400")
    assert post(doors, as_protobuf(many(1))).status_code == 200


def test_bodies_beyond_the_memory_come_back_later(open_doors: OpenDoors, sink: Sink) -> None:
    doors = open_doors(max_request_bytes=10_000)
    held = [raw(doors) for _ in range(4)]
    try:
        for connection in held:
            connection.sendall(HEAD + b"Content-Length: 10000\r\nExpect: 100-continue\r\n\r\n")
            assert answer(connection).startswith(b"HTTP/1.1 100")
            connection.sendall(bytes(9_999))
        refused = 0
        while not refused:  # until the pieces sent above have all arrived
            refused += post(doors, bytes(9_000)).status_code == 503
        assert sink.refused["busy"] >= 1
    finally:
        for connection in held:
            connection.close()


def test_closing_during_requests_loses_nothing_acknowledged(open_doors: OpenDoors, sink: Sink) -> None:
    doors = open_doors()
    sink.gate.clear()
    acknowledged: list[str] = []

    def send(k: int) -> None:
        span = b"%08d" % (k + 1)
        try:
            if post(doors, as_protobuf([a_group(a_span(span=span))])).status_code == 200:
                acknowledged.append(span.hex())
        except httpx.TransportError:
            return

    senders = [threading.Thread(target=send, args=(k,)) for k in range(8)]
    for sender in senders:
        sender.start()
    for _ in range(8):
        assert sink.waiting.acquire(timeout=10)
    closer = threading.Thread(target=doors.close)
    closer.start()
    late = threading.Thread(target=send, args=(99,))
    late.start()
    sink.gate.set()
    for thread in (*senders, late, closer):
        thread.join(20)
        assert not thread.is_alive()
    assert len(acknowledged) >= 8
    assert set(acknowledged) <= {span.span_id for span in sink.spans}
