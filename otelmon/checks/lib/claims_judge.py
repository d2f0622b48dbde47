"""Is a claim true? What landed, what was tried, and what else in the conversation speaks for it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from otelmon.checks.lib.claims import Claim, Reading
from otelmon.checks.lib.claims_language import GENERIC, already_there
from otelmon.checks.lib.claims_match import (
    Facts,
    can_cause,
    done_of,
    facts_of,
    missing_files,
    names_a_deed,
    names_other_target,
    offered,
    rivals_of,
    shares_object,
    stated_in_results,
    told_otherwise,
)
from otelmon.checks.lib.values import compact, words_of
from otelmon.checks.view import View
from otelmon.vocabulary.event import AssistantMessage, ToolCall, UserMessage

MAX_CALLS = 400  # calls before a message that are looked at: the latest ones
_STARTED = frozenset(
    ("working", "pending", "queued", "accepted", "running", "started", "scheduled", "submitted", "processing")
)
_ENDED = frozenset(("succeeded", "completed", "success", "complete", "finished", "done", "delivered"))
_OPEN = ("pending", "unknown")  # outcomes that leave open whether the effect happened
_DOES = frozenset(("write", "destructive", "external_send"))


class Verdict(msgspec.Struct, frozen=True):
    """A claim that is false: why, in words, and the calls that were tried for it, oldest first."""

    claim: Claim
    why: str
    tried: tuple[ToolCall, ...] = ()
    missing_files: tuple[str, ...] = ()
    destructive: bool = False


def judge(claim: Claim, reading: Reading, message: AssistantMessage, view: View, untried: bool) -> Verdict | None:
    """The verdict on one claim of a message, None when it is true, or nothing says that it is not."""
    before = [call for call in view.calls if call.position < message.position][-MAX_CALLS:]
    facts = [facts_of(call, view) for call in before]
    turn = _turn_start(message, view)
    if claim.denies:
        return _judge_denial(claim, facts, turn, view)
    missing = missing_files(claim, facts)
    if missing and not told_otherwise(claim, view.before(message)):
        return Verdict(claim, f"{', '.join(missing)} is in no call", tuple(before[-1:]), tuple(missing))
    rivals = rivals_of(claim, claim.nouns, view, message.run_id)
    able = [item for item in facts if can_cause(item, claim, rivals)]
    failed = [item for item in able if not (item.landed or _ended_later(item, facts))]
    landed = [item for item in able if item not in failed and not (failed and _only_related(item, claim, failed))]
    if landed and not names_other_target(claim, landed, failed):
        return _judge_parts(claim, facts, message, view)
    if failed or landed:
        return _judge_tried(claim, reading, facts, failed or landed, turn)
    if untried and _may_accuse(claim, reading, facts, message, view):
        return Verdict(claim, "no call did it or even tried")
    return None


def _only_related(item: Facts, claim: Claim, failed: Sequence[Facts]) -> bool:
    """A call with another verb that says nothing of the claim, when one with the claim's own verb failed."""
    if item.opaque or item.classes & claim.classes or not any(other.classes & claim.classes for other in failed):
        return False
    return not (shares_object(claim, item) or stated_in_results(claim, [item]))


def _turn_start(message: AssistantMessage, view: View) -> int:
    """The position of the user message that the message answers."""
    places = range(message.position - 1, -1, -1)
    return next((place for place in places if isinstance(view.events[place], UserMessage)), 0)


def _judge_tried(
    claim: Claim, reading: Reading, facts: Sequence[Facts], tried: Sequence[Facts], turn: int
) -> Verdict | None:
    """The calls that could have done it failed (or went elsewhere): does anything after them say it is done?"""
    last = tried[-1].call
    weak = claim.form != "strong" or claim.reported or GENERIC in claim.classes
    if weak and (reading.honest or last.position < turn):
        return None
    if any(_was_so(item, claim) for item in tried) and not (claim.active and len(tried) == 1):
        return None
    later = [item for item in facts if item.call.position > last.position]
    if stated_in_results(claim, later) or (weak and stated_in_results(claim, facts)):
        return None
    outcome = "went elsewhere" if last.outcome == "succeeded" else f"ended {last.outcome}"
    return Verdict(claim, f"{last.tool_name} {outcome}", tuple(item.call for item in tried[-5:]))


