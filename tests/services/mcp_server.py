"""A real MCP server of the official SDK: over stdio when it is run, over HTTP on a loopback port for a test.

python mcp_server.py [old|new]
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations
from starlette.types import ASGIApp, Receive, Scope, Send

NAME = "depot"


def server(version: str = "old") -> MCPServer[Any]:
    """The depot's tools; the new version lost an argument and reads otherwise."""
    made: MCPServer[Any] = MCPServer(NAME)

    @made.tool(description="Reads stock." if version == "old" else "Reads stock of one bin.", annotations=ToolAnnotations(read_only_hint=True))  # fmt: skip
    def get_stock(sku: str) -> int:
        return len(sku)

    if version == "old":

        @made.tool(name="move_stock", description="Moves stock.")
        def move_old(sku: str, bin: str) -> str:  # noqa: A002
            return sku + bin
    else:

        @made.tool(name="move_stock", description="Moves stock.")
        def move_new(sku: str) -> str:
            return sku

    @made.tool(description="Runs SQL.")
    def run_sql(sql: str) -> str:
        return sql

    return made


class _Guarded:
    """Lets in only who brings the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and dict(scope["headers"]).get(b"authorization") != f"Bearer {self._token}".encode():
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        await self._app(scope, receive, send)


@contextmanager
def http_server(version: str = "old", token: str = "") -> Iterator[str]:
    """Serve over streamable HTTP; yields the address."""
    app: ASGIApp = server(version).streamable_http_app()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = uvicorn.Server(uvicorn.Config(_Guarded(app, token) if token else app, port=port, log_level="error"))
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    until = time.monotonic() + 20
    while not running.started and time.monotonic() < until:
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        running.should_exit = True
        thread.join(20)


if __name__ == "__main__":
    server(sys.argv[1] if len(sys.argv) > 1 else "old").run("stdio")
