"""Text that directs the agent that reads it: where, by what signs, and what it orders. One pass, bounded."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Any

import msgspec

from otelmon.checks.lib.instructions_language import core, cues, deeds
from otelmon.checks.lib.values import fold

MAX_TEXT = 1_000_000  # characters read of one text, half from each end; what lies between goes unread
MAX_PASSAGE = 20_000  # characters of one passage; a longer one counts as several
MAX_PASSAGES = 20  # passages of one text; what comes later goes unread
BEFORE, AFTER = 400, 900  # characters around the signs that may hold what is ordered
MAX_DESCRIPTION = 20_000  # characters read of what a tool says of itself
STOP = "\x1e"  # between the strings of a structured result: no passage goes across
_LEAVES = 4_000

HIDDEN = "\x1d"
_ESCAPED = re.compile(r"\\[nrt]")
_INVISIBLE = dict.fromkeys(
    [*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2065), 0xFEFF, 0xAD, *range(0xFE00, 0xFE10)]
)
_TAGS = {0xE0000 + code: chr(code) for code in range(0x20, 0x7F)}  # letters that no screen shows
_SMUGGLED = re.compile("[\U000e0020-\U000e007e]{4,}")
_SENTENCE = re.compile(
    r"(?<=[.!?:;\]>])[\"')\]*]{0,3}\s+|\n\s*\n|\n(?=[ \t]*(?:[-*•#>|]|\d{1,2}[.)]))|\x1e|<[/a-z][^<>\n]{0,60}>|<!--|-->"
)


_PARAGRAPH = re.compile(r"\n\s*\n|\n\s*[-=_*#]{3,}|<[/a-z][^<>\n]{0,60}>|<!--|-->|\x1e")
_CLOSED = re.compile(r"</[a-z][^<>\n]{0,60}>\Z")
_LETTER = re.compile(r"[a-z0-9]")


class Passage(msgspec.Struct, frozen=True):
    """A part of a text that directs. `kinds`: the signs; `weight`: their sum; `plain`: none that
    people never use among themselves; `orders`: the sentences that order
    something; `told`: all that it says to do, folded; `quote`: its beginning as it reads."""

    kinds: tuple[str, ...]
    weight: int
    plain: bool
    orders: tuple[str, ...]
    told: str
    quote: str
    start: int
    end: int


def texts_of(value: Any) -> str:
    """The strings of a JSON value as one text, with a mark between them."""
    if isinstance(value, str):
        return value
    return f"\n{STOP}\n".join(_strings(value))


def _strings(value: Any) -> Iterator[str]:
    stack, left = [value], _LEAVES
    while stack and left:
        here = stack.pop()
        if isinstance(here, dict):
            stack.extend(reversed(here.values()))
        elif isinstance(here, list):
            stack.extend(reversed(here))
        elif isinstance(here, str) and len(here) > 2:
            left -= 1
            yield here


def flatten(text: str) -> str:
    """A text as it is matched: one byte a character, folded, nothing invisible. Letters that no screen shows are
    made plain, with a mark before them."""
    if "\\" in text:
        text = _ESCAPED.sub("\n", text)
    if text.isascii():
        return text.lower()
    text = _SMUGGLED.sub(lambda found: f"\n{HIDDEN}{found.group().translate(_TAGS)}\n\n", text)
    text = fold(unicodedata.normalize("NFKC", text.translate(_INVISIBLE)))
    return text.replace("\u2019", "'").encode("ascii", "replace").decode("ascii")


def read(text: str) -> tuple[Passage, ...]:
    """The passages of a text that direct. Linear; at most MAX_TEXT characters of it are read."""
    if len(text) < 12:
        return ()
    if len(text) > MAX_TEXT:
        text = f"{text[: MAX_TEXT // 2]}\n{STOP}\n{text[-(MAX_TEXT // 2) :]}"
    flat = flatten(text)
    signs = (sign.span() for sign in core().finditer(flat.encode("ascii")))
    made = [_passage(flat[a:b], a) for a, b in islice(_regions(signs, flat), MAX_PASSAGES)]
    return tuple(passage for passage in made if passage is not None)


@lru_cache(maxsize=2048)
def read_description(text: str) -> Passage | None:
    """A tool's own text as one passage, with every sign in it; None when it orders nothing."""
    return _passage(flatten(text[:MAX_DESCRIPTION]), 0, whole=True)


