"""The OTLP/gRPC door: Export of traces and logs, and of metrics to refuse them politely."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc

from otelmon.receive.answers import response, status, unauthenticated
from otelmon.receive.http import STOP_SECONDS, WORKERS, authorised
from otelmon.receive.otlp import PROTOBUF
from otelmon.receive.receiver import Answer, Receiver
from otelmon.receive.signals import Signal

_SERVICES: dict[str, Signal] = {
    "opentelemetry.proto.collector.trace.v1.TraceService": "traces",
    "opentelemetry.proto.collector.logs.v1.LogsService": "logs",
    "opentelemetry.proto.collector.metrics.v1.MetricsService": "metrics",
}


class GrpcDoor:
    """A gRPC server with a pool of threads. `tls` is (certificate, key) in PEM files.

    Raises OSError when the address can not be bound.
    """

    def __init__(self, receiver: Receiver, address: str, tls: tuple[bytes, bytes] | None) -> None:
        largest = 2 * receiver.config.max_request_bytes  # so that what is a little too large is answered and counted
        self._server = grpc.server(
            ThreadPoolExecutor(WORKERS, thread_name_prefix="otlp-grpc"),
            options=[("grpc.max_receive_message_length", min(largest, 2**31 - 1)), ("grpc.so_reuseport", 0)],
        )
        for service, signal in _SERVICES.items():
            handler = grpc.unary_unary_rpc_method_handler(_export(receiver, signal))  # bytes in, bytes out
            self._server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, {"Export": handler})])
        try:
            if tls:
                certificate, key = tls
                self.port = self._server.add_secure_port(address, grpc.ssl_server_credentials([(key, certificate)]))
            else:
                self.port = self._server.add_insecure_port(address)
        except RuntimeError as error:
            raise OSError(str(error)) from None
        self._server.start()

    def close(self) -> None:
        """Stop accepting, finish the calls that have come in, then return."""
        self._server.stop(STOP_SECONDS).wait()


def _export(receiver: Receiver, signal: Signal) -> Any:
    def export(body: bytes, context: Any) -> bytes:
        header = dict(context.invocation_metadata()).get("authorization", "")
        if authorised(header, receiver.config.token):
            answer = receiver.accept(body, PROTOBUF, signal)
        else:
            answer = receiver.refuse(unauthenticated(), signal)
        if answer.outcome == "accepted":
            encoded: bytes = response(answer).SerializeToString()
            return encoded
        return _fail(context, answer)

    return export


def _fail(context: Any, answer: Answer) -> bytes:
    """End the call with the status of the answer; its details (reason, wait) go as trailing metadata."""
    details = status(answer)
    code = next(c for c in grpc.StatusCode if c.value[0] == details.code)
    context.set_trailing_metadata((("grpc-status-details-bin", details.SerializeToString()),))
    context.set_code(code)
    context.set_details(details.message)
    return b""
