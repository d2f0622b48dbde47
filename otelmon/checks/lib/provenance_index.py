"""The values a conversation has seen, each with the first text that had it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from typing import Any, Literal

import msgspec

from otelmon.checks.lib.values import Atoms, as_date, atoms, compact, decimal_text, shift, to_decimal
from otelmon.vocabulary.event import ToolDefinition

SourceKind = Literal[
    "user", "system", "context", "result", "argument", "schema", "proposal", "run", "composed", "tool_description"
]
MAX_VALUES = 200_000  # values remembered of one conversation; later ones count as seen (`full`)
MAX_SEARCHES = 200  # amounts of one conversation that are looked for as sums; later ones count as derived
MAX_AMOUNTS = 400  # amounts that sums are made of: the first ones seen


class Found(msgspec.Struct, frozen=True):
    """A source of a value: its kind, the event, what was done to the value, and if that is certain."""

    source: SourceKind | Literal["none"]
    position: int | None
    transformation: str = "verbatim"
    sure: bool = True


Place = tuple[SourceKind, int]


class Index:
    """What was seen so far. `learn` adds a text, the fields are read by `provenance_match`."""

    def __init__(self) -> None:
        self.words: dict[str, Place] = {}
        self.bare: dict[str, Place] = {}
        self.numbers: dict[str, Place] = {}
        self.dates: dict[str, Place] = {}
        self.month_days: dict[str, Place] = {}
        self.months: dict[int, Place] = {}
        self.month_years: dict[str, Place] = {}
        self.days: dict[int, Place] = {}
        self.years: dict[int, Place] = {}
        self.weekdays: dict[int, Place] = {}
        self.relative: dict[int, Place] = {}
        self.spans: dict[str, Place] = {}
        self.percents: dict[str, Place] = {}
        self.described: dict[str, Place] = {}
        self.proposed: dict[str, Place] = {}
        self.amounts: list[Decimal] = []
        self.today: date | None = None
        self.full = False
        self.searches = MAX_SEARCHES
        self._pending: list[tuple[str, int]] = []

    def learn(self, text: str, kind: SourceKind, position: int, except_values: Iterable[Any] = ()) -> None:
        """Add the values of a text. `except_values` are not taken from it (an echo)."""
        if not text or self.full:
            return
        found = atoms(text)
        if kind == "system" and self.today is None:
            self.today = stated_today(text)
        echoes = {form for value in except_values for form in _forms(value)}
        place = (kind, position)
        for field in _FIELDS:
            table = getattr(self, field)
            for key in getattr(found, field):
                if key not in table and (not echoes or str(key) not in echoes):
                    table[key] = place
        self._learn_amounts(found, echoes)
        self.full = len(self.words) + len(self.numbers) > MAX_VALUES

    def _learn_amounts(self, found: Atoms, echoes: set[str]) -> None:
        if len(self.amounts) >= MAX_AMOUNTS:
            return
        known = set(self.amounts)
        for text in sorted(found.numbers - echoes):
            number = Decimal(text)
            if number not in known and number > 1 and len(text) <= 12 and len(self.amounts) < MAX_AMOUNTS:
                known.add(number)
                self.amounts.append(number)

    def learn_definition(self, definition: ToolDefinition) -> None:
        """What a tool's description says is no source; it is remembered to say so."""
        text = definition.description
        if definition.input_schema is not None:
            text += " " + msgspec.json.encode(definition.input_schema).decode("utf-8", "replace")
        found = atoms(text)
        for key in found.words | found.numbers | found.dates:
            self.described.setdefault(key, ("tool_description", definition.position))

    def propose(self, text: str, position: int) -> None:
        """What the assistant says becomes a proposal once the user has answered it."""
        if text:
            self._pending = [*self._pending[-3:], (text, position)]

    def confirm(self) -> None:
        """The user answered: what was proposed before is known to the user."""
        for text, place in self._pending:
            found = atoms(text)
            for key in found.words | found.numbers | found.dates:
                self.proposed.setdefault(key, ("proposal", place))
        self._pending = []


_FIELDS = (
    "words", "bare", "numbers", "percents", "dates", "month_days", "months", "month_years", "days", "years", "weekdays",
    "relative", "spans",
)  # fmt: skip


def _forms(value: Any) -> set[str]:
    text = str(value)
    forms = {compact(text), text, *atoms(text).words, *atoms(text).dates}
    number = to_decimal(value)
    return forms | ({decimal_text(number)} if number is not None else set())


def stated_today(text: str) -> date | None:
    """The current date as a text states it: the first full date near a word for now."""
    folded = text.casefold()
    for marker in _NOW:
        start = folded.find(marker)
        while start >= 0:
            near = atoms(text[start : start + 90]).dates
            if near:
                return as_date(min(near))
            start = folded.find(marker, start + 1)
    return None


_NOW = (
    "current date", "current time", "today", "date:", "now is", "it is now", "fecha actual", "hora actual", "hoy",
    "heute", "aktuelle", "current day", "as of",
)  # fmt: skip


def nearby(day: date, days: Iterable[int]) -> set[str]:
    """ISO text of the days at these offsets."""
    return {moved.isoformat() for moved in (shift(day, offset) for offset in days) if moved}
