"""The words by which text directs the agent that reads it, compiled once from checks/data/instructions.toml."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
import re2

LANGUAGES = ("en", "es", "de", "fr", "pt", "it")  # the last three: the plainest words only
_BLANK, _MAYBE_BLANK = r"[\s*>]+", r"[\s*>]*"
_MEMORY = 128 << 20  # bytes of the automaton: one pattern of all core words


class Cue(msgspec.Struct, frozen=True):
    """A kind of directing words. `core`: people do not write so to each other; `soft`: some do, now and then."""

    kind: str
    weight: int
    core: bool
    soft: bool
    pattern: Any


class Deeds(msgspec.Struct, frozen=True):
    """How a text orders something done. `order` is an order anywhere in a sentence; `opening` a base verb that is
    an order where a sentence begins; `classes` the kinds of deeds, each with its verbs, `asking` these and the nouns
    that ask for one; `delegating` hands the work over to a text; `informing` asks
    to know, `acting` to have something done; `verb` is any verb of an order. `instructing` words
    are in the names of tools that return instructions on purpose, `instructing_files` in those of such files."""

    order: Any
    opening: Any
    classes: dict[str, Any]
    asking: dict[str, Any]
    delegating: Any
    informing: Any
    acting: Any
    verb: Any
    instructing: frozenset[str]
    instructing_files: tuple[str, ...]


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads((files("otelmon.checks") / "data" / "instructions.toml").read_text("utf-8"))


@cache
def _orders() -> dict[str, Any]:
    return tomllib.loads((files("otelmon.checks") / "data" / "instructions_orders.toml").read_text("utf-8"))


def _compile(patterns: list[str]) -> Any:
    options = re2.Options()
    options.max_mem = _MEMORY
    options.never_capture = True
    options.encoding = re2.Options.Encoding.LATIN1
    spaced = (p.replace(" ?", _MAYBE_BLANK).replace(" ", _BLANK) for p in patterns)
    return re2.compile("|".join(f"(?:{pattern})" for pattern in spaced).encode("ascii"), options)


@cache
def cues() -> tuple[Cue, ...]:
    """All kinds of directing words, each as one pattern over every language."""
    return tuple(
        Cue(kind, part["weight"], part.get("core", False), part.get("soft", False), _compile(_of_languages(part)))
        for kind, part in _data().items()
    )


@cache
def core() -> Any:
    """One pattern of all core words: a text without any directs nobody."""
    return _compile([pattern for part in _data().values() if part.get("core") for pattern in _of_languages(part)])


def _of_languages(part: dict[str, Any]) -> list[str]:
    return [pattern for code in LANGUAGES for pattern in part.get(code, [])]


@cache
def deeds() -> Deeds:
    """The words of orders, in every language."""
    data = _orders()
    verbs = {label: "|".join(" ".join(part.values()).split()) for label, part in data["verbs"].items()}
    nouns = {label: "|".join(" ".join(part.values()).split()) for label, part in data["nouns"].items()}
    every = "|".join(verbs.values())
    leads = "|".join(_of_languages(data["leads"]))
    between = "|".join(_of_languages(data["between"]))
    return Deeds(
        order=_compile([rf"(?:\b(?:{leads})[,:]? |[,:] )(?:(?:{between}) )*(?:{every})\b"]),
        opening=_compile([rf"(?m)^[^a-z0-9\n]*(?:(?:{between}) )*(?:{every})\b"]),
        classes={label: _compile([rf"\b(?:{words})\b"]) for label, words in verbs.items()},
        asking={label: _compile([rf"\b(?:{words}|{nouns.get(label, words)})\b"]) for label, words in verbs.items()},
        informing=_compile(_of_languages(data["informing"])),
        acting=_compile([rf"\b(?:{verbs['send']}|{verbs['change']}|{verbs['run']})\b", *_of_languages(data["acting"])]),
        verb=_compile([rf"\b(?:{every})\b"]),
        instructing=frozenset(data["instructing"]["words"].split()),
        instructing_files=tuple(data["instructing"]["files"].split()),
        delegating=_compile(_of_languages(data["delegating"])),
    )
