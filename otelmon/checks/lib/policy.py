"""Which of the operator's policies speak about a call."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from otelmon.checks.lib.effects import hidden_effect
from otelmon.checks.lib.expressions import compile_when
from otelmon.checks.view import View
from otelmon.vocabulary.catalogue import Action, Policy
from otelmon.vocabulary.event import ToolCall


def policies_for(view: View, call: ToolCall, *actions: Action) -> list[Policy]:
    """The policies that apply to the call, in the order of the file; of these actions only, when given."""
    return [p for p in view.catalogue.policy if (not actions or p.action in actions) and applies(p, view, call)]


def applies(policy: Policy, view: View, call: ToolCall) -> bool:
    """True when every selector of the policy matches the call, and its condition holds."""
    return (
        _any_glob(policy.tools, call.tool_name, call.raw_name)
        and (not policy.effects or _effect_matches(policy, view, call))
        and _any_glob(policy.agents, call.agent_name or "")
        and _any_glob(policy.principals, call.principal or "")
        and _any_glob(policy.environments, call.environment)
        and (policy.when is None or compile_when(policy.when)(call, view))
    )


def _effect_matches(policy: Policy, view: View, call: ToolCall) -> bool:
    return view.effect(call).effect in policy.effects and not hidden_effect(call, view.tool(call))


def _any_glob(globs: Sequence[str], *names: str) -> bool:
    return not globs or any(fnmatchcase(name, glob) for glob in globs for name in names)
