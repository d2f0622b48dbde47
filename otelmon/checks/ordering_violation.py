"""A call that came too early: without the call that must be made first, or while what it reads was written."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from fnmatch import fnmatchcase

import msgspec

from otelmon.checks.lib.approvals import approval_of
from otelmon.checks.lib.pairs import call_facts
from otelmon.checks.lib.polling import says_missing
from otelmon.checks.lib.prerequisites import Required, came_before, required_by_policy, required_by_text
from otelmon.checks.lib.repeats import spans
from otelmon.checks.lib.state import record_values
from otelmon.checks.registry import check
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import SEVERITIES, Evidence, Severity

_LOOK_BACK = 32
_LANDED = ("succeeded", "unknown", "pending")


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`documented`: also what descriptions and instructions demand, not the operator's policy alone;
    `same_record`: the earlier call must not have been about another record."""

    documented: bool = True
    same_record: bool = True


@check(on="call")
def ordering_violation(call: ToolCall, view: View, params: Params) -> Iterator[Evidence]:
    """A required earlier call is missing or comes later, or a call raced the write it depends on.

    Why it matters: the step that should have shown or made what this call stands on had not happened.
    """
    for required in _required(call, view, params):
        if not came_before(call, required, view, params.same_record):
            yield _too_early(call, required, view)
    yield from _raced(call, view)


def _required(call: ToolCall, view: View, params: Params) -> Iterator[Required]:
    seen: set[str] = set()
    for required in required_by_policy(call, view):
        seen.add(required.tool)
        if not (required.policy and required.policy.unless_approved and approval_of(call, view)):
            yield required
    for required in required_by_text(call, view) if params.documented else ():
        if required.tool not in seen:
            yield required


def _too_early(call: ToolCall, required: Required, view: View) -> Evidence:
    later = next(
        (c for c in view.after(call) if isinstance(c, ToolCall) and fnmatchcase(c.tool_name, required.tool)), None
    )
    why = f"policy {required.policy.id}" if required.policy else "its description or the instructions"
    when = "came only later" if later else "was not called"
    return Evidence(
        summary=f"{call.tool_name} was called although {required.tool}, which {why} asks for first, {when}",
        anchor=call.key,
        key=f"{required.policy.id if required.policy else 'text'}:{required.tool}",
        span_ids=spans(call, later) if later else spans(call),
        severity=_severity(call, required, view),
        details={
            "policy": required.policy.id if required.policy else None,
            "required": required.tool,
            "says": required.text[:300],
            "later": call_facts(later) if later else None,
            "this": call_facts(call),
        },
    )


def _severity(call: ToolCall, required: Required, view: View) -> Severity | None:
    for severity in SEVERITIES:
        if required.policy and required.policy.severity == severity:
            return severity
    if view.effect(call).effect == "read" or call.outcome not in _LANDED:
        return "low"
    return "high" if required.policy else None


def _raced(call: ToolCall, view: View) -> Iterator[Evidence]:
    """The call failed, a write for want of something, and began before a write of the same record had ended."""
    if call.outcome != "failed" or (view.effect(call).effect != "read" and not says_missing(call)):
        return
    about = record_values(call, view)
    for write in reversed(view.calls[max(0, _place(call, view) - _LOOK_BACK) : _place(call, view)]):
        if not _overlaps(write, call) or not view.writes(write) or write.outcome != "succeeded":
            continue
        shared = about & record_values(write, view)
        if shared:
            yield Evidence(
                summary=f"{call.tool_name} failed because it began before {write.tool_name} on the same record had ended",
                anchor=call.key,
                key="race",
                span_ids=spans(call, write),
                severity="low",
                details={"other": call_facts(write), "this": call_facts(call), "shared": sorted(shared)[:10]},
            )
            return


def _overlaps(write: ToolCall, call: ToolCall) -> bool:
    return (
        write.run_id == call.run_id
        and write.start_time_unix_nano <= call.start_time_unix_nano < write.end_time_unix_nano
    )


def _place(call: ToolCall, view: View) -> int:
    return bisect_left(view.calls, call.position, key=lambda c: c.position)
