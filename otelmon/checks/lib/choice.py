"""Which of several records a write was about, and which one the user's words fit. Words: data/choice.toml."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from otelmon.checks.lib.provenance_roles import leaves, role_of, schema_at
from otelmon.checks.lib.records import Record, data_of, lists_of, scalars
from otelmon.checks.lib.sameness import plain_name
from otelmon.checks.lib.values import any_date, compact, days_of, decimal_text, fold, numbers_of, to_decimal
from otelmon.checks.lib.verbs import words
from otelmon.checks.view import View
from otelmon.vocabulary.event import AssistantMessage, ContextMessage, SystemMessage, ToolCall, UserMessage

MAX_CHOICES = 100  # records of one list that are compared; a longer list is no choice
MAX_LISTED = 20_000  # records of one conversation that are remembered
_MESSAGES = 4  # the user's latest messages in which a description is looked for
_SOURCES = (UserMessage, SystemMessage, ContextMessage)
_WORD = re.compile(r"[^\W_]{3,}")
MAX_HEARD = 200_000  # values that were said in one conversation; later ones count as not said
_UNANSWERED = 7  # messages of the agent in a row that an answer is to, beside the last
_COMPARED = 50  # calls about one value that are looked at: the latest
_TEXT = 4_000  # characters of a message, and of a field, that are read for words


class Choice:
    """A list that a call gave back, and what is in it."""

    def __init__(self, call: ToolCall, records: Sequence[Record]) -> None:
        self.call = call
        self.records = tuple(records)

    @cached_property
    def tokens(self) -> tuple[frozenset[str], ...]:
        """What each record can be called by, and not every other: in the forms of `description`."""
        found = [tokens_of(record) for record in self.records]
        common = frozenset.intersection(*found)
        return tuple(tokens - common for tokens in found)

    def place(self, value: str) -> int | None:
        """The record that has this as one of its naming values."""
        body = compact(value)
        return next((n for n, r in enumerate(self.records) if any(compact(v) == body for _, v in r.ids)), None)


class Target(msgspec.Struct, frozen=True):
    """A naming argument of a write: where it stands, its name, and its value."""

    path: str
    name: str
    value: str


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads((files("otelmon.checks") / "data" / "choice.toml").read_text("utf-8"))


@cache
def _patterns(kind: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern) for pattern in _data()[kind])


@cache
def listed(kind: str) -> frozenset[str]:
    """The names or words of a kind."""
    return words(_data()[kind])


def says(kind: str, folded: str) -> bool:
    """True when a folded text has a wording of the kind."""
    return any(pattern.search(folded) for pattern in _patterns(kind))


def targets(call: ToolCall, view: View) -> Iterator[Target]:
    """The arguments of a write that name records."""
    tool = view.tool(call)
    schema = tool.input_schema if tool else None
    for path, name, value in leaves(call.arguments):
        if isinstance(value, str | int) and not isinstance(value, bool):
            role = role_of(name, value, schema_at(schema, path))
            if role in ("id", "code", "email"):
                yield Target(path, name, str(value))


# -- the lists of a conversation ----------------------------------------------------------------------
class _Lists:
    """Every list of records of a conversation, where each naming value stands, and which calls are about it."""

    def __init__(self, view: View) -> None:
        self.choices: list[Choice] = []
        self.by_value: dict[str, list[int]] = {}
        self.about: dict[str, list[ToolCall]] = {}
        self.left = MAX_LISTED
        for call in view.calls:
            for body in {compact(str(v)) for _, _, v in scalars(call.arguments)}:
                self.about.setdefault(body, []).append(call)
            if call.outcome == "succeeded" and self.left > 0 and not view.writes(call):
                self._read(call)
        self.heard = _heard(view)

    def _read(self, call: ToolCall) -> None:
        for records in lists_of(data_of(call)):
            distinct = _distinct(records)
            self.left -= len(distinct)
            if 1 < len(distinct) <= MAX_CHOICES:
                self._add(call, distinct)

    def _add(self, call: ToolCall, records: Sequence[Record]) -> None:
        number = len(self.choices)
        self.choices.append(Choice(call, records))
        for value in {compact(v) for r in records for _, v in r.ids}:
            self.by_value.setdefault(value, []).append(number)


def _heard(view: View) -> dict[str, int]:
    """Where the user, or the instructions, had a value first; the agent's own message counts from the answer on."""
    found: dict[str, int] = {}
    waiting: list[str] = []
    for event in view.events:
        if len(found) >= MAX_HEARD:
            break
        if isinstance(event, AssistantMessage):
            waiting = [*waiting[-_UNANSWERED:], event.text]
        elif isinstance(event, _SOURCES):
            texts = [*waiting, event.text] if isinstance(event, UserMessage) else [event.text]
            waiting = [] if isinstance(event, UserMessage) else waiting
            for body in {body for text in texts for body in _bodies(text)}:
                found.setdefault(body, event.position)
    return found


_REMEMBERED: WeakKeyDictionary[View, _Lists] = WeakKeyDictionary()


