"""The OTLP/HTTP door: POST /v1/traces and /v1/logs in protobuf or JSON, compressed or not."""

from __future__ import annotations

import asyncio
import hmac
import socket
import threading
import time
from typing import Any

import uvicorn
from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from google.protobuf import json_format
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from otelmon.receive.answers import response, status, unauthenticated
from otelmon.receive.inflate import inflate
from otelmon.receive.otlp import JSON, PROTOBUF
from otelmon.receive.receiver import RETRY_AFTER_S, TOO_MANY, Answer, Receiver
from otelmon.receive.signals import Signal
from otelmon.vocabulary.errors import InputError, Problem

WORKERS = 16  # requests decoded and published at once; more than cores, because publishing waits for the disk
BODY_SECONDS = 30.0
STOP_SECONDS = 30
_STATUS = {
    "unauthenticated": 401,
    "too_large": 413,
    "unsupported_type": 415,
    "unsupported_encoding": 415,
    "timeout": 408,
}


def application(receiver: Receiver) -> Starlette:
    """The ASGI application of the door."""
    limiter: list[CapacityLimiter] = []

    async def take(request: Request, signal: Signal) -> Response:
        if not limiter:
            limiter.append(CapacityLimiter(WORKERS))
        content_type = request.headers.get("content-type", "")
        answer = await _answer(request, receiver, content_type, signal, limiter[0])
        return _respond(answer, content_type)

    def route(path: str, signal: Signal) -> Route:
        async def endpoint(request: Request) -> Response:
            return await take(request, signal)

        return Route(path, endpoint, methods=["POST"])

    return Starlette(routes=[route("/v1/traces", "traces"), route("/v1/logs", "logs"), route("/v1/metrics", "metrics")])


async def _answer(
    request: Request, receiver: Receiver, content_type: str, signal: Signal, limiter: CapacityLimiter
) -> Answer:
    held = _Held(receiver)
    try:
        if not authorised(request.headers.get("authorization", ""), receiver.config.token):
            raise unauthenticated()
        async with asyncio.timeout(BODY_SECONDS):
            body = await _body(request, held, receiver.config.max_request_bytes)
        if body is None:
            return await run_sync(receiver.busy, signal, TOO_MANY)
        encoding = request.headers.get("content-encoding", "")
        return await run_sync(_accept, receiver, body, encoding, content_type, signal, limiter=limiter)
    except InputError as error:
        return await run_sync(receiver.refuse, error, signal)
    except TimeoutError:
        late = InputError("timeout", Problem("body", f"not complete after {BODY_SECONDS:.0f} s"))
        return await run_sync(receiver.refuse, late, signal)
    except ClientDisconnect:
        gone = InputError("disconnected", Problem("body", "the sender left before its end"))
        return await run_sync(receiver.refuse, gone, signal)
    finally:
        held.close()


def _accept(receiver: Receiver, body: bytes, encoding: str, content_type: str, signal: Signal) -> Answer:
    try:
        body = inflate(body, encoding, receiver.config.max_request_bytes)
    except InputError as error:
        return receiver.refuse(error, signal)
    return receiver.accept(body, content_type, signal)


class _Held:
    """Memory of one request's body as it comes in."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._size = 0

    def more(self, size: int) -> bool:
        if not self._receiver.room.take(size):
            return False
        self._size += size
        return True

    def close(self) -> None:
        self._receiver.room.give(self._size)


async def _body(request: Request, held: _Held, limit: int) -> bytes | None:
    """The body as sent, None when there is no memory for it. Raises InputError `too_large`."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise InputError("too_large", Problem("body", "is too large", f"at most {limit} bytes", "send less"))
        if not held.more(len(chunk)):
            return None
        chunks.append(chunk)
    return b"".join(chunks)


def authorised(header: str, token: str) -> bool:
    """Whether an authorization header carries the token; takes the same time however wrong it is."""
    scheme, _, given = header.partition(" ")
    return not token or (hmac.compare_digest(given.encode(), token.encode()) and scheme.lower() == "bearer")


def _respond(answer: Answer, content_type: str) -> Response:
    """In the encoding of the request; protobuf when that is neither."""
    message: Any = response(answer) if answer.outcome == "accepted" else status(answer)
    headers = {}
    code = 200
    if answer.outcome == "busy":
        code, headers["Retry-After"] = 503, str(RETRY_AFTER_S)
    elif answer.outcome == "refused":
        code = _STATUS.get(answer.reason, 400)
    if code == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if content_type.split(";", 1)[0].strip().lower() == JSON:
        return Response(json_format.MessageToJson(message, indent=None), code, headers, JSON)
    return Response(message.SerializeToString(), code, headers, PROTOBUF)


class HttpDoor:
    """A server in a thread of its own. `listening` is a bound socket, `tls` (certificate, key) in PEM files.

    Raises OSError or ssl.SSLError when they can not be used.
    """

    def __init__(self, receiver: Receiver, listening: socket.socket, tls: tuple[str, str] | None) -> None:
        config = uvicorn.Config(
            application(receiver),
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            ws="none",
            proxy_headers=False,
            timeout_graceful_shutdown=STOP_SECONDS,
            ssl_certfile=tls[0] if tls else None,
            ssl_keyfile=tls[1] if tls else None,
        )
        config.load()  # here, not in the thread: a broken certificate is told to the caller
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [listening]}, name="otlp-http", daemon=True
        )
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            time.sleep(0.005)

    def close(self) -> None:
        """Stop accepting, finish the requests that have come in, then return."""
        self._server.should_exit = True
        self._thread.join()
