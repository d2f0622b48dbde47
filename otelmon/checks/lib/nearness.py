"""Known ids that a value nearly is: a slip of one or two characters, or the sibling of the one asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from weakref import WeakKeyDictionary

import msgspec
from rapidfuzz.distance import OSA
from rapidfuzz.process import extract

from otelmon.checks.lib.provenance import Lineage, index_of
from otelmon.checks.lib.provenance_roles import leaves, name_words
from otelmon.checks.lib.values import chunks, compact
from otelmon.checks.view import View
from otelmon.vocabulary.event import AssistantMessage, Event, ToolCall, UserMessage

_ROLES = frozenset(("id", "code", "email", "phone"))
_SHORTEST = 4  # characters of the id body below which one edit says nothing
_LONG = 6  # from here on letters may differ, be missing or be too many
_ADDRESS = 10  # words without a digit are kept from here on: they may be addresses
MAX_LOOKUPS = 300  # invented values of one conversation that are compared; later ones are only invented
MAX_COMPARED = 3_000_000  # words of one conversation that are compared; as above
_PER_EDIT = 3  # two edits need twice as long a body, and so on
_SUFFIX = re.compile(r"[-_/.:#]?[^\W_]{1,3}|[-_/.:#][^\W_]{1,6}")
_GENERIC = frozenset(("id", "number", "no", "nr", "num", "ref", "reference", "key", "code", "uuid", "guid", "numero", "nummer"))  # fmt: skip


class Near(msgspec.Struct, frozen=True):
    """A known value that is near: as it was written, how many characters differ (0: a sibling), and the
    event that had it first."""

    known: str
    edits: int
    position: int


class _Known:
    """The known values of a conversation by length, and what was looked up already."""

    def __init__(self, view: View) -> None:
        self.by_length: dict[int, tuple[list[str], list[int]]] = {}
        for word, (_, position) in index_of(view).words.table().items():
            if len(word) >= _ADDRESS or (len(word) >= _SHORTEST and not word.isalpha()):
                words, places = self.by_length.setdefault(len(word), ([], []))
                words.append(word)
                places.append(position)
        self.answers: dict[tuple[str, str, int], tuple[Near, ...]] = {}
        self.compared = 0


_REMEMBERED: WeakKeyDictionary[View, _Known] = WeakKeyDictionary()


def near_edits(line: Lineage, call: ToolCall, view: View, most: int) -> tuple[Near, ...]:
    """The known values, nearest first, that one invented value is at most `most` edits from."""
    body = compact(str(line.value))
    if line.source != "none" or line.role not in _ROLES or len(body) < _SHORTEST or not _has_digit(body, line.role):
        return ()
    known = _REMEMBERED.get(view)
    if known is None:
        known = _REMEMBERED[view] = _Known(view)
    asked = (call.key, line.path, most)
    if asked not in known.answers:
        if len(known.answers) >= MAX_LOOKUPS or known.compared >= MAX_COMPARED:
            return ()
        known.answers[asked] = _look_up(body, line.role, call, view, known, most)
    return known.answers[asked]


def _look_up(body: str, role: str, call: ToolCall, view: View, known: _Known, most: int) -> tuple[Near, ...]:
    allowed = min(most, 1 + max(0, len(body) - _SHORTEST) // _PER_EDIT)
    found: list[tuple[int, str, int]] = []
    for length in range(len(body) - allowed, len(body) + allowed + 1):
        words, places = known.by_length.get(length, ([], []))
        known.compared += len(words)
        for word, edits, at in extract(body, words, scorer=OSA.distance, score_cutoff=allowed, limit=None):
            apart = edits and _has_digit(word, role) and (len(body) >= _LONG or _same_letters(body, word))
            if apart and places[at] < call.position:
                found.append((edits, word, places[at]))
    return tuple(Near(_written(word, view.events[at]), edits, at) for edits, word, at in sorted(found)[:5])


def _same_letters(one: str, other: str) -> bool:
    """Of short ids only digits may differ: `F003` is no slip of `U003`."""
    return re.sub(r"\d", "0", one) == re.sub(r"\d", "0", other)


def _has_digit(word: str, role: str) -> bool:
    return role == "email" or any(map(str.isdigit, word))


def sibling_of(line: Lineage, call: ToolCall, view: View) -> Near | None:
    """The id the user asked for, when the value is that one with a short part more or less, and nothing
    leads from the one to the other."""
    value = str(line.value).strip()
    if line.role not in ("id", "code") or line.source not in ("result", "argument", "none") or len(compact(value)) < 3:
        return None
    for message in _turns_back(call, view):
        asked = [word for word in _id_words(message.text) if _siblings(word.strip(".:#"), value)]
        if asked and not _known_to_user(value, call, view):
            named = asked[0].strip(".:#")
            return None if _leads(named, line, call, view) else Near(named, 0, message.position)
    return None


@lru_cache(maxsize=512)
def _id_words(text: str) -> tuple[str, ...]:
    """The pieces of a text that have a digit, remembered for texts seen lately."""
    return tuple(word for word in chunks(text) if any(c.isdigit() for c in word))


def _turns_back(call: ToolCall, view: View) -> Iterator[UserMessage]:
    """What the user said before the call, latest first."""
    said = [m for m in view.user_messages() if m.position < call.position]
    return iter(said[:-13:-1])


def _siblings(one: str, other: str) -> bool:
    """`8842` and `8842-R`: one is the other with a short part at the end, not in the midst of its digits."""
    short, long = sorted((one.casefold().lstrip("#"), other.casefold().lstrip("#")), key=len)
    rest = long[len(short) :]
    if not rest or len(compact(short)) < 3 or not any(c.isdigit() for c in short) or not long.startswith(short):
        return False
    joined = (short[-1].isdigit() and rest[0].isdigit()) or (short[-1].isalpha() and rest[0].isalpha())
    return not joined and _SUFFIX.fullmatch(rest) is not None


def _known_to_user(value: str, call: ToolCall, view: View) -> bool:
    """The user named the value, or answered a message that did."""
    body, answered = compact(value), False
    for event in reversed(view.before(call)):
        if isinstance(event, UserMessage):
            answered = True
            if body in {compact(word) for word in chunks(event.text)}:
                return True
        elif (
            answered and isinstance(event, AssistantMessage) and body in {compact(word) for word in chunks(event.text)}
        ):
            return True
    return False


def _leads(asked: str, line: Lineage, call: ToolCall, view: View) -> bool:
    """A call about the one asked for led to the value: it made it, or named it as something else of its own."""
    one, other = compact(asked), compact(str(line.value))
    for earlier in view.calls_before(call):
        if one not in {compact(str(value)) for _, _, value in leaves(earlier.arguments)}:
            continue
        if other not in {compact(word) for word in chunks(earlier.result_text or "")}:
            continue
        if view.writes(earlier) or _another_kind(one, other, earlier):
            return True
    return False


def _another_kind(asked: str, value: str, call: ToolCall) -> bool:
    """The result holds the value under a name that is not the one of what was asked for (`return_id`)."""
    kinds = [(compact(str(found)), frozenset(name_words(key)) - _GENERIC) for _, key, found in leaves(call.result)]
    sent = [(compact(str(found)), frozenset(name_words(key)) - _GENERIC) for _, key, found in leaves(call.arguments)]
    of_asked = {kind for body, kind in (*kinds, *sent) if body == asked}
    return any(kind and kind not in of_asked for body, kind in kinds if body == value)


def _written(word: str, event: Event) -> str:
    """A known value as the text of its event has it."""
    text = event.result_text or "" if isinstance(event, ToolCall) else getattr(event, "text", "")
    return next((chunk.strip(".:#?!") for chunk in chunks(text) if compact(chunk) == word), word)
