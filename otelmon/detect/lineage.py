"""Where the arguments of calls came from, as rows of the store: places and kinds, no content."""

from __future__ import annotations

import re
from collections.abc import Collection

from otelmon.checks.lib.provenance import Lineage, lineage
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.messages import ArgumentLineage

MAX_ARGUMENTS = 100  # arguments of one call that are kept
MAX_PATH = 200  # characters of a path
_NUMBER = re.compile(r"-?\d[\d.]*")


def lineages(view: View, closed: Collection[str]) -> dict[str, tuple[ArgumentLineage, ...]]:
    """{call key: where each of its arguments came from} of the calls of runs that are over: before that a source
    may still arrive."""
    unsure = {run.run_id for run in view.runs if run.gaps}
    found = {}
    for call in view.calls:
        if call.run_id in closed:
            lines = lineage(call, view)[:MAX_ARGUMENTS]
            found[call.key] = tuple(_row(line, view, call.run_id in unsure) for line in lines)
    return {key: rows for key, rows in found.items() if rows}


def _row(line: Lineage, view: View, unsure: bool) -> ArgumentLineage:
    """`unsure`: something of the run was not seen, so that what is in no source may have one."""
    return ArgumentLineage(
        path=line.path[:MAX_PATH],
        role=line.role,
        source=line.source,
        anchor=_anchor(line, view),
        transformation=_NUMBER.sub("N", line.transformation),
        sure=line.sure and not (unsure and line.source == "none"),
    )


def _anchor(line: Lineage, view: View) -> str:
    """The call or the span that had the value first, "" when no event had it."""
    if line.position is None or line.source == "run":
        return ""
    event = view.events[line.position]
    return event.key if isinstance(event, ToolCall) else event.span_id
