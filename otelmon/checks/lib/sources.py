"""Where a value must come from, as operators write it: `get_order.items[].amount | user`, and whether it did."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from otelmon.checks.lib.provenance import Lineage, result_words
from otelmon.checks.lib.provenance_index import Index, SourceKind
from otelmon.checks.lib.provenance_match import match
from otelmon.checks.lib.values import compact, decimal_text, to_decimal
from otelmon.checks.view import View
from otelmon.vocabulary.event import ContextMessage, SystemMessage, ToolCall, UserMessage

KINDS = ("user", "system", "context", "result", "run")
"""Kinds of text that a source may name instead of a field of a tool."""
MAX_VALUES = 50_000  # values remembered of one source in one conversation; later ones are not told apart
MAX_SUMS = 4_096  # sums of the values of one result
MAX_SHOWN = 8
_TERM = re.compile(r'\s*(?:"(?P<quoted>[^"]+)"|(?P<tool>[\w*?\[\]/:\-]+))\s*\.\s*(?P<path>[^\s|"]+)\s*')
_STEP = re.compile(r"(?:[\w\-]+|\*)(?:\[\])*")
_MINOR = re.compile(r"cent|minor", re.IGNORECASE)  # of a name: the argument is in minor units
_KIND_OF: dict[type, SourceKind] = {UserMessage: "user", SystemMessage: "system", ContextMessage: "context"}


class Term(msgspec.Struct, frozen=True):
    """One place: a kind of text, or a field of the results of tools. `path` as written, its steps parted."""

    kind: SourceKind | None = None
    tool: str = ""
    path: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.kind or f"{self.tool}.{'.'.join(self.path)}"


class Given(msgspec.Struct, frozen=True):
    """A value that a place held, and the event that had it."""

    value: Any
    position: int


def parse(text: str) -> tuple[Term, ...]:
    """The places of a source, alternatives parted by `|`. Raises ValueError when it is none (see `mistakes`)."""
    terms, wrong = _read(text)
    if wrong:
        raise ValueError(wrong[0][0])
    return terms


def mistakes(text: str) -> list[tuple[str, str]]:
    """What is wrong with a source, as pairs of the mistake and what to do."""
    return list(_read(text)[1])


@lru_cache(maxsize=1_000)
def _read(text: str) -> tuple[tuple[Term, ...], tuple[tuple[str, str], ...]]:
    terms: list[Term] = []
    wrong: list[tuple[str, str]] = []
    for part in text.split("|"):
        found = _TERM.fullmatch(part)
        steps = tuple(found["path"].split(".")) if found else ()
        if part.strip() in KINDS:
            terms.append(Term(kind=part.strip()))  # type: ignore[arg-type]
        elif found and all(_STEP.fullmatch(step) for step in steps):
            terms.append(Term(tool=found["quoted"] or found["tool"], path=steps))
        else:
            wrong.append((f'"{part.strip()}" is no source', _advice(part.strip())))
    return tuple(terms), tuple(wrong)


def _advice(part: str) -> str:
    near = get_close_matches(part, KINDS, n=1)
    if near:
        return f"did you mean {near[0]}?"
    return f"write tool.field, tool.items[].field, or one of {', '.join(KINDS)}; alternatives are parted by |"


def argument_path(path: str) -> str:
    """The path of an argument as rules write it: `items[3].sku` -> `items[].sku`."""
    return re.sub(r"\[\d+\]", "[]", path)


def values_at(data: Any, path: Sequence[str]) -> Iterator[Any]:
    """The scalars of JSON data at a path of steps: `items[]`, `amount`; `*` is any key. A list where the path
    names none is looked into."""
    if isinstance(data, list):
        for item in data:
            yield from values_at(item, path)
    elif path and isinstance(data, dict):
        name = path[0].replace("[]", "")
        for key, inner in data.items():
            if name in ("*", key):
                yield from values_at(inner, path[1:])
    elif not path and not isinstance(data, dict) and data is not None:
        yield data


def comes_from(line: Lineage, call: ToolCall, terms: Sequence[Term], view: View) -> Term | None:
    """The first of the places that held the value before the call, None when none did."""
    return next((term for term in terms if _holds(term, line, call, view)), None)


def expected(call: ToolCall, terms: Sequence[Term], view: View) -> tuple[Given, ...]:
    """Values that the named fields held before the call, the latest first, each once."""
    found: dict[str, Given] = {}
    for term in terms:
        if term.kind is None:
            for given in reversed(_fields(term, view).given):
                if given.position < call.position:
                    found.setdefault(str(given.value), given)
                if len(found) >= MAX_SHOWN:
                    break
    return tuple(sorted(found.values(), key=lambda given: -given.position)[:MAX_SHOWN])


def unseen(call: ToolCall, terms: Sequence[Term], view: View) -> bool:
    """A named field may have held it where nobody could look: a result that was not sent whole."""
    return any(
        earlier.result_fidelity in ("absent", "hashed", "truncated")
        for term in terms
        if term.kind is None
        for earlier in _fields(term, view).calls
        if earlier.position < call.position
    )


class _Fields:
    """What one place in results held, in order, and each of its values with the first event that had it."""

    def __init__(self, term: Term, view: View) -> None:
        self.given: list[Given] = []
        self.first: dict[str, int] = {}
        self.calls = [
            c for c in view.calls if fnmatchcase(c.tool_name, term.tool) or fnmatchcase(c.raw_name, term.tool)
        ]
        self.sums: dict[str, int] = {}
        for call in self.calls:
            if call.outcome == "succeeded" and len(self.given) < MAX_VALUES:
                self._take(call, list(values_at(call.result, term.path)))

    def _take(self, call: ToolCall, values: list[Any]) -> None:
        self.given.extend(Given(value, call.position) for value in values)
        for value in values:
            self.first.setdefault(plain_form(value), call.position)
        for total in _sums([number for value in values if (number := to_decimal(value)) is not None]):
            self.sums.setdefault(decimal_text(total), call.position)

    def had(self, name: str, value: Any, position: int) -> bool:
        """Whether a value, or a sum of the values of one result, was there before an event."""
        forms, number = [plain_form(value)], to_decimal(value)
        if number is not None and _MINOR.search(name):
            forms.append(decimal_text(number / 100))
        known = (self.first.get(form, self.sums.get(form)) for form in forms)
        return any(at is not None and at < position for at in known)


def plain_form(value: Any) -> str:
    """A value so that formatting does not matter: ids by letters and digits, numbers as numbers."""
    number = None if isinstance(value, str) and any(map(str.isalpha, value)) else to_decimal(value)
    return compact(str(value)) if number is None else decimal_text(number)


def _sums(numbers: Sequence[Decimal]) -> set[Decimal]:
    """Sums of any of the numbers, as long as these are few; else of all of them."""
    sums: set[Decimal] = set()
    for number in numbers:
        if 2 * len(sums) > MAX_SUMS:
            return {*sums, sum(numbers, Decimal(0))}
        sums |= {total + number for total in sums} | {number}
    return sums


class _Memory(msgspec.Struct):
    """What the places that rules name held in one conversation; each is read once, when it is asked for."""

    fields: dict[tuple[str, tuple[str, ...]], _Fields] = {}
    texts: dict[str, Index] = {}


_REMEMBERED: WeakKeyDictionary[View, _Memory] = WeakKeyDictionary()


def _memory(view: View) -> _Memory:
    return _REMEMBERED.setdefault(view, _Memory())


def _fields(term: Term, view: View) -> _Fields:
    known = _memory(view).fields
    key = (term.tool, term.path)
    if key not in known:
        known[key] = _Fields(term, view)
    return known[key]


def _texts(kind: SourceKind, view: View) -> Index:
    known = _memory(view).texts
    if kind not in known:
        index = known[kind] = Index()
        for text, position in _said(kind, view):
            index.learn(text, kind, position)
    return known[kind]


def _said(kind: SourceKind, view: View) -> Iterator[tuple[str, int]]:
    """The texts of one kind, in order, each with its position."""
    if kind == "run":
        yield from ((run.principal or "", -1) for run in view.runs)
    for event in view.events:
        if isinstance(event, ToolCall):
            if kind == "result" and event.outcome == "succeeded":
                yield result_words(event), event.position
        elif isinstance(event, UserMessage | SystemMessage | ContextMessage) and _KIND_OF[type(event)] == kind:
            yield event.text, event.position


def _holds(term: Term, line: Lineage, call: ToolCall, view: View) -> bool:
    if term.kind is None:
        return _fields(term, view).had(line.path, line.value, call.position)
    hit = match(line.role, line.value, _texts(term.kind, view), call.start_time_unix_nano)
    return hit is not None and (hit.position is None or hit.position < call.position)
