"""A call that the operator's policy forbids."""

from __future__ import annotations

from collections.abc import Iterator

from otelmon.checks.lib.approvals import approval_of, why_not
from otelmon.checks.lib.pairs import call_facts
from otelmon.checks.lib.policy import applies, policies_for
from otelmon.checks.registry import NoParams, check
from otelmon.checks.view import View
from otelmon.vocabulary.catalogue import Policy
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import SEVERITIES, Evidence, Severity

_LANDED = ("succeeded", "unknown", "pending")


@check(on="call")
def forbidden_write(call: ToolCall, view: View, params: NoParams) -> Iterator[Evidence]:  # noqa: ARG001
    """A policy of the catalogue forbids this call, or allows fewer of them; an attempt counts.

    Why it matters: the agent did, or tried to do, what its operator had ruled out.
    """
    for policy in policies_for(view, call, "forbid", "limit"):
        earlier = _within_limit(policy, call, view)
        if earlier is None or (policy.unless_approved and approval_of(call, view)):
            continue
        yield Evidence(
            summary=_summary(policy, call, len(earlier)),
            anchor=call.key,
            key=policy.id,
            span_ids=(call.span_id, *(c.span_id for c in earlier[-20:])),
            severity=_severity(policy, call, view),
            details={
                "policy": policy.id,
                "action": policy.action,
                "reason": policy.reason,
                "effect": view.effect(call).effect,
                "this": call_facts(call),
                "earlier": len(earlier),
                "approval": why_not(call, view),
            },
        )


def _within_limit(policy: Policy, call: ToolCall, view: View) -> list[ToolCall] | None:
    """Of a "limit" the earlier calls that used it up, None while it is not exceeded; [] for "forbid"."""
    if policy.action == "forbid":
        return []
    window = None if policy.window_seconds is None else policy.window_seconds * 1_000_000_000
    earlier = [
        c
        for c in view.calls_before(call)
        if c.outcome in _LANDED
        and (window is None or call.start_time_unix_nano - c.start_time_unix_nano <= window)
        and applies(policy, view, c)
    ]
    return earlier if len(earlier) >= (policy.max or 0) else None


def _summary(policy: Policy, call: ToolCall, earlier: int) -> str:
    tried = "was tried" if call.outcome in ("denied", "failed") else "was called"
    because = f" ({policy.reason})" if policy.reason else ""
    if policy.action == "limit":
        return f"{call.tool_name} {tried} after {earlier} calls, policy {policy.id} allows {policy.max}{because}"
    return f"{call.tool_name} {tried} although policy {policy.id} forbids it{because}"


def _severity(policy: Policy, call: ToolCall, view: View) -> Severity:
    for severity in SEVERITIES:
        if policy.severity == severity:
            return severity
    effect = view.effect(call).effect
    if effect == "read":
        return "medium"
    return "critical" if effect == "destructive" and call.outcome in _LANDED else "high"
