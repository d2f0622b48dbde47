"""MCP semantic conventions: `mcp.method.name` on the client's, the transport's and the server's span."""

from __future__ import annotations

import re

import msgspec

from otelmon.assemble.dialects import _tools
from otelmon.assemble.dialects._definitions import definitions
from otelmon.assemble.dialects._fields import call_id_of, first_text, reading, structured, text_of, tool_content
from otelmon.assemble.dialects._shows import Shows
from otelmon.assemble.history import History
from otelmon.vocabulary.reading import Reading
from otelmon.vocabulary.span import Attributes, Span

NAME = "mcp"
PRIORITY = 70
SHOWS = Shows(
    instrumentation="MCP conventions (FastMCP, MCP SDK)",
    arguments="setting",
    results="setting",
    definitions="setting",
    user_text="no",
    final_message="no",
    conversation="no",
    setting="OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY where the SDK knows it (FastMCP 4 and mcp 2 do "
    "not); otherwise an instrumentation of the agent beside it",
    note="The session of the transport is no conversation. The tools of a server are named by its address when "
    "nothing names the server.",
)

METHOD = "mcp.method.name"
_SETUP = (
    "initialize", "notifications/initialized", "ping", "server/discover", "tools/list", "resources/list",
    "resources/templates/list", "prompts/list", "logging/setLevel", "notifications/tools/list_changed",
)  # fmt: skip
SERVER = 2  # OTLP span kind
_TARGET = re.compile(r"\btools/call (\S.*)$")


def matches(span: Span) -> bool:
    return METHOD in span.attributes


def read(span: Span, history: History) -> Reading:  # noqa: ARG001 - every dialect has this form; these spans have no messages
    """A tools/call span is a tool; a tools/list answer has definitions; finding out what a server can
    do is setup; the rest is `other`."""
    method = span.attributes.get(METHOD)
    if method == "tools/call":
        return _read_call(span)
    found = reading(span, NAME, "setup" if method in _SETUP else "other")
    if method == "tools/list":
        listed = structured(span.attributes.get("gen_ai.tool.call.result"))
        return msgspec.structs.replace(found, definitions=definitions(_tools_of(listed)))
    return found


def _tools_of(listed: object) -> object:
    return listed.get("tools") if isinstance(listed, dict) else listed


def _read_call(span: Span) -> Reading:
    attributes = span.attributes
    target = _TARGET.search(span.name)
    raw_name = first_text(attributes, "gen_ai.tool.name") or (target[1].strip() if target else "")
    if not raw_name:
        return reading(span, NAME, "other")
    marks = ("is_error",) if attributes.get("error.type") == "tool_error" else ()
    tool = _tools.fields(
        span,
        raw_name,
        call_id=call_id_of(attributes.get("gen_ai.tool.call.id")),
        called=_tools.arguments(span, attributes.get("gen_ai.tool.call.arguments")),
        returned=_tools.result(span, attributes.get("gen_ai.tool.call.result")),
        server=_server(attributes),
        # After a client's timeout the server's span may end well: nobody was told.
        extra=(*marks, "server_side") if span.kind == SERVER else marks,
    )
    return reading(span, NAME, "tool", tool=tool, content=tool_content(tool))


def _server(attributes: Attributes) -> str | None:
    """The server's name; conventions have no key for it, so its address when nothing else is known."""
    name = first_text(attributes, "fastmcp.server.name", "mcp.server.name")
    if name is not None:
        return name
    address = first_text(attributes, "server.address")
    port = text_of(attributes.get("server.port"))
    return f"{address}:{port}" if address and port else address
