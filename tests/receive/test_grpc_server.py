"""The OTLP/gRPC door with the real exporter and a real client."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from otelmon.receive.doors import Doors
from tests.receive.build import a_group, a_span, as_protobuf, many
from tests.receive.conftest import Sink
from tests.receive.test_signals import a_metrics_request

OpenDoors = Callable[..., Doors]
EXPORT = "/opentelemetry.proto.collector.{0}.v1.{1}Service/Export"


@contextmanager
def client(doors: Doors, signal: str = "trace") -> Iterator[Any]:
    """Calls Export with bytes and gives bytes."""
    with grpc.insecure_channel(doors.grpc) as channel:
        yield channel.unary_unary(EXPORT.format(signal, signal.capitalize()))


def refusal(export: Any, body: bytes, **options: Any) -> tuple[grpc.StatusCode, Status, str]:
    """Code, status details and reason of a call that is not accepted."""
    with pytest.raises(grpc.RpcError) as caught:
        export(body, timeout=20, **options)
    error: Any = caught.value
    trailing = dict(error.trailing_metadata())
    status = Status.FromString(trailing["grpc-status-details-bin"])
    assert status.message == error.details()
    info = ErrorInfo()
    assert status.details[0].Unpack(info)
    return error.code(), status, info.reason


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
def test_the_sdk_exporter_delivers(open_doors: OpenDoors, sink: Sink, compression: grpc.Compression) -> None:
    exporter = OTLPSpanExporter(f"http://{open_doors().grpc}", insecure=True, compression=compression)
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("tests")
    for n in range(600):
        tracer.start_span(f"span {n}", attributes={"n": n}).end()
    provider.shutdown()
    assert {(span.name, span.attributes["n"]) for span in sink.spans} == {(f"span {n}", n) for n in range(600)}
    assert len(sink.spans) == 600


def test_partial_success(open_doors: OpenDoors, sink: Sink) -> None:
    with client(open_doors()) as export:
        body = as_protobuf([a_group(a_span(), a_span(trace=b"", span=b"2" * 8))])
        partial = ExportTraceServiceResponse.FromString(export(body)).partial_success
        assert partial.rejected_spans == 1
        assert "invalid_trace_id" in partial.error_message
        assert export(as_protobuf(many(2))) == b""
    assert len(sink.spans) == 3


def test_text_that_is_not_utf8_is_replaced_not_refused(open_doors: OpenDoors, sink: Sink) -> None:
    with client(open_doors()) as export:
        export(as_protobuf([a_group(a_span(name="cut @@@"))]).replace(b"@@@", b"\xf0\x9f\xa4"))
    assert [span.name for span in sink.spans] == ["cut \ufffd"]


def test_what_can_not_be_read_is_an_invalid_argument(open_doors: OpenDoors, sink: Sink) -> None:
    with client(open_doors(max_request_bytes=2000)) as export:
        code, _, reason = refusal(export, b"nonsense")
        assert (code, reason) == (grpc.StatusCode.INVALID_ARGUMENT, "invalid_protobuf")
        code, _, reason = refusal(export, bytes(2001))
        assert (code, reason) == (grpc.StatusCode.INVALID_ARGUMENT, "too_large")
    assert sink.refused == {"invalid_protobuf": 1, "too_large": 1}
    assert sink.published == []


def test_a_bomb_is_refused_and_the_door_stays_open(open_doors: OpenDoors, sink: Sink) -> None:
    with client(open_doors(max_request_bytes=1 << 20)) as export:
        with pytest.raises(grpc.RpcError) as caught:
            export(bytes(64 << 20), compression=grpc.Compression.Gzip, timeout=20)
        assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        export(as_protobuf(many(1)))
    assert len(sink.spans) == 1


def test_back_pressure_says_when_to_come_back(open_doors: OpenDoors, sink: Sink) -> None:
    with client(open_doors()) as export:
        sink.error = OSError(28, "No space left on device")
        code, status, reason = refusal(export, as_protobuf(many(1)))
        assert (code, reason) == (grpc.StatusCode.UNAVAILABLE, "busy")
        retry = RetryInfo()
        assert status.details[1].Unpack(retry)
        assert retry.retry_delay.seconds == 1
        sink.error = None
        assert export(as_protobuf(many(1))) == b""


def test_the_sdk_exporter_sends_again_after_back_pressure(open_doors: OpenDoors, sink: Sink) -> None:
    sink.error = OSError(28, "No space left on device")
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"http://{open_doors().grpc}", insecure=True)))
    provider.get_tracer("t").start_span("kept").end()
    flusher = threading.Thread(target=provider.force_flush)
    flusher.start()
    assert sink.waiting.acquire(timeout=10)
    sink.error = None
    flusher.join(20)
    provider.shutdown()
    assert [span.name for span in sink.spans] == ["kept"]


def test_a_sender_without_the_token_is_turned_away(open_doors: OpenDoors, sink: Sink) -> None:
    with client(open_doors(token="secret")) as export:
        for metadata in ((), (("authorization", "Bearer wrong"),), (("authorization", "secret"),)):
            code, _, reason = refusal(export, as_protobuf(many(1)), metadata=metadata)
            assert (code, reason) == (grpc.StatusCode.UNAUTHENTICATED, "unauthenticated")
        assert sink.published == []
        assert export(as_protobuf(many(1)), metadata=(("authorization", "Bearer secret"),)) == b""


def test_tls(open_doors: OpenDoors, sink: Sink, certificate: dict[str, str]) -> None:
    doors = open_doors(tls_cert=certificate["cert"], tls_key=certificate["key"], token="secret")
    provider = TracerProvider()
    exporter = OTLPSpanExporter(
        f"https://{doors.grpc}",
        credentials=grpc.ssl_channel_credentials(Path(certificate["ca"]).read_bytes()),
        headers={"authorization": "Bearer secret"},
    )
    provider.add_span_processor(BatchSpanProcessor(exporter))
    provider.get_tracer("t").start_span("private").end()
    provider.shutdown()
    assert [span.name for span in sink.spans] == ["private"]


def test_metrics_are_answered_so_that_exporters_do_not_retry(open_doors: OpenDoors, sink: Sink) -> None:
    doors = open_doors()
    with client(doors, "metrics") as export:
        answer = ExportMetricsServiceResponse.FromString(export(a_metrics_request().SerializeToString()))
        assert answer.partial_success.rejected_data_points == 15
    assert [account.signal for account in sink.accounts] == ["metrics"]


def test_senders_at_once_lose_nothing(open_doors: OpenDoors, sink: Sink) -> None:
    bodies = [as_protobuf([a_group(*(a_span(span=b"%04d%04d" % (k, n)) for n in range(50)))]) for k in range(60)]
    with client(open_doors()) as export, ThreadPoolExecutor(12) as pool:
        assert set(pool.map(export, bodies)) == {b""}
    assert len({span.span_id for span in sink.spans}) == len(sink.spans) == 3000


def test_closing_during_calls_loses_nothing_acknowledged(open_doors: OpenDoors, sink: Sink) -> None:
    doors = open_doors()
    sink.gate.clear()
    acknowledged: list[str] = []
    with client(doors) as export:

        def send(k: int) -> None:
            span = b"%08d" % (k + 1)
            try:
                export(as_protobuf([a_group(a_span(span=span))]), timeout=20)
            except grpc.RpcError:
                return
            acknowledged.append(span.hex())

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
