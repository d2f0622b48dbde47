"""A call of a tool that does not exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

import msgspec
from rapidfuzz import fuzz, process

from otelmon.checks.registry import check
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import Evidence

_NO_SUCH_TOOL = re.compile(
    r"(unknown|no such|invalid|unrecogni[sz]ed|undefined|unregistered) (tool|function|method|action)"
    r"|(tool|function|method|action)\b.{0,80}\b(not found|does not exist|doesn't exist|is not (available|defined|registered|valid)"
    r"|not recogni[sz]ed|no existe|nicht gefunden)",
    re.I | re.S,
)

_NEAREST, _SIMILAR = 3, 60


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`builtin`: globs of names that providers and frameworks add without showing a definition."""

    builtin: tuple[str, ...] = ()


@check(on="call")
def unknown_tool(call: ToolCall, view: View, params: Params) -> Iterator[Evidence]:
    """The name of the called tool is in no catalogue in force.

    Why it matters: the model made the tool up, or the agent runs with another catalogue than was reviewed.
    """
    force = view.tools_in_force(call.run_id)
    if force.source == "none" or call.tool_name in force.tools or call.raw_name in force.tools:
        return
    refused = call.outcome in ("failed", "denied")
    if call.outcome == "succeeded" and any(fnmatchcase(call.tool_name, glob) for glob in params.builtin):
        return
    if not force.complete and not (refused and _says_unknown(call)):
        return
    near = process.extract(call.tool_name, force.tools.keys(), scorer=fuzz.ratio, limit=_NEAREST, score_cutoff=_SIMILAR)
    names = [name for name, _, _ in near]
    hint = f"; nearest known: {', '.join(names)}" if names else ""
    yield Evidence(
        summary=f"{call.tool_name} is in no catalogue in force{hint}",
        anchor=call.key,
        span_ids=(call.span_id,),
        details={
            "nearest": names,
            "catalogue": force.source,
            "catalogue_complete": force.complete,
            "known_tools": len(force.tools),
            "outcome": call.outcome,
        },
    )


def _says_unknown(call: ToolCall) -> bool:
    return bool(_NO_SUCH_TOOL.search(f"{call.error_message or ''} {(call.result_text or '')[:2000]}"))
