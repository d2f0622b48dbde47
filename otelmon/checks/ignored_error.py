"""A call failed, and the agent went on as if it had not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from otelmon.checks.lib.claims import read_message
from otelmon.checks.lib.claims_language import already_there
from otelmon.checks.lib.claims_match import Facts, can_cause, facts_of
from otelmon.checks.lib.provenance import Lineage, lineage
from otelmon.checks.lib.values import compact
from otelmon.checks.registry import check
from otelmon.checks.view import View
from otelmon.vocabulary.event import AssistantMessage, Event, ToolCall, UserMessage
from otelmon.vocabulary.finding import Evidence

# A failed step of these verbs is what the next one stands on; of the others, only for some that follow.
_MAKES = frozenset(("create", "save", "enable", "link", "approve", "pay"))
_LEADS_TO = {"cancel": frozenset(("refund", "pay", "create")), "exchange": frozenset(("refund", "pay"))}
# Calls that answer a failure: they undo, tell, or hand over.
_ANSWERS = frozenset(
    [
        "rollback",
        "roll",
        "revert",
        "undo",
        "restore",
        "cleanup",
        "abort",
        "release",
        "escalate",
        "human",
        "handoff",
        "handover",
        "operator",
        "support",
        "supervisor",
        "notify",
        "alert",
        "report",
        "log",
        "compensate",
    ]
)
_NAMING = frozenset(("id", "code", "email", "phone", "url", "path", "name", "other"))


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`within`: calls after the failed one that are looked at; `after_reads`: a write on a record whose
    look-up failed counts too."""

    within: int = 4
    after_reads: bool = True


@check(on="call")
def ignored_error(call: ToolCall, view: View, params: Params) -> Iterator[Evidence]:
    """A write follows that needs what a failed call should have made or shown, and nothing admits the failure.

    Why it matters: everything built on the missing step is wrong, and each step after it looks fine.
    """
    if not view.writes(call) or call.outcome == "denied" or facts_of(call, view).name_words & _ANSWERS:
        return
    between: list[Event] = []
    calls = 0
    for place in range(call.position - 1, -1, -1):
        event = view.events[place]
        if isinstance(event, UserMessage) or calls >= params.within:
            return
        if isinstance(event, ToolCall) and event.batch != call.batch:
            calls += 1
            if event.outcome not in ("failed", "denied", "unknown"):
                if _looks_again(event, call, view):
                    return
            elif (found := _ignored(event, call, list(reversed(between)), view, params)) is not None:
                yield found
                return
        between.append(event)


def _looks_again(event: ToolCall, call: ToolCall, view: View) -> bool:
    """A read that worked, between the failure and the write: the agent looked at the state."""
    return not view.writes(event) and event.run_id == call.run_id


def _ignored(failed: ToolCall, call: ToolCall, between: Sequence[Event], view: View, params: Params) -> Evidence | None:
    texts = [event.text for event in between if isinstance(event, AssistantMessage) and event.text.strip()]
    asserted = next((said for text in texts if (said := _asserted(failed, text, view))), "")
    if not asserted and (any(read_message(text).honest for text in texts) or _tells_it_exists(failed)):
        return None
    shared = _shared(failed, call, view)
    if not (asserted or shared) or (
        _same_tool(failed, call) if asserted else _tries_again(failed, call, between, view)
    ):
        return None
    if not asserted and not _needed(failed, call, view, params):
        return None
    why = f"the message says {asserted[:60]!r}" if asserted else f"it uses {', '.join(shared[:3])}"
    return Evidence(
        summary=f"{call.tool_name} goes on after {failed.tool_name} {_ended(failed)}: {why}",
        anchor=call.key,
        key=failed.key,
        severity="high",
        span_ids=(*call.span_ids, *failed.span_ids),
        details={
            "other": failed.key,
            "failed": {
                "tool": failed.tool_name,
                "tool_call_id": failed.tool_call_id,
                "outcome": failed.outcome,
                "error": (failed.error_message or failed.result_text or "")[:300],
            },
            "asserted": asserted,
            "shared": shared,
        },
    )


def _ended(failed: ToolCall) -> str:
    return {"unknown": "ended without an answer", "denied": "was denied"}.get(failed.outcome, "failed")


def _asserted(failed: ToolCall, text: str, view: View) -> str:
    """The sentence that states the failed effect as done, "" when none does."""
    facts = facts_of(failed, view)
    for claim in read_message(text).claims:
        plain = not (claim.reported or claim.denies) and claim.form in ("strong", "bare")
        if plain and facts.classes & claim.classes and can_cause(facts, claim, []):
            return claim.sentence
    return ""


def _tells_it_exists(failed: ToolCall) -> bool:
    """What should be made is there already: going on is right."""
    return already_there(failed.error_message or failed.result_text or "")


def _tries_again(failed: ToolCall, call: ToolCall, between: Sequence[Event], view: View) -> bool:
    """The write, or a call before it, is another try at what failed."""
    missed = facts_of(failed, view)
    tries = [call, *(event for event in between if isinstance(event, ToolCall) and event.outcome == "succeeded")]
    return any(_same_aim(facts_of(other, view), missed) for other in tries)


def _same_tool(failed: ToolCall, call: ToolCall) -> bool:
    return failed.tool_name == call.tool_name


def _same_aim(other: Facts, missed: Facts) -> bool:
    if _same_tool(missed.call, other.call):
        return True
    return bool(other.classes & missed.classes) and other.writes and missed.writes


def _shared(failed: ToolCall, call: ToolCall, view: View) -> list[str]:
    """Naming values of the failed call that the write uses as well."""
    before = {compact(str(line.value)) for line in _names(failed, view)}
    return [f"{line.path}={line.value}" for line in _names(call, view) if compact(str(line.value)) in before]


def _names(call: ToolCall, view: View) -> list[Lineage]:
    lines = [line for line in lineage(call, view) if line.role in _NAMING and line.role != "constant"]
    return [line for line in lines if len(compact(str(line.value))) >= 2]


def _needed(failed: ToolCall, call: ToolCall, view: View, params: Params) -> bool:
    """What the failed call would have made, or shown, is what the write stands on."""
    missed = facts_of(failed, view)
    if not missed.writes:
        return params.after_reads and failed.outcome == "failed"
    if not missed.classes:  # a verb nobody knows (`backup`): only before what can not be undone
        return view.effect(call).effect in ("destructive", "external_send")
    following = facts_of(call, view).classes
    if following & {"cancel", "delete"}:  # clears away what was half made
        return False
    return bool(missed.classes & _MAKES) or any(
        following & _LEADS_TO.get(label, frozenset()) for label in missed.classes
    )
