"""A call that somebody refused, and that was made all the same."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from otelmon.checks.lib.approvals import agreed_just_now, approval_of
from otelmon.checks.lib.pairs import call_facts
from otelmon.checks.registry import check
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import Evidence, Severity

LANDED = ("succeeded", "unknown", "pending")
LOOKED_AT = 100  # the latest denials; an agent that is refused more often is told of by other rules


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`rephrased`: also find another tool that reaches the record of the refused call."""

    rephrased: bool = True


@check(on="call")
def denial_bypass(call: ToolCall, view: View, params: Params) -> Iterator[Evidence]:
    """A person or a policy refused this call and it took effect, or the same effect was reached by
    another call after the refusal. A technical refusal (syntax, a missing field) is no denial.

    Why it matters: a no that does not hold is worse than no question at all.
    """
    if call.outcome not in LANDED or not view.writes(call):
        return
    if call.approval is not None and call.approval.decision == "rejected":
        yield _evidence(call, view, None)
        return
    denied = _denied_before(call, view, params)
    if denied is not None and approval_of(call, view) is None and not agreed_just_now(call, view):
        yield _evidence(call, view, denied)


def _denied_before(call: ToolCall, view: View, params: Params) -> ToolCall | None:
    """The latest refused call whose effect this one has, with no new word of the user in between."""
    said = view.latest_user_message(call)
    since = said.position if said else -1
    denials = [denied for denied in view.denials if since < denied.position < call.position][-LOOKED_AT:]
    if not denials:
        return None
    key, values = view.effect_key(call), set(view.identifying_values(call))
    for denied in reversed(denials):
        if view.effect_key(denied) == key:
            return denied
        same_record = bool(values & set(view.identifying_values(denied)))
        if params.rephrased and same_record and view.effect(denied).effect == view.effect(call).effect:
            return denied
    return None


def _evidence(call: ToolCall, view: View, denied: ToolCall | None) -> Evidence:
    if denied is None:
        by = call.approval.by or call.approval.source if call.approval else ""
        summary = f"{call.tool_name} was carried out although it had been rejected" + (f" by {by}" if by else "")
    else:
        how = "again" if denied.tool_name == call.tool_name else f"as {call.tool_name}"
        summary = f"{denied.tool_name} was denied, and then done {how}"
    severity: Severity = "critical" if view.effect(call).effect == "destructive" else "high"
    return Evidence(
        summary=summary,
        anchor=call.key,
        span_ids=(call.span_id, *((denied.span_id,) if denied else ())),
        severity=severity,
        details={"this": call_facts(call), "other": call_facts(denied) if denied else None},
    )
