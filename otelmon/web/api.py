"""The HTTP API: health, metrics, reads and changes, as JSON."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from otelmon import __version__
from otelmon.golden.tasks import mine_incident
from otelmon.metrics.exporter import CONTENT_TYPE
from otelmon.store.database import Database
from otelmon.store.queries import payloads
from otelmon.vocabulary.errors import OtelmonError, Problem, UnreachableError, UserError
from otelmon.web.changes import change_incident
from otelmon.web.reads import READS, answer
from otelmon.web.site import Site
from otelmon.web.stored import frames

Handler = Callable[[Request], Awaitable[Response]]
OWN_HEADER = "x-otelmon"
MAX_BODY = 64 * 1024


ROUTES = (
    ("GET", "/metrics", "metrics"),
    ("GET", "/healthz", "healthz"),
    ("GET", "/readyz", "readyz"),
    ("GET", "/api/v1/rules", "rules"),
    ("GET", "/api/v1/payloads", "payloads"),
    ("GET", "/api/v1/{name}", "read"),
    ("POST", "/api/v1/incidents/{incident_id}/mine", "mine"),
    ("POST", "/api/v1/incidents/{incident_id}/{verb}", "change"),
    ("POST", "/api/v1/replay", "replay"),
)
"""Method, path, and the handler in _Api."""


def routes(site: Site) -> list[Route]:
    """The API's routes."""
    api = _Api(site)
    return [Route(path, answered(getattr(api, name)), methods=[method]) for method, path, name in ROUTES]


def described() -> list[tuple[str, str, str]]:
    """(method, path, what it does) of every route, for the reference."""
    return [(method, path, " ".join(getattr(_Api, name).__doc__.split())) for method, path, name in ROUTES]


class _Api:
    """The handlers. Their docstrings are the reference (docs/api.md)."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def metrics(self, _: Request) -> Response:
        """All metrics of this process, for Prometheus."""
        return Response(await run_in_threadpool(self._site.metrics), media_type=CONTENT_TYPE)

    async def healthz(self, _: Request) -> Response:
        """200 while the process answers. Needs no token."""
        return PlainTextResponse(f"otelmon {__version__}\n")

    async def readyz(self, _: Request) -> Response:
        """200 while every stage works, else 503 with what is wrong, a line each. Needs no token."""
        problems = await run_in_threadpool(self._site.problems)
        return PlainTextResponse("\n".join(problems or ["ready"]) + "\n", 503 if problems else 200)

    async def rules(self, _: Request) -> Response:
        """What this process judges by now: the rules with version and origin, plug-ins, suppressions with
        what they kept back, checks that raised, conditions that could not be decided, the last reload."""
        return json_response(await run_in_threadpool(self._site.in_force))

    async def payloads(self, request: Request) -> Response:
        """The stored messages received in [`since`, `until`) (nanoseconds; each may be left out), oldest first, as
        frames: 4 bytes of length, big-endian, then msgpack (topic, partition, offset, received_unix_nano, encoding,
        value)."""
        refuse_foreign(request)
        given = {name: _moment(name, text) for name, text in request.query_params.items() if name in ("since", "until")}
        found = payloads(self._database, given.get("since"), given.get("until"))
        return StreamingResponse(frames(found), media_type="application/octet-stream")

    async def read(self, request: Request) -> Response:
        """One of the reads below; parameters in the query."""
        name = request.path_params["name"]
        if name not in READS:
            return error_response(UserError(Problem(name, "there is no such read", f"one of {', '.join(READS)}")), 404)
        if READS[name].works:
            refuse_foreign(request)
        given = dict(request.query_params)
        found = await run_in_threadpool(answer, self._database, name, given)
        return not_found(name, given["id"]) if found is None else json_response(found)

    async def change(self, request: Request) -> Response:
        """`ack`, `resolve` or `label` an incident. The body is a JSON object of texts, each of which may
        be left out: `who`, `note`, and for `label` its `label` (true_positive, false_positive, unreviewed)."""
        refuse_foreign(request)
        given = await _body(request)
        verb, incident_id = request.path_params["verb"], request.path_params["incident_id"]
        if not await self._known(incident_id):
            return not_found("incident", incident_id)
        await run_in_threadpool(change_incident, self._database, verb, incident_id, self._site.wall(), given)
        return json_response({"ok": True})

    async def mine(self, request: Request) -> Response:
        """Make a golden task of an incident, keep it, and answer it."""
        refuse_foreign(request)
        incident_id = request.path_params["incident_id"]
        if not await self._known(incident_id):
            return not_found("incident", incident_id)
        return json_response(await run_in_threadpool(mine_incident, self._database, incident_id, self._site.wall()))

    async def replay(self, request: Request) -> Response:
        """Send what was received in [`since`, `until`) through the stages again. The body is a JSON
        object of texts: nanoseconds since the epoch. Answers how many messages."""
        refuse_foreign(request)
        given = await _body(request)
        _ = self._database
        since, until = _moment("since", given.get("since", "")), given.get("until")
        number = await run_in_threadpool(self._site.replay, since, _moment("until", until) if until else None)
        return json_response({"messages": number})

    @property
    def _database(self) -> Database:
        if self._site.database is None:
            raise UnreachableError(Problem("store", "this process runs without the store", "ask the process that has it"))  # fmt: skip
        return self._site.database

    async def _known(self, incident_id: str) -> bool:
        return await run_in_threadpool(answer, self._database, "incident", {"id": incident_id}) is not None


def _moment(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 19):
        wrong = f"{name} is missing or not a number"
        raise UserError(Problem("request", wrong, "nanoseconds since the epoch, as a text of digits"))
    return int(text)


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


def json_response(value: Any, status: int = 200) -> Response:
    """Strict JSON: lone surrogates are replaced; NaN can not occur in what the store keeps."""
    try:
        data = msgspec.json.encode(value)
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(value, str_keys=True), ensure_ascii=False)
        data = text.encode("utf-8", "replace")
    return Response(data, status, media_type="application/json")


def not_found(kind: str, id_: str) -> Response:
    """The answer to an id that nothing has."""
    return error_response(UserError(Problem(kind, f"there is none with the id {id_}")), 404)


def error_response(error: OtelmonError, status: int) -> Response:
    """An error as JSON."""
    return json_response({"error": str(error)}, status)
