"""How many of a list are what a yes/no field says: "11 available options", where the result has ten."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from otelmon.checks.lib.claims import spoken
from otelmon.checks.lib.values import fold
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall

MAX_LISTS = 100  # lists of one conversation that are counted: the first ones
_MAX_NODES, _MAX_ITEMS, _MAX_TEXT = 2_000, 500, 24_000
_FEWEST = 3  # smaller counts are said of too many things
_WORD = re.compile(r"[a-z]{4,20}")
_UNSURE = re.compile(
    r"\?|\b(?:if|about|around|at least|at most|up to|over|more than|less than|nearly|almost|first|next|other|another)\b"
)


class Flagged(msgspec.Struct, frozen=True):
    """A list in a result: where, the yes/no field of its items, for how many it is true, and the other counts
    that may be meant (of all items, of those that share a further value, of those for which it is false)."""

    position: int
    word: str
    true: int
    others: frozenset[int]


_REMEMBERED: WeakKeyDictionary[View, list[Flagged]] = WeakKeyDictionary()


class Miscount(msgspec.Struct, frozen=True):
    """A count as stated (folded), the field, and the count in the result."""

    said: str
    word: str
    true: int


def flagged_lists(view: View) -> list[Flagged]:
    """The lists with a yes/no field in the results of calls that succeeded, in order; read once."""
    known = _REMEMBERED.get(view)
    if known is None:
        known = _REMEMBERED[view] = list(islice(_all_lists(view), MAX_LISTS))
    return known


def _all_lists(view: View) -> Iterator[Flagged]:
    for call in view.calls:
        if call.outcome == "succeeded":
            yield from _lists(call)


def _lists(call: ToolCall) -> Iterator[Flagged]:
    stack: list[Any] = [call.result]
    left = _MAX_NODES
    while stack and left > 0:
        left -= 1
        value = stack.pop()
        items = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
        stack.extend(items[:_MAX_ITEMS])
        records = [item for item in items if isinstance(item, dict)]
        if _FEWEST <= len(records) == len(items) <= _MAX_ITEMS:
            yield from _fields(records, call.position)


def _fields(records: Sequence[dict[str, Any]], position: int) -> Iterator[Flagged]:
    for name in sorted(str(key) for key, value in records[0].items() if isinstance(value, bool)):
        values = [record.get(name) for record in records]
        if _WORD.fullmatch(name) and all(isinstance(value, bool) for value in values):
            true = [record for record in records if record[name]]
            shared = Counter(pair for record in true for pair in _pairs(record))
            others = {len(records), len(records) - len(true), *shared.values()}
            yield Flagged(position, name, len(true), frozenset(others))


def _pairs(record: dict[str, Any]) -> set[tuple[str, str]]:
    """The plain values of a record and of the records in it."""
    inner = [(f"{key}.{k}", v) for key, value in record.items() if isinstance(value, dict) for k, v in value.items()]
    return {(str(key), str(value)) for key, value in (*record.items(), *inner) if isinstance(value, (str, int, float))}


def miscounted(text: str, flagged: Sequence[Flagged]) -> list[Miscount]:
    """The counts in a text, named with a field's word, that no list gives, nor all of them together."""
    folded = fold(spoken(text[:_MAX_TEXT])).replace("*", "")
    found: list[Miscount] = []
    for word in dict.fromkeys(item.word for item in flagged):
        lists = [item for item in flagged if item.word == word]
        allowed = {count for item in lists for count in (item.true, *item.others)} | {sum(item.true for item in lists)}
        pattern = re.compile(rf"(?<![\w$€£.,:/#-])(\d{{1,3}})\s+(?:[a-z-]+\s+){{0,2}}?{word}\b")
        for sentence in re.split(r"(?<=[.!?])\s+|\n", folded) if word in folded else ():
            for match in pattern.finditer(sentence):
                number = int(match.group(1))
                if number >= _FEWEST and number not in allowed and not _UNSURE.search(sentence):
                    found.append(Miscount(match.group(), word, lists[-1].true))
    return found