def _known(view: View) -> _Lists:
    known = _REMEMBERED.get(view)
    if known is None:
        known = _REMEMBERED[view] = _Lists(view)
    return known


def choices(value: str, call: ToolCall, view: View) -> Iterator[Choice]:
    """The lists before a call in which a value names a record, the latest first, at most 8."""
    known = _known(view)
    numbers = known.by_value.get(compact(value), [])
    until = bisect_left(numbers, call.position, key=lambda n: known.choices[n].call.position)
    for number in numbers[max(0, until - 8) : until][::-1]:
        yield known.choices[number]


def _distinct(records: Sequence[Record]) -> list[Record]:
    found: dict[object, Record] = {}
    for record in records:
        if record.ids:
            found.setdefault(compact(record.ids[0][1]), record)
    return list(found.values())


def tokens_of(record: Record) -> frozenset[str]:
    """What a record can be called by: words, days (`day:05-03`) and numbers (`no:120`)."""
    found: set[str] = set()
    for _, _, value in record.fields:
        if isinstance(value, bool):
            continue
        text = str(value)[:_TEXT]
        days = any_date(text) if len(text) <= 60 else frozenset()
        found.update(f"day:{day[5:]}" for day in days)
        number = to_decimal(value)
        if number is not None and len(decimal_text(abs(number)).replace(".", "")) > 2:
            found.add(f"no:{decimal_text(abs(number))}")
        if not days:
            found.update(w for w in _WORD.findall(fold(text)) if not w.isdigit())
        found.add(compact(text))
    for _, value in record.ids:
        found.add(compact(value))
    return frozenset(found)


# -- what the user said --------------------------------------------------------------------------------
def requests(call: ToolCall, view: View) -> list[UserMessage]:
    """The user's latest messages before a call, the latest first."""
    said = [m for m in view.user_messages() if m.position < call.position]
    return said[: -_MESSAGES - 1 : -1]


@lru_cache(maxsize=512)
def description(text: str) -> frozenset[str]:
    """What a text can describe a record by, in the forms of `tokens_of`."""
    folded = fold(text[:_TEXT])
    days = days_of(text[:_TEXT])
    found = {w for w in _WORD.findall(folded) if not w.isdigit() and w not in listed("plain")}
    found |= {f"day:{day}" for day in days.month_days} | {f"day:{day[5:]}" for day in days.dates}
    found |= {f"no:{n}" for n in numbers_of(text[:_TEXT]).numbers if len(n.replace(".", "")) >= 3}
    chunks = (chunk.strip(".:") for chunk in re.split(r"[\s,;!?\"'()]+", text[:_TEXT]))
    found |= {compact(chunk) for chunk in chunks if any(c.isdigit() or c in "._@/" for c in chunk)}
    return frozenset(found)


def known_to_user(value: str, call: ToolCall, view: View) -> bool:
    """The user or the instructions named the value before the call, or the user answered a message that did."""
    return _known(view).heard.get(compact(value), call.position) < call.position


@lru_cache(maxsize=1024)
def _bodies(text: str) -> frozenset[str]:
    pieces = re.split(r"[\s,;!?\"'()\[\]{}<>*`|]+", text[:200_000])
    return frozenset(body for piece in pieces for body in (compact(piece), compact(piece.removesuffix("'s"))) if body)


def names(body: str, text: str) -> bool:
    """True when a piece of the text is this value in compact form."""
    return body in _bodies(text)


def about(value: str, view: View) -> list[ToolCall]:
    """The calls that have a value among their arguments, in order."""
    return _known(view).about.get(compact(value), [])


def looked_at_since(choice: Choice, call: ToolCall, view: View) -> bool:
    """True when a read about one record of the list came between the list and the write."""
    ids = {v for r in choice.records for _, v in r.ids}
    return any(
        choice.call.position < read.position < call.position and not view.writes(read)
        for value in ids
        for read in about(value, view)[-_COMPARED:]
    )


def written_too(values: set[str], call: ToolCall, view: View) -> bool:
    """True when another write of the run is about one of these values."""
    return any(
        o.key != call.key and o.run_id == call.run_id and o.outcome not in ("failed", "denied") and view.writes(o)
        for value in values
        for o in about(value, view)[-_COMPARED:]
    )


def is_undecided(choice: Choice) -> bool:
    """True when the result itself says that it could not tell which one is meant."""
    result = choice.call.result
    if isinstance(result, dict):
        flags = {plain_name(str(k)): v for k, v in result.items()}
        if any(flags.get(name) not in (None, False, "", []) for name in listed("undecided_fields")):
            return True
        notes = " ".join(v for v in result.values() if isinstance(v, str))[:_TEXT]
        return says("undecided", fold(notes))
    return isinstance(choice.call.result_text, str) and says("undecided", fold(choice.call.result_text[:500]))


def policy_says(view: View) -> bool:
    """True when the instructions say which one to take."""
    return any(says("policy", fold(m.text[:100_000])) for m in view.system_messages[:20])
