"""The languages of claims: word lists and patterns from data files, compiled once."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import msgspec

from otelmon.checks.lib.values import fold, runs

Form = Literal["strong", "state", "past", "bare"]
FORMS: tuple[Form, ...] = ("strong", "state", "past", "bare")
LANGUAGES = ("en", "es", "de")
GENERIC = "generic"
_SAMPLE = 4_000  # characters that are enough to tell the language of a text


class Language(msgspec.Struct, frozen=True):
    """One language of claims. `classes_of` maps a past form to its verb classes, `bases` a base form;
    `past_forms` maps a class to the words that state it as done. All text is folded."""

    code: str
    stop: frozenset[str]
    auxiliary: frozenset[str]
    forms: dict[Form, tuple[re.Pattern[str], ...]]
    chained: re.Pattern[str]
    placed: re.Pattern[str]
    placed_class: str
    patterns: dict[str, re.Pattern[str]]
    composing: frozenset[str]
    deeds: frozenset[str]
    passive_only: frozenset[str]
    classes_of: dict[str, frozenset[str]]
    bases: dict[str, frozenset[str]]
    past_forms: dict[str, frozenset[str]]


@cache
def language(code: str) -> Language:
    """The language of a code of LANGUAGES."""
    text = (files("otelmon.checks") / "data" / f"claims.{code}.toml").read_text("utf-8")
    data: dict[str, Any] = tomllib.loads(text)
    bases: dict[str, set[str]] = {}
    classes_of: dict[str, set[str]] = {word: {GENERIC} for word in data["generic"]}
    past_forms: dict[str, set[str]] = {GENERIC: set(data["generic"])}
    for label, pairs in data["verbs"].items():
        for pair in pairs.split():
            base, past = pair.split("/")
            bases.setdefault(base, set()).add(label)
            for form in _inflected(past, code):
                classes_of.setdefault(form, set()).add(label)
                past_forms.setdefault(label, set()).add(form)
    spoken = {"{V}": set(classes_of), "{P}": set[str](), "{B}": set(bases)}
    for base, labels in _infinitives(data, bases).items() if code == "es" else ():
        for form in _preterites(base):
            spoken["{P}"].add(form)
            classes_of.setdefault(form, set()).update(labels)
    for base, labels in bases.items():
        classes_of.setdefault(base, set()).update(labels)
    groups = {mark: _verb_group(words) for mark, words in spoken.items()}

    def compiled(pattern: str) -> re.Pattern[str]:
        pattern = pattern.replace("{A}", data["adverbs"])
        for mark, group in groups.items():
            pattern = pattern.replace(mark, group)
        return re.compile(pattern)

    return Language(
        code=code,
        stop=frozenset(data["stop"]),
        auxiliary=frozenset(data["auxiliary"]),
        forms={form: tuple(compiled(pattern) for pattern in data[form]) for form in FORMS},
        chained=compiled(data["chained"]),
        placed=compiled(data["placed"]),
        placed_class=data["placed_class"],
        patterns={name: compiled(data[name]) for name in _PATTERNS},
        composing=frozenset(data["composing"]),
        deeds=frozenset(data["deeds"]),
        passive_only=frozenset(data["passive_only"]),
        classes_of={word: frozenset(labels) for word, labels in classes_of.items()},
        bases={word: frozenset(labels) for word, labels in bases.items()},
        past_forms={label: frozenset(words) for label, words in past_forms.items()},
    )


_PATTERNS = (
    "conditional", "modal", "reported", "others", "question", "conditional_header", "approval", "denial",
    "denial_limits", "denied_anything", "denial_verbs", "reading", "honest", "prepositions", "money", "addressed", "exists", "everything", "announced", "source",
)  # fmt: skip


def _verb_group(words: set[str]) -> str:
    return rf"(?P<verb>{'|'.join(sorted(map(re.escape, words), key=len, reverse=True))})\b"


def _infinitives(data: dict[str, Any], bases: dict[str, set[str]]) -> dict[str, set[str]]:
    """Spanish base forms with their classes, those of the generic participles too: procesado, procesar."""
    found = {base: set(labels) for base, labels in bases.items()}
    for word in data["generic"]:
        if word.endswith("ado"):
            found.setdefault(word.removesuffix("ado") + "ar", set()).add(GENERIC)
    return found


def _preterites(base: str) -> list[str]:
    """What was done, of a regular Spanish verb (folded): se envio, se enviaron."""
    stem, ending = base[:-2], base[-2:]
    return [stem + "o", stem + "aron"] if ending == "ar" else [stem + "io", stem + "ieron"]


def _inflected(past: str, code: str) -> list[str]:
    """Spanish participles agree in gender and number."""
    if code == "es" and past.endswith("o"):
        return [past[:-1] + ending for ending in ("o", "a", "os", "as")]
    return [past]


def language_of(text: str) -> Language:
    """The language a text is most likely written in, by its most common words; English when unsure."""
    words = runs(text[:_SAMPLE])
    best = max(LANGUAGES, key=lambda code: (sum(word in language(code).stop for word in words), code == "en"))
    return language(best)


@cache
def base_classes() -> dict[str, frozenset[str]]:
    """Verb classes of base forms in any language: what the words of a tool's name mean."""
    merged: dict[str, frozenset[str]] = {}
    for code in LANGUAGES:
        for word, labels in language(code).bases.items():
            merged[fold(word)] = merged.get(fold(word), frozenset()) | labels
    return merged


@cache
def done_words(label: str) -> frozenset[str]:
    """The words, in any language, that state a verb class as done: cancelled, storniert, cancelada."""
    return frozenset().union(*(language(code).past_forms.get(label, frozenset()) for code in LANGUAGES))


def already_there(text: str) -> bool:
    """True when an error says, in any language, that what should be made exists already."""
    folded = fold(text[:_SAMPLE])
    return any(language(code).patterns["exists"].search(folded) for code in LANGUAGES)


@cache
def deed_nouns() -> frozenset[str]:
    """Nouns of deeds in any language: reservation, cancelacion, stornierung."""
    return frozenset().union(*(language(code).deeds for code in LANGUAGES))
