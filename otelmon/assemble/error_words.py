"""The words that payloads and texts use for errors, in several languages. They are data: data/errors.toml."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from importlib.resources import files

_DATA: dict[str, dict[str, list[str]]] = tomllib.loads(
    (files("otelmon.assemble") / "data" / "errors.toml").read_text("utf-8")
)


def fold(text: str) -> str:
    """Small letters without accents."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text.replace("ß", "ss"))
    return "".join(c for c in plain if not unicodedata.combining(c)).lower()


def _listed(section: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for words in _DATA[section].values() for word in words))


def _any_of(section: str) -> str:
    return "|".join(re.escape(word) for word in sorted(_listed(section), key=len, reverse=True))


GOOD_FLAGS = _listed("good_flags")
ERROR_MEMBERS = _listed("error_members")
BAD_STATUS = frozenset(_listed("bad_status"))
STATUS_MEMBERS = _listed("status_members")
MESSAGE_MEMBERS = _listed("message_members")
STARTS = re.compile(
    rf"^\W{{0,4}}(?:{_any_of('first_words')})(?:\s*(?:[:\[(!–—-]|\d{{3,}}\b)|\s+(?:{_any_of('going_on')})\b)",
)
REFUSES = re.compile(
    rf"^\W{{0,3}}(?:{_any_of('refusals_at_start')})\b|^\W{{0,3}}(?:\S+ ){{1,7}}?(?:{_any_of('refusals_after_subject')})\b",
)
BUT_DONE = re.compile(rf"\b(?:{_any_of('but_done')})\b")
