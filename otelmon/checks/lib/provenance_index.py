"""The values a conversation has seen, each with the first text that had it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import date
from decimal import Decimal
from typing import Any, Literal

import msgspec

from otelmon.checks.lib.id_runs import id_runs
from otelmon.checks.lib.values import (
    Days,
    Grouped,
    Numbers,
    Words,
    as_date,
    compact,
    days_of,
    decimal_text,
    grouped_of,
    numbers_of,
    plain_words_of,
    shift,
    to_decimal,
    words_of,
)
from otelmon.vocabulary.event import ToolDefinition

SourceKind = Literal[
    "user", "system", "context", "result", "argument", "schema", "proposal", "run", "composed", "tool_description"
]
MAX_VALUES = 200_000  # values remembered of one conversation; later ones count as seen (`full`)
MAX_SEARCHES = 200  # amounts of one conversation that are looked for as sums; later ones count as derived
MAX_RUNS = 200  # stated runs of ids that are looked at
MAX_AMOUNTS = 400  # amounts that sums are made of: the first ones seen


class Found(msgspec.Struct, frozen=True):
    """A source of a value: its kind, the event, what was done to the value, and if that is certain."""

    source: SourceKind | Literal["none"]
    position: int | None
    transformation: str = "verbatim"
    sure: bool = True


Place = tuple[SourceKind, int]


class _Text(msgspec.Struct, frozen=True):
    text: str
    place: Place
    except_values: tuple[Any, ...] = ()


class _Table:
    """A table of the index, filled when it is looked at: most conversations never ask for dates."""

    def __init__(self, group: str) -> None:
        self.group = group

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, index: Index, owner: type) -> dict[Any, Place]:
        index.catch_up(self.group)
        return index.tables[self.name]


class _Known:
    """Plain words, and behind them ids that were written in groups."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def __contains__(self, word: str) -> bool:
        return word in self._index.plain or word in self._index.grouped

    def __getitem__(self, word: str) -> Place:
        plain = self._index.plain
        return plain[word] if word in plain else self._index.grouped[word]

    def get(self, word: str) -> Place | None:
        """The first text that had the word, None when none had."""
        return self._index.plain.get(word) or self._index.grouped.get(word)

    def table(self) -> dict[str, Place]:
        """All words with the first text that had them, as plain ones where they are both."""
        return self._index.grouped | self._index.plain


class Index:
    """What was seen so far, in order: value -> the first text that had it. `learn` adds a text; the
    tables are read by `provenance_match`."""

    plain = _Table("words")
    bare = _Table("words")
    grouped = _Table("grouped")
    numbers = _Table("numbers")
    percents = _Table("numbers")
    dates = _Table("days")
    month_days = _Table("days")
    months = _Table("days")
    month_years = _Table("days")
    days = _Table("days")
    years = _Table("days")
    weekdays = _Table("days")
    relative = _Table("days")
    spans = _Table("days")

    def __init__(self) -> None:
        self.tables: dict[str, dict[Any, Place]] = {field: {} for fields in _GROUPS.values() for field in fields}
        self.amounts: list[Decimal] = []
        self.searches = MAX_SEARCHES
        self._texts: list[_Text] = []
        self._read: dict[str, int] = dict.fromkeys(_GROUPS, 0)
        self._described: list[ToolDefinition] = []
        self._known_tools: set[tuple[str, str]] = set()
        self._proposed: list[_Text] = []
        self._asides: dict[str, dict[str, Place]] = {"described": {}, "proposed": {}}
        self._pending: list[_Text] = []
        self._today: date | None = None
        self._today_read = 0
        self._runs: list[tuple[str, int, int, Place]] = []
        self._runs_read = 0

    @property
    def full(self) -> bool:
        """More values than are remembered: what is not found may still have been seen."""
        return len(self.tables["plain"]) > MAX_VALUES

    @property
    def words(self) -> _Known:
        """The words seen; groups of an id are read only when a plain word is not there."""
        return _Known(self)

    @property
    def today(self) -> date | None:
        """The current date that the instructions state, or that a tool was asked for."""
        while self._today is None and self._today_read < len(self._texts):
            item = self._texts[self._today_read]
            self._today_read += 1
            if item.place[0] == "system":
                self._today = stated_today(item.text)
            elif item.place[0] == "result":
                self._today = told_today(item.text)
        return self._today

    def run_with(self, prefix: str, number: int) -> Place | None:
        """The text that names the ends of a run of ids ("1001 to 1005") in which this one lies."""
        for item in self._texts[self._runs_read :]:
            if item.place[0] in _PEOPLE:
                self._runs.extend((*run, item.place) for run in id_runs(item.text))
        self._runs_read = len(self._texts)
        for before, first, last, place in self._runs[:MAX_RUNS]:
            if before in ("", prefix) and first <= number <= last:
                return place
        return None

    @property
    def described(self) -> dict[str, Place]:
        """What only tool descriptions had."""
        texts = [_Text(_described_text(tool), ("tool_description", tool.position)) for tool in self._described]
        self._described = []
        return self._aside("described", texts)

    @property
    def proposed(self) -> dict[str, Place]:
        """What the assistant proposed before the user answered."""
        texts, self._proposed = self._proposed, []
        return self._aside("proposed", texts)

    def _aside(self, name: str, texts: list[_Text]) -> dict[str, Place]:
        table = self._asides[name]
        for item in texts:
            for key in words_of(item.text).words | numbers_of(item.text).numbers | days_of(item.text).dates:
                table.setdefault(key, item.place)
        return table

    def learn(self, text: str, kind: SourceKind, position: int, except_values: Iterable[Any] = ()) -> None:
        """Add the values of a text. `except_values` are not taken from it (an echo)."""
        if text:
            self._texts.append(_Text(text, (kind, position), tuple(except_values)))

    def learn_definition(self, definition: ToolDefinition) -> None:
        """What a tool's description says is no source; it is remembered to say so."""
        known = definition.definition_hash or f"at {definition.position}"
        if (definition.name, known) not in self._known_tools:  # each run repeats what its agent has
            self._known_tools.add((definition.name, known))
            self._described.append(definition)

    def propose(self, text: str, position: int) -> None:
        """What the assistant says becomes a proposal once the user has answered it."""
        if text:
            self._pending = [*self._pending[-3:], _Text(text, ("proposal", position))]

    def confirm(self) -> None:
        """The user answered: what was proposed before is known to the user."""
        self._proposed.extend(self._pending)
        self._pending = []

    def catch_up(self, group: str) -> None:
        """Read the texts learned since a group of tables was last looked at."""
        while self._read[group] < len(self._texts):
            item = self._texts[self._read[group]]
            self._read[group] += 1
            if sum(len(self.tables[field]) for field in _GROUPS[group]) > MAX_VALUES:
                continue
            self._take(group, item)

    def _take(self, group: str, item: _Text) -> None:
        found = _READERS[group](item.text)
        echoes = {form for value in item.except_values for form in _forms(value)}
        for field in _GROUPS[group]:
            table = self.tables[field]
            new = getattr(found, _FIELDS.get(field, field)).difference(table)
            if echoes:
                new = {key for key in new if str(key) not in echoes}
            table.update(dict.fromkeys(new, item.place))
        if isinstance(found, Numbers):
            self._take_amounts(found.numbers - echoes)

    def _take_amounts(self, numbers: frozenset[str]) -> None:
        if len(self.amounts) >= MAX_AMOUNTS:
            return
        known = set(self.amounts)
        for text in sorted(numbers):
            number = Decimal(text)
            if number not in known and number > 1 and len(text) <= 12 and len(self.amounts) < MAX_AMOUNTS:
                known.add(number)
                self.amounts.append(number)


