"""A call sent again although its error says that this can not help."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated

import msgspec

from otelmon.checks.lib.guessing import guessed_values
from otelmon.checks.lib.pairs import apart, call_facts
from otelmon.checks.lib.polling import error_text, may_pass, may_poll, refused_as_duplicate
from otelmon.checks.lib.repeats import past, sent_at_once, spans
from otelmon.checks.lib.retries import same_effect
from otelmon.checks.registry import check
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import Evidence, Severity

_LONGER = 1.5
_STREAK = 20  # failures in a row after which guesses are no longer looked at one by one


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`attempts`: how often a call may be sent while its error may pass (the catalogue's `max_attempts`
    wins); `guesses`: failures after which made-up values are guessing; `similarity`: how alike (0 to 1)
    two free texts must be for a change to be cosmetic."""

    attempts: Annotated[int, msgspec.Meta(ge=1)] = 3
    guesses: Annotated[int, msgspec.Meta(ge=1)] = 2
    similarity: float = 0.9


@check(on="call")
def maladaptive_retry(call: ToolCall, view: View, params: Params) -> Iterator[Evidence]:
    """After a definite error the identical call is sent again, or one that differs only so far as to get past
    a duplicate guard, or one with another guess.

    Why it matters: the same request gets the same refusal; one that slips past a guard takes effect twice.
    """
    before = past(call, view)
    if before.tool_failures == 0:
        return
    found = _same_again(call, view, params) or _dodges(call, view, params) or _guesses(call, view, params)
    if found is None:
        return
    first, how, severity, more = found
    yield Evidence(
        summary=f"{call.tool_name} was sent again {apart(first.end_time_unix_nano, call.start_time_unix_nano)} after "
        f"{(error_text(first) or first.outcome).strip()[:80]!r}, {how}",
        anchor=call.key,
        span_ids=spans(call, first),
        severity=severity,
        details={"other": call_facts(first), "this": call_facts(call), **more},
    )


_Found = tuple[ToolCall, str, Severity | None, dict[str, object]]


def _same_again(call: ToolCall, view: View, params: Params) -> _Found | None:
    before = past(call, view)
    if before.failures == 0 or before.changed_since:
        return None
    last = before.same[-1]
    if sent_at_once(last, call) or may_poll(last, view) or may_poll(call, view):
        return None
    attempt = before.failures + 1
    if _may_help(last, call, view) and (attempt <= _budget(call, view, params) or _backs_off(call, view)):
        return None
    if last.outcome == "unknown" and view.writes(call) and view.effect(call).repeat == "additive":
        return None  # whether that is safe is another rule's question
    guarded = refused_as_duplicate(last) and view.writes(call)
    return last, "unchanged", _severity(call, view, "high" if guarded else None), {"attempt": attempt}


def _may_help(last: ToolCall, call: ToolCall, view: View) -> bool:
    """True when the error may be gone by now. A conflict may be when the key tells the server it is the same."""
    if refused_as_duplicate(last):
        key = view.idempotency_key(call)
        return bool(key) and key == view.idempotency_key(last)
    return may_pass(last)


def _backs_off(call: ToolCall, view: View) -> bool:
    """True when each attempt waited clearly longer than the one before."""
    tries = (*past(call, view).same[-2:], call)
    gaps = [two.start_time_unix_nano - one.end_time_unix_nano for one, two in pairwise(tries)]
    return len(gaps) == 2 and gaps[0] > 0 and gaps[1] >= _LONGER * gaps[0]


def _budget(call: ToolCall, view: View, params: Params) -> int:
    tool = view.tool(call)
    return tool.max_attempts if tool and tool.max_attempts is not None else params.attempts


def _dodges(call: ToolCall, view: View, params: Params) -> _Found | None:
    last = past(call, view).of_tool[-1]
    if not view.writes(call) or not refused_as_duplicate(last) or sent_at_once(last, call):
        return None
    if view.effect_key(last) == view.effect_key(call) or not same_effect(last, call, view, params.similarity):
        return None
    return last, "changed only so far as to get past the duplicate guard", "high", {"cosmetic": True}


def _guesses(call: ToolCall, view: View, params: Params) -> _Found | None:
    before = past(call, view)
    last = before.of_tool[-1]
    if not params.guesses <= before.tool_failures <= _STREAK or last.outcome != "failed" or may_pass(last):
        return None
    if sent_at_once(last, call):
        return None
    made_up = guessed_values(last, call, view)
    if not made_up:
        return None
    more: dict[str, object] = {"guessed": made_up, "failures": before.tool_failures}
    return last, f"with another guess at {', '.join(made_up)}", "medium" if view.writes(call) else "low", more


def _severity(call: ToolCall, view: View, severity: Severity | None) -> Severity | None:
    return "medium" if view.effect(call).effect == "read" else severity
