"""The web door: pages, API and metrics on one address, in a thread of its own."""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import threading

import uvicorn
from starlette.applications import Starlette
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from otelmon import __version__
from otelmon.receive.addresses import bind, bracketed, is_loopback, split_address
from otelmon.vocabulary.errors import Problem, UserError
from otelmon.web.api import routes
from otelmon.web.pages import routes as page_routes
from otelmon.web.site import Site

OPTION = "web.listen"
PORT = re.compile(r":\d*\Z")
BACKLOG = 128  # connections waiting to be taken
OPEN_PATHS = frozenset(("/healthz", "/readyz"))
HEADERS = (
    (b"server", f"otelmon/{__version__}".encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
     b"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"),
)  # fmt: skip


def application(site: Site) -> ASGIApp:
    """Everything on the web address."""
    app: ASGIApp = Starlette(routes=[*routes(site), *page_routes(site)])
    if site.config.web.token:
        app = Authenticated(app, site.config.web.token)
    return Headers(OwnHost(app, allowed_hosts(split_address(OPTION, site.config.web.listen)[0])))


class Headers:
    """Adds the security headers to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = [h for h in message.get("headers", ()) if h[0].lower() not in dict(HEADERS)]
                message["headers"] = [*given, *HEADERS]
            await send(message)

        await self._app(scope, receive, with_headers)


class OwnHost:
    """Refuses requests under a foreign host name: a page elsewhere can point its own name at a
    loopback address and read what it answers. `hosts` empty: any name."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._hosts:
            host = dict(scope["headers"]).get(b"host", b"").decode("latin-1").lower()
            if PORT.sub("", host) not in self._hosts:
                await _refuse(send, 421, b"this server does not answer under that host name\n")
                return
        await self._app(scope, receive, send)


class Authenticated:
    """Asks for the bearer token, or for it as the password of HTTP basic authentication."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._token = app, token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS or self._knows(scope):
            await self._app(scope, receive, send)
            return
        await _refuse(send, 401, b"a token is needed\n", (b"www-authenticate", b'Basic realm="otelmon"'))

    def _knows(self, scope: Scope) -> bool:
        given = dict(scope["headers"]).get(b"authorization", b"")
        kind, _, secret = given.partition(b" ")
        if kind.lower() == b"basic":
            try:
                secret = base64.b64decode(secret, validate=True).partition(b":")[2]
            except binascii.Error:
                return False
        return hmac.compare_digest(secret.strip(), self._token)


async def _refuse(send: Send, status: int, text: bytes, *headers: tuple[bytes, bytes]) -> None:
    plain = (b"content-type", b"text/plain; charset=utf-8")
    await send({"type": "http.response.start", "status": status, "headers": [plain, *headers]})
    await send({"type": "http.response.body", "body": text})


def allowed_hosts(host: str) -> frozenset[str]:
    """Host names a loopback server answers under; empty (any) when the address is public."""
    return frozenset(("127.0.0.1", "localhost", "[::1]", bracketed(host))) if is_loopback(host) else frozenset()


class WebDoor:
    """The server. Raises UserError for a public address without a token, UnreachableError when the
    address can not be bound. `address` is host:port as bound."""

    def __init__(self, site: Site) -> None:
        host, port = split_address(OPTION, site.config.web.listen)
        if not is_loopback(host) and not site.config.web.token:
            wrong = f"{site.config.web.listen} is reachable from other machines and web.token is not set"
            do = "set web.token, or listen on 127.0.0.1"
            raise UserError(Problem(OPTION, wrong, "a token for everybody who may read tool calls", do))
        listening = bind(OPTION, host, port)
        listening.listen(BACKLOG)
        self.address = f"{bracketed(host)}:{listening.getsockname()[1]}"
        config = uvicorn.Config(
            application(site), log_config=None, access_log=False, lifespan="off", server_header=False, ws="none",
            proxy_headers=False, timeout_graceful_shutdown=5,
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [listening]}, name="otelmon-web", daemon=True)  # fmt: skip
        self._thread.start()

    def close(self) -> None:
        """Finish the requests in hand, then return."""
        self._server.should_exit = True
        self._thread.join()