_GROUPS: dict[str, tuple[str, ...]] = {
    "words": ("plain", "bare"),
    "grouped": ("grouped",),
    "numbers": ("numbers", "percents"),
    "days": (
        "dates", "month_days", "months", "month_years", "days", "years", "weekdays", "relative", "spans",
    ),
}  # fmt: skip
_FIELDS = {"plain": "words"}  # tables that are called otherwise than what fills them
_READERS: dict[str, Callable[[str], Words | Grouped | Numbers | Days]] = {
    "words": plain_words_of,
    "grouped": grouped_of,
    "numbers": numbers_of,
    "days": days_of,
}


def _described_text(tool: ToolDefinition) -> str:
    if tool.input_schema is None:
        return tool.description
    return f"{tool.description} {msgspec.json.encode(tool.input_schema).decode('utf-8', 'replace')}"


def _forms(value: Any) -> set[str]:
    text = str(value)
    forms = {compact(text), text, *words_of(text).words, *days_of(text).dates}
    number = to_decimal(value)
    return forms | ({decimal_text(number)} if number is not None else set())


def stated_today(text: str) -> date | None:
    """The current date as a text states it: the first full date near a word for now."""
    folded = text.casefold()
    for marker in _NOW:
        start = folded.find(marker)
        while start >= 0:
            near = days_of(text[start : start + 90]).dates
            if near:
                return as_date(min(near))
            start = folded.find(marker, start + 1)
    return None


def told_today(text: str) -> date | None:
    """The current date as a tool answers it: a result that is nothing but a date, or one under a name for now."""
    if len(text) <= _ONLY_A_DATE:
        day = as_date(text.strip(" \"'\n"))
        if day is not None:
            return day
    found = _NOW_FIELD.search(text[:2_000])
    return as_date(found[1]) if found else None


_ONLY_A_DATE = 40  # characters of a result that is an instant and nothing else
_NOW_FIELD = re.compile(
    r"""["'](?:current_?(?:date|day|time|datetime)|today|now|fecha_actual|hoy|heute)["']\s*:\s*["'](\d{4}-\d{2}-\d{2})""",
    re.IGNORECASE,
)
_PEOPLE: frozenset[SourceKind] = frozenset(("user", "system", "context"))
_NOW = (
    "current date", "current time", "today", "date:", "now is", "it is now", "fecha actual", "hora actual", "hoy",
    "heute", "aktuelle", "current day", "as of",
)  # fmt: skip


def nearby(day: date, days: Iterable[int]) -> set[str]:
    """ISO text of the days at these offsets."""
    return {moved.isoformat() for moved in (shift(day, offset) for offset in days) if moved}
