"""What a rule needs to see before its check may be asked, and why it can not be when it is not there."""

from __future__ import annotations

from otelmon.checks.registry import On
from otelmon.checks.view import View
from otelmon.rules.model import Need, Rule
from otelmon.vocabulary.event import Event, NotEvaluable, Run, ToolCall
from otelmon.vocabulary.reading import Fidelity

_HIDDEN: dict[Fidelity, NotEvaluable] = {"absent": "content_off", "hashed": "hashed", "truncated": "truncated"}


def unmet(rule: Rule, kind: On, event: Event, view: View) -> NotEvaluable | None:
    """The first reason why the rule can not be asked about this anchor, or None."""
    for need in rule.needs:
        reason = _reason(need, kind, event, view)
        if reason is not None:
            return reason
    return None


def _reason(need: Need, kind: On, event: Event, view: View) -> NotEvaluable | None:
    run = view.run_of(event)
    if need == "arguments":
        return _HIDDEN.get(event.arguments_fidelity) if isinstance(event, ToolCall) else None
    if need == "result":
        return _hidden_result(event) if isinstance(event, ToolCall) else None
    if need == "catalogue":
        return "no_catalogue" if view.tools_in_force(event.run_id).source == "none" else None
    if need == "user_text":
        return None if _has_user_text(kind, event, view) else _gap(run, "content_off")
    if need == "final_message":
        return None if view.final_message(event.run_id) else _gap(run, "incomplete_run")
    if need == "context_complete":
        return run.gaps[0] if run.gaps else None
    if need == "past_complete":
        return next((gap for gap in run.gaps if not _after_calls(gap, run)), None)
    return None  # run_end: such rules are only asked about runs that are over


def _hidden_result(call: ToolCall) -> NotEvaluable | None:
    """What a call that did not succeed came back with is its error message."""
    return None if call.outcome != "succeeded" and call.error_message else _HIDDEN.get(call.result_fidelity)


def _has_user_text(kind: On, event: Event, view: View) -> bool:
    """True when the anchor can rest on something the user said: a message before it."""
    first = next(view.user_messages(), None)
    return first is not None and (kind == "run" or first.position < event.position)


def _after_calls(gap: NotEvaluable, run: Run) -> bool:
    """What is missing is the end of the run: it may have broken off, but what its calls rest on was seen."""
    return gap == "incomplete_run" and run.root_seen


def _gap(run: Run, otherwise: NotEvaluable) -> NotEvaluable:
    return run.gaps[0] if run.gaps else otherwise
