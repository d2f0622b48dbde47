"""Which calls must come before a call: what the operator's policy, the tools' descriptions and the
instructions to the agent say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from otelmon.checks.lib.identity import identifying_values
from otelmon.checks.lib.policy import policies_for
from otelmon.checks.lib.verbs import classify_name, name_words
from otelmon.checks.view import View
from otelmon.vocabulary.catalogue import Policy, Tool
from otelmon.vocabulary.event import ToolCall

_MAX_TEXT, _MAX_TOOLS = 20_000, 500
_SENTENCE = re.compile(r"[^.!?;\n]{8,400}")
_TOKEN = re.compile(r"[`'\"]?([A-Za-z][\w-]{2,80})[`'\"]?")
_CONDITION = re.compile(
    r"\b(unless|if|when|whenever|optional(ly)?|may|might|can|could|recommended|not (required|necessary|needed)|example"
    r"|returned|retrieved|obtained|provided|from|outputs?|results?)\b"
)
_NEGATED = re.compile(r"\b(never|not|don't|cannot|without)\b")
_SENT = re.compile(
    r"\b(call(ed|ing)?|us(e|ed|ing)|run(ning)?|invok(e|ed|ing)|execut(e|ed|ing)|require[sd]?|must|always|only)\b"
)
_BEFORE = re.compile(r"\b(before|prior to|ahead of)\b")
_AFTER = re.compile(r"\bafter\b")
_FIRST = re.compile(r"\b(first|beforehand|before)\b")
_WORD = re.compile(r"[a-z]+")
_STEM = 5
_NEEDS = re.compile(r"\b(requires?|needs?|depends on|only after|must (be called|run|be used) after|prerequisite)\b")


class Required(msgspec.Struct, frozen=True):
    """A call that must come before. `tool` is a name, or a glob of a policy; `policy` the operator's entry,
    None when the words of `text` say it."""

    tool: str
    policy: Policy | None = None
    text: str = ""


_REMEMBERED: WeakKeyDictionary[View, dict[str, dict[str, tuple[Required, ...]]]] = WeakKeyDictionary()


def required_by_policy(call: ToolCall, view: View) -> Iterator[Required]:
    """What the operator's policies of the action "after" ask for."""
    for policy in policies_for(view, call, "after"):
        for tool in policy.calls:
            yield Required(tool, policy, policy.reason)


def required_by_text(call: ToolCall, view: View) -> tuple[Required, ...]:
    """What descriptions and instructions say must be called before this tool."""
    known = _REMEMBERED.setdefault(view, {})
    if call.run_id not in known:
        tools = view.tools_in_force(call.run_id).tools
        known[call.run_id] = _read_all(tools, view) if 1 < len(tools) <= _MAX_TOOLS else {}
    return known[call.run_id].get(call.tool_name, ())


def _read_all(tools: dict[str, tuple[Tool, ...]], view: View) -> dict[str, tuple[Required, ...]]:
    found: dict[str, dict[str, Required]] = {}
    texts = [(name, tool.description) for name, same in tools.items() for tool in same]
    texts += [("", message.text) for message in view.system_messages]
    names = tuple(tools)
    for subject, text in texts:
        for later, required in _read(subject, text[:_MAX_TEXT], names):
            found.setdefault(later, {}).setdefault(required.tool, required)
    return {later: tuple(each.values()) for later, each in found.items()}


@lru_cache(maxsize=512)  # an agent's instructions and tools are the same in all its conversations
def _read(subject: str, text: str, tools: tuple[str, ...]) -> tuple[tuple[str, Required], ...]:
    return tuple(_sentences(subject, text, frozenset(tools), tools))


def _sentences(
    subject: str, text: str, known: frozenset[str], tools: tuple[str, ...]
) -> Iterator[tuple[str, Required]]:
    """(tool, what must come before it) for each sentence that says so. `subject` is the described tool."""
    for sentence in _SENTENCE.findall(text):
        plain = sentence.lower()
        if not _SENT.search(plain) or _CONDITION.search(plain):
            continue
        named = _named(sentence, known)
        if not named:
            continue
        pair = _pair(plain, named, subject)
        if pair and pair[0] != pair[1]:
            yield pair[1], Required(pair[0], None, sentence.strip())
        elif not subject and len({name for _, name in named}) == 1:
            for later in _in_words(plain, named[0], tools):
                yield later, Required(named[0][1], None, sentence.strip())


