"""What a person's words ask for: how often, again, yes or no. The words are data: checks/data/wording.toml."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.resources import files

import msgspec

from otelmon.checks.lib.verbs import name_words

MANY = 1_000  # "one per pallet": as many as there are
_MAX_TEXT = 20_000
# Words, sentence ends, and small numbers that are no part of a date, a time, an amount or an id.
_TOKEN = re.compile(r"(?<![\w:./,#-])\d{1,2}(?![\w:/#-]|[.,]\d)|[a-z]+|[.!?;\n]")
_OPENING = " \t\n\"'¡¿.,!-*"
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")
_QUOTES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u00a0": " "})


class _Words(msgspec.Struct, frozen=True):
    patterns: Mapping[str, re.Pattern[str]]
    numbers: Mapping[str, int]
    counted: frozenset[str]
    alone: frozenset[str]


def _alternatives(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile(r"(?<!\w)(?:" + "|".join(patterns) + r")(?!\w)")


@lru_cache(maxsize=1)
def _words() -> _Words:
    data = tomllib.loads((files("otelmon.checks") / "data" / "wording.toml").read_text("utf-8"))
    patterns = {name: _alternatives(part["patterns"]) for name, part in data.items() if "patterns" in part}
    patterns |= {f"confirmation.{name}": _alternatives(part) for name, part in data["confirmation"].items()}
    numbers = {word: int(number) for number, text in data["numbers"].items() for word in text.split()}
    counted, alone = frozenset(data["counted"]["words"].split()), frozenset(data["counted"]["alone"].split())
    return _Words(patterns, numbers, counted, alone)


def plain(text: str) -> str:
    """Text for matching: lower case, accents folded, straight quotes, bounded."""
    return _plain(text[:_MAX_TEXT])


@lru_cache(maxsize=256)
def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFKD", text.translate(_QUOTES).replace("ß", "ss"))
    return "".join(c for c in folded if not unicodedata.combining(c)).lower()


def says(kind: str, text: str) -> bool:
    """True when the text has a word of this kind: again, more, each, yes, no, thanks, ..."""
    return bool(_words().patterns[kind].search(plain(text)))


def starts_with(kind: str, text: str) -> bool:
    """True when the first words of the text are of this kind."""
    return bool(_words().patterns[kind].match(plain(text).lstrip(_OPENING)))


def asked_count(text: str, tool_name: str = "", arguments: Iterable[str] = ()) -> int:
    """How many times a text asks for one effect: 1 when it does not say, MANY for "one per ...". A bare
    number counts with a word of the tool's name or of its arguments' names."""
    return _asked_count(text[:_MAX_TEXT], tool_name, tuple(arguments))


@lru_cache(maxsize=256)
def _asked_count(text: str, tool_name: str, arguments: tuple[str, ...]) -> int:
    words, matched = _words(), plain(text)
    if words.patterns["each"].search(matched):
        return MANY
    tokens = _TOKEN.findall(matched)
    things = {_stem(w) for w in (*name_words(tool_name), *(w for k in arguments for w in name_words(k)))}
    count = 1
    for i, token in enumerate(tokens):
        number = words.numbers.get(token) or (int(token) if token.isdigit() and len(token) < 3 else 0)
        if token in words.alone or (number > 1 and _counts_repeats(tokens[i + 1 : i + 4], words, things)):
            count = max(count, number)
    return count


def _counts_repeats(following: list[str], words: _Words, things: set[str]) -> bool:
    """`two separate records`, `3 times`; `two rooms` when the call is about rooms."""
    for word in following[:2]:
        if not word.isalpha():
            return False  # the sentence ended, or another number began
        if word in words.counted or (_stem(word) != word and _stem(word) in things):
            return True
    return False


def _stem(word: str) -> str:
    for ending in ("ies", "es", "s", "en"):
        if word.endswith(ending) and len(word) > len(ending) + 2:
            return word.removesuffix(ending)
    return word.removesuffix("e") if len(word) > 4 else word


def is_status_question(text: str) -> bool:
    """`did it go through?`: asks what happened, not for it to be done again."""
    return "?" in text and starts_with("question", text) and not says("more", text)


def asks_to_act(text: str) -> bool:
    """`please cancel it`, `I want to cancel it`: asks for something to be done now, and takes nothing back."""
    return says("wants", text) and not starts_with("no", text)


def only_thanks(text: str) -> bool:
    """A greeting or thanks, without a request."""
    return len(text) < 60 and starts_with("thanks", text)


def agrees(text: str) -> bool:
    """A yes: not a question, not negated, not taken back in the same breath."""
    return _agrees(text[:_MAX_TEXT])


@lru_cache(maxsize=256)
def _agrees(text: str) -> bool:
    patterns = _words().patterns
    kept = patterns["harmless"].sub(" ", plain(text))
    if patterns["no"].match(kept.lstrip(_OPENING)):
        return False
    return any(_sentence_agrees(s.lstrip(_OPENING)) for s in _SENTENCE.findall(kept))


def _sentence_agrees(sentence: str) -> bool:
    patterns = _words().patterns
    if sentence.endswith("?"):
        return bool(patterns["yes"].match(sentence)) and len(sentence) > len("okay?")
    for found in patterns["yes"].finditer(sentence):
        before = sentence[: found.start()].split()[-3:]
        if not patterns["negation"].search(" ".join((*before, found.group()))):
            return True
    return False