def _regions(hits: Iterable[tuple[int, int]], flat: str) -> Iterator[tuple[int, int]]:
    """The surroundings of the signs, overlapping ones as one."""
    start = end = -1
    for a, b in hits:
        low = max(a - BEFORE, 0, flat.rfind(STOP, max(a - BEFORE, 0), a) + 1)
        stop = flat.find(STOP, b, b + AFTER)
        high = stop if stop >= 0 else min(b + AFTER, len(flat))
        if start >= 0 and low <= end and high - start <= MAX_PASSAGE:
            end = max(end, high)
        else:
            if start >= 0:
                yield start, end
            start, end = low, high
    if start >= 0:
        yield start, end


def _passage(text: str, offset: int, whole: bool = False) -> Passage | None:
    data = text.encode("ascii")
    found = [(cue, *hit.span()) for cue in cues() for hit in cue.pattern.finditer(data)]
    marks = [(a, b) for cue, a, b in found if cue.core]
    first, last = min((a for a, _ in marks), default=0), max((b for _, b in marks), default=len(text))
    letter = _LETTER.search(text, first)
    first = letter.start() if letter else first
    low, high = (0, len(text)) if whole else _reach(text, first, last)
    sentences = [(a, b) for a, b in _sentences(text[:high]) if b > low]
    ordering = {n for n, (a, b) in enumerate(sentences) if is_order(text[a:b])}
    if not ordering:  # said in some other manner: a sentence with a sign and the verb of a deed
        signed = [n for n, (a, b) in enumerate(sentences) if a <= last and b >= first]
        ordering = {n for n in signed if whole or deeds().verb.search(text[slice(*sentences[n])].encode("ascii"))}
    if not ordering:
        return None
    told = [
        text[a:b]
        for n, (a, b) in enumerate(sentences)
        if n in ordering or n - 1 in ordering or (a <= last and b >= first)
    ]
    weights = {cue.kind: cue.weight for cue, a, b in found if b >= low and a < high}
    return Passage(
        kinds=tuple(weights),
        weight=sum(weights.values()),
        plain=not any(cue.core and not cue.soft for cue, a, b in found if b >= low and a < high),
        orders=tuple(text[a:b].strip() for a, b in (sentences[n] for n in sorted(ordering))),
        told="\n".join(told),
        quote=" ".join(text[first : first + 240].split()),
        start=offset + low,
        end=offset + high,
    )


def _reach(text: str, first: int, last: int) -> tuple[int, int]:
    """How far what is ordered may stand from the signs: before them in the same paragraph, after them in it and in
    the one that follows."""
    low = 0
    for mark in _PARAGRAPH.finditer(text, 0, first):
        low = mark.end()
    if _CLOSED.search(text, 0, last):
        return low, last
    for n, mark in enumerate(_PARAGRAPH.finditer(text, last)):
        if n == 1:
            return low, mark.start()
    return low, len(text)


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for mark in _SENTENCE.finditer(text):
        if mark.start() > start:
            yield start, mark.start()
        start = mark.end()
    if start < len(text):
        yield start, len(text)


def sentence_at(flat: str, place: int) -> str:
    """The sentence of a folded text around a place, at most 300 characters to each side."""
    low, high = max(place - 300, 0), min(place + 300, len(flat))
    for a, b in _sentences(flat[low:high]):
        if a <= place - low < b:
            return flat[low + a : low + b].strip()
    return ""


def is_order(sentence: str) -> bool:
    """True when a folded sentence orders something done."""
    data = sentence.strip().encode("ascii", "replace")
    return bool(deeds().opening.search(data) or deeds().order.search(data))


def delegates(text: str) -> bool:
    """True when a user hands the work over to what some text says."""
    return bool(deeds().delegating.search(flatten(text[:MAX_TEXT]).encode("ascii")))
