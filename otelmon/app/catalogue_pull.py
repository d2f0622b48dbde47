"""Asks a live MCP server for its tools, by the official SDK (the extra `otelmon[mcp]`)."""

from __future__ import annotations

import asyncio
import importlib
import shlex
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import msgspec

from otelmon.app.catalogue_files import tools_of
from otelmon.vocabulary.catalogue import Tool
from otelmon.vocabulary.errors import OtelmonError, Problem, UnreachableError, UserError

if TYPE_CHECKING:
    import mcp

MAX_PAGES, MAX_TOOLS = 1_000, 20_000


def command_of(text: str) -> tuple[str, ...]:
    """The words of a command line. Raises UserError."""
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UserError(Problem("--stdio", f"is not a command line ({error})", "expected a command and its arguments")) from None  # fmt: skip
    if not words:
        raise UserError(Problem("--stdio", "is empty", "expected a command and its arguments"))
    return words


def header_from(name: str, environment: Mapping[str, str]) -> str:
    """A secret from an environment variable, so that it stands in no command line. Raises UserError."""
    value = environment.get(name, "")
    if not value:
        raise UserError(Problem(f"--auth-env {name}", "the variable is not set", "expected the value of the Authorization header"))  # fmt: skip
    return value if " " in value else f"Bearer {value}"


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """Whom to ask, and how. `server`: a command with its arguments, or an address; `name`: what the server is
    called in the catalogue, by default what it calls itself; `environment`: variables that the command gets
    beside those every program needs."""

    server: tuple[str, ...] | str
    name: str | None = None
    timeout_s: float = 30.0
    authorization: str = ""
    environment: dict[str, str] = {}


def pull(asked: Asked) -> tuple[Tool, ...]:
    """All tools of the server, in its order. A command is started, asked and ended. Raises UnreachableError when the server does not
    answer in time, UserError when the SDK is not installed or the answer holds no tools."""
    sdk = _sdk()
    where = asked.server if isinstance(asked.server, str) else asked.server[0]
    try:
        own, listed = asyncio.run(asyncio.wait_for(_ask(sdk, asked), asked.timeout_s))
    except OtelmonError:
        raise
    except TimeoutError:
        raise UnreachableError(Problem(where, f"gave no answer within {asked.timeout_s:g} seconds", "", "give --timeout")) from None  # fmt: skip
    except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - whatever a foreign server does to the SDK
        raise UnreachableError(Problem(where, f"is no MCP server that answers ({_reason(error)})")) from None
    tools = tools_of(listed, where)
    return tuple(msgspec.structs.replace(tool, server=asked.name or own or tool.server) for tool in tools)


def _sdk() -> Any:
    try:
        return importlib.import_module("mcp")
    except ImportError:
        raise UserError(Problem("catalog pull", "the MCP SDK is not installed", "", "pip install 'otelmon[mcp]'")) from None  # fmt: skip


async def _ask(sdk: Any, asked: Asked) -> tuple[str, list[dict[str, Any]]]:
    async with AsyncExitStack() as stack:
        target = await _target(sdk, asked, stack)
        client: mcp.Client = await stack.enter_async_context(
            sdk.Client(target, read_timeout_seconds=asked.timeout_s, cache=None)
        )
        listed: list[dict[str, Any]] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await client.list_tools(cursor=cursor)
            listed += [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in page.tools]
            cursor = page.next_cursor
            if not cursor or len(listed) > MAX_TOOLS:
                break
        if cursor:
            raise UserError(Problem("tools/list", f"goes on after {len(listed)} tools", f"expected at most {MAX_TOOLS}"))  # fmt: skip
        return client.server_info.name if client.server_info else "", listed


async def _target(sdk: Any, asked: Asked, stack: AsyncExitStack) -> Any:
    if isinstance(asked.server, tuple):
        command, *arguments = asked.server
        return sdk.StdioServerParameters(command=command, args=arguments, env=asked.environment)
    if not asked.authorization:
        return asked.server
    http, transport = (importlib.import_module(name) for name in ("httpx2", "mcp.client.streamable_http"))
    headers = {"Authorization": asked.authorization}
    client = await stack.enter_async_context(http.AsyncClient(headers=headers, timeout=asked.timeout_s))
    return transport.streamable_http_client(asked.server, http_client=client)


def _reason(error: BaseException) -> str:
    """The innermost error of a group, in one line."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
