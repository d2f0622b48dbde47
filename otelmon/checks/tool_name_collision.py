"""One tool name, served by two servers."""

from __future__ import annotations

from collections.abc import Iterator

from otelmon.checks.lib.pairs import call_facts
from otelmon.checks.registry import NoParams, check
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall, ToolDefinition
from otelmon.vocabulary.finding import Evidence, Severity


@check(on="definition", name="tool_name_collision")
def two_servers(definition: ToolDefinition, view: View, params: NoParams) -> Iterator[Evidence]:  # noqa: ARG001
    """Two servers of one run serve a tool of the same name: whoever resolves it by the bare name may
    ask the wrong one. Said once per name, and at every write that went to one of the servers.

    Why it matters: the right call reaches the wrong system, and every field of it is valid.
    """
    servers = _servers(view, definition.run_id, definition.name)
    if len(servers) > 1 and definition.server == servers[-1]:
        yield Evidence(
            summary=f"{definition.name} is served by {' and '.join(servers)} in one run",
            anchor=f"tool:{definition.name}",
            key=",".join(servers),
            span_ids=(definition.span_id,),
            severity="high",
            details={"servers": servers},
        )


@check(on="call", name="tool_name_collision")
def asked_one_of_two(call: ToolCall, view: View, params: NoParams) -> Iterator[Evidence]:  # noqa: ARG001
    """A write went to one of two servers that serve the name, and the request does not say which."""
    servers = _servers(view, call.run_id, call.tool_name)
    if len(servers) < 2 or call.server not in servers or not view.writes(call) or _names_server(call, call.server):
        return
    others = [server for server in servers if server != call.server]
    severity: Severity = "critical" if view.effect(call).effect == "destructive" else "high"
    yield Evidence(
        summary=f"{call.tool_name} was carried out by {call.server}, and {' and '.join(others)} serves the same name",
        anchor=call.key,
        key=",".join(servers),
        span_ids=(call.span_id,),
        severity=severity,
        details={"server": call.server, "others": others, "this": call_facts(call)},
    )


def _servers(view: View, run_id: str, name: str) -> list[str]:
    """Servers that serve the name in a run, in order of their names."""
    same = view.tools_in_force(run_id).tools.get(name, ())
    return sorted({tool.server for tool in same if tool.server})


def _names_server(call: ToolCall, server: str | None) -> bool:
    """Whether the name the model used says which server it meant (`mcp__orders__execute_sql`)."""
    return bool(server) and call.raw_name != call.tool_name and str(server).lower() in call.raw_name.lower()
