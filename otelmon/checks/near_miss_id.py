"""An id that is almost a known one, or the sibling of the one that was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from otelmon.checks.lib.nearness import Near, near_edits, sibling_of
from otelmon.checks.lib.provenance import Lineage, lineage
from otelmon.checks.registry import check
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import Evidence


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`max_edits`: characters that may differ (a swap of neighbours counts once); `siblings`: also `8842-R`
    where `8842` was asked for; `reads`: judge reads too."""

    max_edits: int = 2
    siblings: bool = True
    reads: bool = True


@check(on="call")
def near_miss_id(call: ToolCall, view: View, params: Params) -> Iterator[Evidence]:
    """An argument that names a record differs by a character or two from an id that was given.

    Why it matters: the wrong id often exists too; the call then changes another customer's record.
    """
    if call.arguments_fidelity not in ("exact", "decoded", "repaired"):
        return
    writes = view.writes(call)
    if not (writes or params.reads):
        return
    for line in lineage(call, view):
        near = near_edits(line, call, view, params.max_edits)
        if near:
            yield _evidence(call, line, near, writes)
        elif params.siblings and (asked := sibling_of(line, call, view)):
            yield _evidence(call, line, (asked,), writes)


def _evidence(call: ToolCall, line: Lineage, near: Sequence[Near], writes: bool) -> Evidence:
    names = ", ".join(repr(item.known) for item in near)
    first = near[0]
    how = f"{first.edits} of its characters differ" if first.edits else "which is a sibling"
    return Evidence(
        summary=f"{call.tool_name} was called with {line.path}={line.value!r}; known is {names} ({how})"[:400],
        anchor=call.key,
        key=line.path,
        severity="high" if writes else "medium",
        span_ids=call.span_ids,
        details={
            "argument": line.path,
            "value": line.value,
            "known": [msgspec.to_builtins(item) for item in near],
            "lineage": msgspec.to_builtins(line),
        },
    )
