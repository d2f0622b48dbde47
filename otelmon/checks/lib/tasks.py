"""Work that runs on after the call that started it: which is open, and which message calls it done."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files

from otelmon.checks.lib.claims import Claim, read_message, sentences
from otelmon.checks.lib.claims_language import GENERIC, base_classes, language_of
from otelmon.checks.lib.claims_match import alike, can_cause, facts_of, rivals_of
from otelmon.checks.lib.polling import is_pending
from otelmon.checks.lib.values import compact, fold, runs, words_of
from otelmon.checks.lib.verbs import name_words
from otelmon.checks.view import View
from otelmon.vocabulary.event import AssistantMessage, ContextMessage, ToolCall, UserMessage

MAX_CALLS = 200  # calls before a message that are looked at: the latest ones
_MAX_TEXT = 20_000


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    data = tomllib.loads((files("otelmon.checks") / "data" / "tasks.toml").read_text("utf-8"))
    return {name: re.compile("|".join(data[name])) for name in ("ended", "going_on", "open_ended")}


@cache
def _accepted() -> frozenset[str]:
    data = tomllib.loads((files("otelmon.checks") / "data" / "tasks.toml").read_text("utf-8"))
    return frozenset(data["accepted"].split())


def open_tasks(message: AssistantMessage, view: View) -> list[ToolCall]:
    """The calls before a message that started work (or last looked at it) whose end nothing has shown."""
    before = [call for call in view.calls if call.position < message.position][-MAX_CALLS:]
    found = []
    for place, call in enumerate(before):
        if call.outcome == "pending" and not _ended(call, before[place + 1 :], message, view):
            found.append(call)
    return found


def _ended(task: ToolCall, later: Sequence[ToolCall], message: AssistantMessage, view: View) -> bool:
    """A later call about the task came back without saying that it runs on, or somebody else told of its end."""
    handles = _handles(task)
    things = _things(task)
    about = [c for c in later if c.outcome not in ("failed", "denied", "unknown") and _is_about(c, handles, things)]
    if about and not is_pending(about[-1]):
        return True
    told = view.events[task.position + 1 : message.position]
    return any(isinstance(e, (UserMessage, ContextMessage)) and _tells_of_end(e.text) for e in told)


def _handles(task: ToolCall) -> set[str]:
    """What the task may be asked for by: words of its result, and of what was sent, that look like ids."""
    words = words_of((task.result_text or "")[:_MAX_TEXT]).words
    return {compact(word) for word in words if any(c.isdigit() for c in word) and len(word) > 2}


def _things(task: ToolCall) -> set[str]:
    return {word for word in name_words(task.tool_name) if word not in base_classes() and len(word) > 2}


def _is_about(call: ToolCall, handles: set[str], things: set[str]) -> bool:
    sent = words_of(str(call.arguments)[:_MAX_TEXT]).words
    came = words_of((call.result_text or "")[:_MAX_TEXT]).words
    return bool(handles & (sent | came)) or bool(things & set(name_words(call.tool_name)))


def _tells_of_end(text: str) -> bool:
    return any(_states_end(sentence) for _, sentence in _sentences(text)) or bool(read_message(text).claims)


def _sentences(text: str) -> Iterator[tuple[str, str]]:
    return sentences(fold(text).replace("’", "'"), language_of(text))


def _states_end(sentence: str) -> bool:
    return bool(_patterns()["ended"].search(sentence)) and not _patterns()["open_ended"].search(sentence)


def called_done(task: ToolCall, message: AssistantMessage, view: View) -> str:
    """The sentence of a message that calls the task done, "" when none does or it says that the work goes on."""
    if _patterns()["going_on"].search(fold(message.text)):
        return ""
    reading = read_message(message.text)
    rests_here = task.turn == _turn(message, view)
    for claim in reading.claims:
        if _claims_end(claim, task, rests_here, message, view):
            return claim.sentence
    for raw, sentence in _sentences(message.text):
        if _states_end(sentence) and (rests_here or _names(sentence, task)):
            return raw
    return ""


def _turn(message: AssistantMessage, view: View) -> int:
    said = view.latest_user_message(message)
    return said.turn if said else 0


def _claims_end(claim: Claim, task: ToolCall, here: bool, message: AssistantMessage, view: View) -> bool:
    if claim.denies or claim.reported or claim.form == "past" or _is_accepted(claim, task):
        return False
    facts = facts_of(task, view)
    if GENERIC in claim.classes:
        return (here and not claim.nouns) or _names(claim.sentence, task)
    return bool(claim.classes & facts.classes) and can_cause(
        facts, claim, rivals_of(claim, claim.nouns, view, message.run_id)
    )


def _is_accepted(claim: Claim, task: ToolCall) -> bool:
    """ "I created the export": a call that was only accepted did that."""
    return any(word in _accepted() and word[:4] == claim.verb[:4] for word in name_words(task.tool_name))


def _names(sentence: str, task: ToolCall) -> bool:
    """True when a sentence speaks of the task's thing, or of a value it was sent."""
    said = [word for word in runs(fold(sentence)) if len(word) > 2]
    things = name_words(task.tool_name)
    sent = words_of(str(task.arguments)[:_MAX_TEXT]).words
    return any(alike(word, thing) for word in said for thing in things if len(thing) > 3) or any(
        word in sent for word in said if any(c.isdigit() for c in word)
    )
