"""What happened to a record between two calls: writes that changed it, reads that looked at it."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from otelmon.checks.lib.identity import identifying_values
from otelmon.checks.lib.verbs import classify_name, name_words, words
from otelmon.vocabulary.event import ToolCall

if TYPE_CHECKING:
    from otelmon.checks.view import View

_WORD = re.compile(r"[\w./:@-]{3,}")
_MAX_TEXT = 200_000
# Words of commands and queries that name no record.
_GRAMMAR = words("""select insert into update delete from where set values and or not null drop table create alter the echo sudo
    cat rm mv cp git push commit curl http https join left right inner order group limit key primary if exists""")


def plain_value(value: str) -> str:
    """A value without case, blanks and leading marks: `#W123` and `w123` are one."""
    return re.sub(r"[\s#]+", "", value).lower()


def record_values(call: ToolCall, view: View) -> frozenset[str]:
    """The values that say which records a call is about."""
    values = {plain_value(v) for v in view.identifying_values(call)}
    if view.effect(call).source == "call":  # a command or a query: the words of its text
        values |= _text_words(call.arguments)
    return frozenset(values)


def _text_words(arguments: Any) -> set[str]:
    texts = [v for v in arguments.values() if isinstance(v, str)] if isinstance(arguments, dict) else []
    found = {w.strip(".:").lower() for text in texts for w in _WORD.findall(text[:_MAX_TEXT])}
    return found - _GRAMMAR


def _result_values(call: ToolCall) -> set[str]:
    return {plain_value(v) for v in identifying_values(call.result)}


def _argument_values(call: ToolCall) -> set[str]:
    """Every scalar of the arguments: an id handed to another tool may have any name there."""
    found: set[str] = set()
    stack: list[Any] = [call.arguments]
    while stack and len(found) < 500:
        value = stack.pop()
        if isinstance(value, dict):
            stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value[:50])
        elif value is not None and not isinstance(value, bool):
            found.add(plain_value(str(value)))
    return found | _text_words(call.arguments)


def calls_between(first: ToolCall, second: ToolCall, view: View) -> Iterator[ToolCall]:
    """Calls after the first and before the second, oldest first."""
    after = bisect_right(view.calls, first.position, key=lambda c: c.position)
    until = bisect_left(view.calls, second.position, key=lambda c: c.position)
    return iter(view.calls[after:until])


def state_changed_between(first: ToolCall, second: ToolCall, view: View) -> bool:
    """True when another successful write touched the same record in between, or undid the first."""
    about = record_values(first, view) | _result_values(first)
    return any(_changes(call, first, about, view) for call in calls_between(first, second, view))


def undone_before(call: ToolCall, view: View) -> bool:
    """True when this conversation removed or cancelled something of the call's record before it."""
    earlier = [c for c in view.removals if c.position < call.position]
    about = record_values(call, view) if earlier else frozenset()
    return any(_changes(c, call, about, view) for c in earlier)


def _changes(call: ToolCall, repeated: ToolCall, about: frozenset[str] | set[str], view: View) -> bool:
    effect = view.effect(call)
    if call.outcome != "succeeded" or effect.effect not in ("write", "destructive"):
        return False
    if call.tool_name == repeated.tool_name and effect.source != "call":
        return False
    if view.effect_key(call) == view.effect_key(repeated):
        return False
    if not view.removes(call) and view.times_written(call) > 1:
        return False  # a replayed sequence: it repeats as well
    return bool(about & _argument_values(call))


def read_between(first: ToolCall, second: ToolCall, view: View) -> bool:
    """True when a successful read looked at the record of the first call before the second was sent."""
    about = record_values(first, view)
    things = _things(first.tool_name)
    return any(_looks_at(call, about, things, view) for call in calls_between(first, second, view))


def _looks_at(call: ToolCall, about: frozenset[str], things: set[str], view: View) -> bool:
    if view.effect(call).effect != "read" or call.outcome != "succeeded":
        return False
    if about & _argument_values(call) or things & _things(call.tool_name):
        return True
    text = plain_value((call.result_text or str(call.result or ""))[:_MAX_TEXT])
    return any(value in text for value in about if len(value) > 3)


def _things(tool_name: str) -> set[str]:
    """The nouns of a tool's name, singular: `create_payout` and `list_payouts` share one."""
    name = name_words(tool_name)
    nouns = name[1:] if len(name) > 1 else name
    return {w.removesuffix("s") for w in nouns if classify_name(w).effect != "read" and len(w) > 2}