def _named(sentence: str, tools: frozenset[str]) -> list[tuple[int, str]]:
    """(place, name) of the known tools a sentence names. A name that is a plain word must be quoted."""
    found = []
    for token in _TOKEN.finditer(sentence):
        name = token.group(1)
        marked = token.group()[0] in "`'\"" or "_" in name or "-" in name or not name.islower()
        if marked and name in tools:
            found.append((token.start(), name))
    return found


def _pair(plain: str, named: Sequence[tuple[int, str]], subject: str) -> tuple[str, str] | None:
    """(earlier, later) as a sentence orders them, or None."""
    others = [(place, name) for place, name in named if name != subject]
    if len({name for _, name in named}) == 2 and not (subject and len(others) < len(named)):
        return None if subject else _between_two(plain, named)
    if not subject or len({name for _, name in others}) != 1:
        return None
    if _NEGATED.search(plain) and not re.search(r"\bwithout\b|\buntil\b", plain):
        return None
    if _NEEDS.search(plain) or _FIRST.search(plain) or re.search(r"\bwithout\b", plain):
        return others[0][1], subject
    return None


def _in_words(plain: str, named: tuple[int, str], tools: Iterable[str]) -> Iterator[str]:
    """The writing tools that `call get_ticket before updating a ticket` speaks of."""
    place, earlier = named
    found = _BEFORE.search(plain, place)
    if not found or _NEGATED.search(plain):
        return
    after = {w[:_STEM] for w in _WORD.findall(plain[found.end() :])}
    anywhere = {w[:_STEM] for w in _WORD.findall(plain)}
    for tool in tools:
        verb, *things = name_words(tool)
        if tool == earlier or not things or classify_name(tool).effect in ("read", "unknown"):
            continue
        if verb[:_STEM] in after and all(w[:_STEM] in anywhere for w in things):
            yield tool


def _between_two(plain: str, named: Sequence[tuple[int, str]]) -> tuple[str, str] | None:
    (place, one), (_, other) = named[0], named[-1]
    if one == other:
        return None
    between = plain[place : named[-1][0]]
    negated = bool(_NEGATED.search(plain))
    if re.search(r"\bwithout\b", between):
        return other, one
    if _BEFORE.search(between):
        return (other, one) if negated else (one, other)
    if _AFTER.search(between) and not negated and re.search(r"\b(only|must|always)\b", plain):
        return other, one
    return None


class _Worked:
    """When the calls that worked had ended, first of all: by tool and the names of their record arguments,
    and by tool, argument and value."""

    def __init__(self, view: View) -> None:
        self.by_names: dict[str, dict[frozenset[str], int]] = {}
        self.by_value: dict[tuple[str, str, str], int] = {}
        for call in view.calls:
            if call.outcome not in ("succeeded", "pending"):
                continue
            naming = _naming(call)
            _earliest(self.by_names.setdefault(call.tool_name, {}), frozenset(naming), call.end_time_unix_nano)
            for name, values in naming.items():
                for value in values:
                    _earliest(self.by_value, (call.tool_name, name, value), call.end_time_unix_nano)

    def before(self, tool: str, instant: int, mine: dict[str, frozenset[str]]) -> bool:
        """True when a call of the tool had ended by then that names none of the arguments, or an equal value."""
        if any(end <= instant and mine.keys().isdisjoint(names) for names, end in self.by_names[tool].items()):
            return True
        return any(
            self.by_value.get((tool, name, value), instant + 1) <= instant
            for name, values in mine.items()
            for value in values
        )


def _earliest(table: dict[Any, int], key: Any, end: int) -> None:
    table[key] = min(end, table.get(key, end))


_WORKED: WeakKeyDictionary[View, _Worked] = WeakKeyDictionary()


def came_before(call: ToolCall, required: Required, view: View, same_record: bool) -> bool:
    """True when a required call worked before this one began. With `same_record` a required call that
    names another record in an argument of the same name does not count."""
    worked = _WORKED.get(view)
    if worked is None:
        worked = _WORKED[view] = _Worked(view)
    mine = _naming(call) if same_record else {}
    return any(
        fnmatchcase(tool, required.tool) and worked.before(tool, call.start_time_unix_nano, mine)
        for tool in worked.by_names
    )


def _naming(call: ToolCall) -> dict[str, frozenset[str]]:
    """The arguments that name a record, by name."""
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    named = ((str(name), frozenset(identifying_values({name: value}))) for name, value in arguments.items())
    return {name: values for name, values in named if values}
