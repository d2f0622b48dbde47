"""A call that needed somebody's yes and had none."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from otelmon.checks.lib.approvals import agreed_just_now, approval_of, asked_for, asked_just_now, why_not
from otelmon.checks.lib.confirmation import demand_on
from otelmon.checks.lib.pairs import call_facts
from otelmon.checks.lib.policy import policies_for
from otelmon.checks.registry import check
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import SEVERITIES, Evidence, Severity


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`instructions`: also hold the agent to rules that stand only in its instructions, as words."""

    instructions: bool = True


@check(on="call")
def missing_confirmation(call: ToolCall, view: View, params: Params) -> Iterator[Evidence]:
    """The policy, or the agent's instructions, demand a yes for this call and nobody gave one.

    Why it matters: the person who could have said no was never asked.
    """
    if call.outcome in ("denied", "pending"):
        return  # nothing was done: somebody was asked, or will be
    policies = policies_for(view, call, "confirm")
    if policies:
        if approval_of(call, view) is None:
            policy = policies[0]
            yield _evidence(call, view, policy.id, policy.reason, _severity(policy.severity, call))
        return
    demand = demand_on(call, view) if params.instructions and call.outcome != "failed" else None
    if demand and not (approval_of(call, view) or _let(call, view)):
        yield _evidence(call, view, "", demand, "high")


def _let(call: ToolCall, view: View) -> bool:
    """The user's words amount to a yes, though they name no values: enough for a rule in words."""
    return asked_for(call, view) or asked_just_now(call, view) or agreed_just_now(call, view)


def _evidence(call: ToolCall, view: View, policy: str, rule: str, severity: Severity) -> Evidence:
    refused = why_not(call, view)
    said = f"policy {policy}" if policy else "the instructions"
    return Evidence(
        summary=f"{call.tool_name} was called without the confirmation that {said} demand"
        + ("s" if policy else "")
        + (f"; {refused}" if refused else ""),
        anchor=call.key,
        key=policy or "instructions",
        span_ids=(call.span_id,),
        severity=severity,
        details={"policy": policy, "rule": rule, "approval": refused, "this": call_facts(call)},
    )


def _severity(chosen: str | None, call: ToolCall) -> Severity:
    for severity in SEVERITIES:
        if chosen == severity:
            return severity
    return "medium" if call.outcome == "failed" else "high"
