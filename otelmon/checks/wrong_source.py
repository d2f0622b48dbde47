"""A value that did not come from where the catalogue says it must come from."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from otelmon.checks.lib.origins import strays
from otelmon.checks.lib.sources import parse
from otelmon.checks.registry import check
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import Evidence


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`reads`: judge reads too."""

    reads: bool = True


@check(on="call")
def wrong_source(call: ToolCall, view: View, params: Params) -> Iterator[Evidence]:
    """An argument has another source than the one the catalogue names for it.

    Why it matters: a price the user typed, or an id of another list, is known text and still the wrong one.
    """
    tool = view.tool(call)
    if tool is None or not tool.sources or not (params.reads or view.writes(call)):
        return
    for path, text in tool.sources.items():
        for stray in strays(call, view, path, parse(text)):
            yield stray.evidence(f"{call.tool_name}: {stray.says()}", key=stray.line.path)
