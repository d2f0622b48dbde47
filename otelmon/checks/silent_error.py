"""A call that looks successful, and its payload says that it failed."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from otelmon.checks.registry import check
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import Evidence, Severity


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`texts`: plain error texts too, not only payloads with structure; `reads`: judge reads too."""

    texts: bool = True
    reads: bool = True


@check(on="call")
def silent_error(call: ToolCall, view: View, params: Params) -> Iterator[Evidence]:
    """Nothing but the payload says that the call failed: no status, no exception, no error flag.

    Why it matters: dashboards, retries and often the agent itself count such a call as a success.
    """
    if call.outcome != "failed" or call.outcome_source != "result":
        return
    structured = isinstance(call.result, (dict, list))
    # Of a call that only the history shows no status is known; its error text stood there for all to read.
    if not structured and (call.derived or not params.texts):
        return
    reads = not view.writes(call)
    if reads and not params.reads:
        return
    said = (call.error_message or call.result_text or "")[:300]
    yield Evidence(
        summary=f"{call.tool_name} returned like a success, but its payload says: {said[:120]}",
        anchor=call.key,
        severity=_severity(structured, reads, call.derived),
        span_ids=call.span_ids,
        details={"error": said, "error_type": call.error_type, "structured": structured, "derived": call.derived},
    )


def _severity(structured: bool, reads: bool, derived: bool) -> Severity:
    """A failed look-up whose text begins with its error hides least."""
    return "low" if derived or (reads and not structured) else "medium"
