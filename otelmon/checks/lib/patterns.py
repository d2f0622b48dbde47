"""Regular expressions of operators (RE2: linear in the text), and the sentences they are asked about."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import re2

LONGEST = 200_000  # characters of one text that are looked at
_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+|\n+|\\n")  # some agents answer in JSON, where a line ends in two characters


@lru_cache(maxsize=1_000)
def compiled(pattern: str) -> Any:
    """The pattern, ready to search. Raises re2.error."""
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


def sentences(text: str) -> list[str]:
    """The sentences and lines of a text, without the empty ones."""
    return [part.strip() for part in _END.split(text[:LONGEST]) if part and part.strip()]


def pattern_mistakes(pattern: str, groups: bool) -> Iterator[tuple[str, str]]:
    """What is wrong with a pattern, and what to do. `groups`: it needs a named group."""
    try:
        named = compiled(pattern).groupindex
    except re2.error as error:
        yield f"is no regular expression of RE2: {_text(error)}", "see the syntax of RE2"
        return
    if groups and not named:
        yield "the pattern has no named group", "write (?P<name>...) around what is wanted"


def group_names(pattern: str) -> list[str]:
    """The named groups of a pattern; none when it is no pattern."""
    try:
        return list(compiled(pattern).groupindex)
    except re2.error:
        return []


def _text(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)
