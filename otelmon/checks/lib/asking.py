"""What the user asked for, seen from a call: how often, and whether again since an earlier one."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from otelmon.checks.lib.state import plain_value
from otelmon.checks.lib.verbs import action_words, name_words
from otelmon.checks.lib.wording import agrees, asked_count, is_status_question, only_thanks, plain, says
from otelmon.vocabulary.event import AssistantMessage, ToolCall, UserMessage

if TYPE_CHECKING:
    from otelmon.checks.view import View

_MAX_TEXT = 20_000
_KINDS = ("deletion", "cancellation", "payment")


def user_messages_between(first: ToolCall | None, second: ToolCall, view: View) -> list[UserMessage]:
    """What the user said after the first call (or from the beginning) and before the second."""
    since = first.position if first else -1
    return [m for m in view.user_messages() if since < m.position < second.position]


def request_text(call: ToolCall, view: View) -> str:
    """The user's latest words before the call; "" when there are none."""
    latest = view.latest_user_message(call)
    return latest.text if latest else ""


def times_asked(messages: list[UserMessage], call: ToolCall, view: View) -> int:
    """How many times these messages ask for the effect of the call, at least 1. A number may stand in an
    earlier message than the last ("two rooms", then "yes"); "another" counts only in the last."""
    arguments = view.business_arguments(call)
    count = max((asked_count(m.text, call.tool_name, arguments) for m in messages), default=1)
    return 2 if count == 1 and messages and says("more", messages[-1].text) else count


def asked_again(first: ToolCall, second: ToolCall, view: View) -> bool:
    """True when a message between the two calls asks for the effect once more: in such words, by its
    own name or values, or by a yes to a proposal of it. Thanks and status questions ask for nothing."""
    for message in user_messages_between(first, second, view):
        text = message.text
        if _only_repeated(message, first, view):
            continue
        if says("again", text) or says("more", text):
            return True
        if is_status_question(text) or only_thanks(text):
            continue
        if names_call(text, second, view):
            return True
        if agrees(text) and names_call(proposal_before(message, view), second, view):
            return True
    return False


def _only_repeated(message: UserMessage, first: ToolCall, view: View) -> bool:
    """True when the runtime put the same request before the model once more: the words of the first call's
    turn, and nobody had answered them."""
    if message.text != request_text(first, view):
        return False
    between = view.events[first.position + 1 : message.position]
    return not any(isinstance(e, AssistantMessage) and e.text.strip() and not e.requests for e in between)


def proposal_before(message: UserMessage, view: View) -> str:
    """What the assistant said since the user's previous message: what a yes answers."""
    said: list[str] = []
    for event in reversed(view.before(message)):
        if isinstance(event, UserMessage):
            break
        if isinstance(event, AssistantMessage):
            said.append(event.text)
    return "\n".join(reversed(said))


def names_values(text: str, call: ToolCall, view: View) -> bool:
    """True when the text names a value that identifies what the call is about."""
    return any(_names(text, value) for value in view.identifying_values(call))


def names_action(text: str, call: ToolCall) -> bool:
    """True when the text has the verb of the tool's name, or one of its kind in another language."""
    said = _beginnings(text[:_MAX_TEXT])
    if any(w[:5] in said for w in action_words(call.tool_name) if len(w) > 2):
        return True
    return any(says(f"confirmation.{kind}", text) for kind in _kinds_of_name(call.tool_name))


@lru_cache(maxsize=1024)
def _kinds_of_name(name: str) -> tuple[str, ...]:
    spoken = " ".join(name_words(name))
    return tuple(kind for kind in _KINDS if says(f"confirmation.{kind}", spoken))


@lru_cache(maxsize=256)
def _beginnings(text: str) -> frozenset[str]:
    """The first five letters of every word: `cancellation` names the action of `cancel_order`."""
    return frozenset(word[:5] for word in re.findall(r"[^\W_]+", plain(text)))


def names_call(text: str, call: ToolCall, view: View) -> bool:
    """True when the text names the call's values, or any word of its name when it has no such values."""
    if view.identifying_values(call):
        return names_values(text, call, view)
    said = _beginnings(text[:_MAX_TEXT])
    return any(w[:5] in said for w in name_words(call.tool_name) if len(w) > 2)


def _names(text: str, value: str) -> bool:
    wanted = plain_value(value)
    if len(wanted) > 3:
        return wanted in plain_value(plain(text)) or _last_part(wanted) in name_tokens(text)
    return wanted in name_tokens(text)


def _last_part(value: str) -> str:
    """Of a path the last name: people say `a1` for `/archive/a1`."""
    return value.rstrip("/").rpartition("/")[2] if "/" in value else "\0"


def name_tokens(text: str) -> set[str]:
    """The words of a text without the punctuation around them."""
    return {w.strip("\"'`.,;:!?()[]{}#") for w in plain(text).split()}
