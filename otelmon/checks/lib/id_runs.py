"""Runs of ids that a text names by their ends: `1001 to 1005`, `P1003..P1015`."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files

from otelmon.checks.lib.values import MAX_TEXT, compact, fold

MAX_IDS = 10_000  # ids between the ends of a run: more are no run
SMALLEST = 100  # bare numbers below are counts, ages, hours
_WORDS = tomllib.loads((files("otelmon.checks") / "data" / "dates.toml").read_text("utf-8"))["to"]["words"]
_MARKS = ("..", "…", "-", "–", "—", *(f" {word} " for word in _WORDS))
_PREFIX = r"[^\W\d_]{0,8}[-#_]?"
_PARTING = "|".join(
    (
        rf"\s+(?:{'|'.join(map(re.escape, _WORDS))})\s+",
        r"\s?(?:\.\.\.?|…)\s?",
        r"\s[-–—]\s",
        r"[-–—](?=[^\W\d])",  # a dash without blanks parts many things: only before a prefix
    )
)
_ENDS = re.compile(rf"(?<![\w.])({_PREFIX})(\d{{1,12}})(?:{_PARTING})({_PREFIX})(\d{{1,12}})(?![\w.]\w)")


def id_runs(text: str) -> tuple[tuple[str, int, int], ...]:
    """The runs of a text: (what stands before the numbers, in compact form, first, last)."""
    if not any(mark in text for mark in _MARKS):
        return ()
    found = []
    for before, first, again, last in _ENDS.findall(fold(text[:MAX_TEXT])):
        prefix = compact(before)
        named = bool(prefix) or int(first) >= SMALLEST
        if named and compact(again) in ("", prefix) and 0 < int(last) - int(first) <= MAX_IDS:
            found.append((prefix, int(first), int(last)))
    return tuple(found)