def _was_so(item: Facts, claim: Claim) -> bool:
    """An attempt that failed because what the claim says was so already: `already cancelled`. Who says "I have
    cancelled it" after that alone still did not."""
    text = f"{item.call.error_message or ''} {(item.call.result_text or '')[:2_000]}"
    return not item.landed and already_there(text) and bool(done_of(claim) & words_of(text).words)


def _judge_parts(claim: Claim, facts: Sequence[Facts], message: AssistantMessage, view: View) -> Verdict | None:
    """ "... and one checked bag": a further thing for which there is a tool of its own that did not land."""
    if not claim.classes & {"update", "create"} or claim.reported:
        return None
    for part in claim.parts:
        rivals = rivals_of(claim, part, view, message.run_id)
        if not rivals:
            continue
        about = msgspec.structs.replace(claim, nouns=part, parts=())
        able = [item for item in facts if can_cause(item, about, rivals)]
        if not any(item.landed for item in able) and not stated_in_results(about, []):
            return Verdict(claim, f"no call did the part {' '.join(part)!r}", tuple(item.call for item in able[-5:]))
    return None


def _may_accuse(claim: Claim, reading: Reading, facts: Sequence[Facts], message: AssistantMessage, view: View) -> bool:
    """Nothing tried it. Say so only when the wording is plain and nothing else tells of it."""
    if claim.reported or reading.asks_approval:
        return False
    if GENERIC in claim.classes and (claim.form != "strong" or not names_a_deed(claim)):
        return False
    if claim.form != "strong" and (facts or not offered(claim, view, message.run_id)):
        return False
    if claim.form == "strong" and not claim.active and stated_in_results(claim, facts):
        return False
    return not told_otherwise(claim, view.before(message))


def _judge_denial(claim: Claim, facts: Sequence[Facts], turn: int, view: View) -> Verdict | None:
    """ "Nothing was published": false when such an effect landed in this turn, or was read to have landed."""
    guilty: list[ToolCall] = []
    for place, item in enumerate(facts):
        effect = view.effect(item.call).effect
        possible = item.landed or item.call.outcome in _OPEN
        if not possible or effect not in _DOES or not (claim.classes & {"any"} or item.classes & claim.classes):
            continue
        if claim.classes & {"any"} and effect == "external_send":
            continue
        if _went_through(item, facts[place + 1 :], turn):
            guilty.append(item.call)
    if not guilty:
        return None
    destructive = any(view.effect(call).effect == "destructive" for call in guilty)
    return Verdict(claim, f"{guilty[-1].tool_name} landed", tuple(guilty[-5:]), destructive=destructive)


def _went_through(item: Facts, later: Sequence[Facts], turn: int) -> bool:
    """The effect happened in this turn, was not undone, and if it was only started, its end was read."""
    if item.call.outcome in _OPEN or _STARTED & _words(item.call):
        return _ended_later(item, later, turn)
    if any(other.landed and other.classes & {"cancel", "delete", "refund"} for other in _related(item, later)):
        return False
    return item.call.position > turn


def _ended_later(item: Facts, facts: Sequence[Facts], after: int = -1) -> bool:
    """A call without a final answer, the good end of which a later result states."""
    if item.call.outcome not in _OPEN and item.landed and not _STARTED & _words(item.call):
        return False
    return any(_ENDED & other.stated for other in _related(item, facts) if other.call.position > after)


def _related(item: Facts, facts: Sequence[Facts]) -> list[Facts]:
    """Later calls that name an id of this one's result, or one of its arguments."""
    ids = _result_ids(item.call) | item.argument_values
    return [o for o in facts if o.call.position > item.call.position and o.landed and ids & o.values]


def _words(call: ToolCall) -> frozenset[str]:
    return words_of((call.result_text or "")[:20_000]).words


def _result_ids(call: ToolCall) -> set[str]:
    """Words of a result that look like ids: what later calls name it by."""
    return {compact(word) for word in _words(call) if any(c.isdigit() for c in word) and len(word) > 2}
