"""Values that an agent makes up after an error: they are in nothing that it has read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from otelmon.checks.lib.provenance_roles import leaves
from otelmon.checks.lib.sameness import is_volatile
from otelmon.checks.lib.values import compact
from otelmon.checks.lib.verbs import name_words, words
from otelmon.checks.view import View
from otelmon.vocabulary.event import AssistantMessage, ContextMessage, SystemMessage, ToolCall, UserMessage

# Arguments that hold a question or a program: writing another one is no guess at a value.
_COMPOSED = words(
    """query q search text pattern regex glob keyword keywords term terms sql command cmd code script expression formula
    content body message note thought filter prompt description title input url"""
)
_PLAIN = re.compile(r"^[^\s*?^$|\\()\[\]{}<>]{1,40}$")
_MAX_TEXT, _MAX_EVENTS, _MAX_VALUES, _DIGITS = 200_000, 400, 8, 4


def guessed_values(last: ToolCall, call: ToolCall, view: View) -> list[str]:
    """The paths of the arguments that differ from the last call's and hold a value found nowhere; none when
    any changed value has a source, or when something else was changed as well."""
    if not isinstance(last.arguments, dict) or not isinstance(call.arguments, dict):
        return []
    if not _same_fields(last.arguments, call.arguments):
        return []
    before = {path: value for path, _, value in leaves(last.arguments)}
    changed = [(path, name, value) for path, name, value in leaves(call.arguments) if before.get(path) != value]
    if not 0 < len(changed) <= _MAX_VALUES or any(not _could_be_guess(name, value) for _, name, value in changed):
        return []
    if any(_reformatted(before.get(path), value) for path, _, value in changed):
        return []
    known = "\n".join(_texts_before(call, view)).lower()
    if any(_stands_in(str(value).lower(), known) for _, _, value in changed):
        return []
    return [path for path, _, _ in changed]


def _same_fields(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return {k for k in one if not is_volatile(k)} == {k for k in other if not is_volatile(k)}


def _could_be_guess(name: str, value: Any) -> bool:
    if isinstance(value, bool) or value is None or _COMPOSED & set(name_words(name)):
        return False
    return bool(_PLAIN.match(str(value)))


def _reformatted(before: Any, value: Any) -> bool:
    """True when the value is the one before in another notation."""
    one, two = compact(str(before)), compact(str(value))
    if one in two or two in one:
        return True
    digits = ["".join(c for c in text if c.isdigit()) for text in (one, two)]
    return min(map(len, digits)) >= _DIGITS and (digits[0] in digits[1] or digits[1] in digits[0])


def _stands_in(value: str, text: str) -> bool:
    found = text.find(value)
    while found >= 0:
        end = found + len(value)
        if not text[found - 1 : found].isalnum() and not text[end : end + 1].isalnum():
            return True
        found = text.find(value, found + 1)
    return False


def _texts_before(call: ToolCall, view: View) -> Iterator[str]:
    """What the agent has read, the newest first, bounded; and the schema of the tool."""
    tool = view.tool(call)
    if tool is not None:
        yield tool.description
        yield _json(tool.input_schema)
    left = _MAX_TEXT
    for event in reversed(view.before(call)[-_MAX_EVENTS:]):
        text = _text_of(event)
        yield text[:left]
        left -= len(text)
        if left <= 0:
            return


def _text_of(event: object) -> str:
    match event:
        case UserMessage() | SystemMessage() | ContextMessage():
            return event.text
        case ToolCall():
            return "\n".join((event.result_text or _json(event.result), event.error_message or ""))
        case AssistantMessage():
            return ""
    return ""


def _json(value: Any) -> str:
    return "" if value is None else msgspec.json.encode(value).decode("utf-8", "replace")
