"""The HTTP API: health, metrics, reads and changes, as JSON."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from otelmon import __version__
from otelmon.golden.tasks import mine_incident
from otelmon.metrics.exporter import CONTENT_TYPE
from otelmon.vocabulary.errors import OtelmonError, Problem, UnreachableError, UserError
from otelmon.web.changes import change_incident
from otelmon.web.reads import answer
from otelmon.web.site import Site

Handler = Callable[[Request], Awaitable[Response]]
OWN_HEADER = "x-otelmon"
MAX_BODY = 64 * 1024


def routes(site: Site) -> list[Route]:
    """The API's routes."""

    async def metrics(_: Request) -> Response:
        return Response(await run_in_threadpool(site.metrics), media_type=CONTENT_TYPE)

    async def healthz(_: Request) -> Response:
        return PlainTextResponse(f"otelmon {__version__}\n")

    async def readyz(_: Request) -> Response:
        problems = await run_in_threadpool(site.problems)
        return PlainTextResponse("\n".join(problems or ["ready"]) + "\n", 503 if problems else 200)

    async def read(request: Request) -> Response:
        name = request.path_params["name"]
        given = dict(request.query_params)
        found = await run_in_threadpool(answer, _database(site), name, given)
        if found is None:
            return error_response(UserError(Problem(name, f"there is none with the id {given.get('id')}")), 404)
        return json_response(found)

    async def change(request: Request) -> Response:
        refuse_foreign(request)
        given = await _body(request)
        path = request.path_params
        await run_in_threadpool(change_incident, _database(site), path["verb"], path["incident_id"], site.wall(), given)
        return json_response({"ok": True})

    async def mine(request: Request) -> Response:
        refuse_foreign(request)
        incident_id = request.path_params["incident_id"]
        return json_response(await run_in_threadpool(mine_incident, _database(site), incident_id, site.wall()))

    async def replay(request: Request) -> Response:
        refuse_foreign(request)
        given = await _body(request)
        _database(site)
        try:
            since, until = int(given["since"]), int(given["until"]) if "until" in given else None
        except (KeyError, ValueError):
            raise UserError(
                Problem("replay", "since is missing or not a number", "nanoseconds since the epoch")
            ) from None
        return json_response({"messages": await run_in_threadpool(site.replay, since, until)})

    return [
        Route("/metrics", metrics),
        Route("/healthz", healthz),
        Route("/readyz", readyz),
        Route("/api/v1/replay", answered(replay), methods=["POST"]),
        Route("/api/v1/incidents/{incident_id}/mine", answered(mine), methods=["POST"]),
        Route("/api/v1/incidents/{incident_id}/{verb}", answered(change), methods=["POST"]),
        Route("/api/v1/{name}", answered(read)),
    ]


def answered(handler: Handler) -> Handler:
    """A handler whose failures of ours become JSON answers."""

    async def handle(request: Request) -> Response:
        try:
            return await handler(request)
        except OtelmonError as error:
            return error_response(error, 503 if isinstance(error, UnreachableError) else 400)

    return handle


def refuse_foreign(request: Request) -> None:
    """Changes must come from a client that can set a header of ours: a foreign page can not."""
    if OWN_HEADER not in request.headers:
        raise UserError(Problem("request", f"the header {OWN_HEADER} is missing", "it marks a request as meant", f"send {OWN_HEADER}: 1"))  # fmt: skip


async def _body(request: Request) -> dict[str, str]:
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > MAX_BODY:
            raise UserError(Problem("body", f"larger than {MAX_BODY} bytes"))
    try:
        return msgspec.json.decode(data or b"{}", type=dict[str, str])
    except msgspec.DecodeError as error:
        raise UserError(Problem("body", f"not a JSON object of texts: {error}")) from None


def _database(site: Site) -> Any:
    if site.database is None:
        raise UnreachableError(Problem("store", "this process runs without the store", "ask the process that has it"))
    return site.database


def json_response(value: Any, status: int = 200) -> Response:
    """Strict JSON: lone surrogates are replaced; NaN can not occur in what the store keeps."""
    try:
        data = msgspec.json.encode(value)
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(value, str_keys=True), ensure_ascii=False)
        data = text.encode("utf-8", "replace")
    return Response(data, status, media_type="application/json")


def error_response(error: OtelmonError, status: int) -> Response:
    """An error as JSON."""
    return json_response({"error": str(error)}, status)
