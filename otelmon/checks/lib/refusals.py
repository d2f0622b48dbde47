"""What a server's own validator said when it refused a call: which arguments were missing, unknown or of the wrong form.

A published schema may allow what the server refuses (`any object` where it wants certain keys). The words are those of
common validators; a refusal counts only when it fits the arguments that were sent, so that a failure inside the
server, which reads alike, is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

Kind = Literal["missing", "unknown", "wrong"]
MAX_TEXT, MAX_NAMES, MAX_DEPTH, MAX_KEYS = 4_000, 20, 6, 2_000
_NAME = r"([A-Za-z_][\w.\[\]-]{0,80})"
_QUOTED = re.compile(r"['\"`]([A-Za-z_][\w.-]{0,80})['\"`]")
_ONE: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("missing", re.compile(rf"\b{_NAME}\s{{1,8}}Field required\b")),
    ("missing", re.compile(rf"['\"]{_NAME}['\"] is a required property\b")),
    ("missing", re.compile(rf"\bmust have required property ['\"]{_NAME}['\"]")),
    ("unknown", re.compile(rf"\b{_NAME}\s{{1,8}}Extra inputs are not permitted\b")),
    ("unknown", re.compile(rf"\bunexpected keyword argument ['\"]{_NAME}['\"]")),
    ("unknown", re.compile(rf"\bAdditional properties are not allowed \(['\"]{_NAME}['\"]")),
    ("wrong", re.compile(rf"\b{_NAME}\s{{1,8}}Input should be\b")),
)
_SEVERAL = re.compile(r"\bmissing \d{1,3} required (?:positional |keyword-only )?arguments?: ([^\n]{1,400})")


class Refused(msgspec.Struct, frozen=True):
    """One argument that a server named. `path` as it wrote it, `name` its last part."""

    path: str
    name: str
    kind: Kind


def refused_arguments(text: str | None, arguments: Any) -> list[Refused]:
    """The arguments that an error text names and that fit what was sent: missing ones are not there, unknown
    and wrong ones are. Empty when the text is no refusal, or not all of it fits."""
    if not text or not isinstance(arguments, dict):
        return []
    found = list(dict.fromkeys(_named(text[:MAX_TEXT])))[:MAX_NAMES]
    if not found:
        return []
    keys: set[str] = set()
    _collect(arguments, keys, 0)
    # Of several objects in a list one may lack what another has: only where it is lacking can not be told by name.
    if any(refused.kind != "missing" and refused.name not in keys for refused in found):
        return []
    return found if any(refused.kind != "missing" or refused.name not in keys for refused in found) else []


def _named(text: str) -> Iterator[Refused]:
    for kind, pattern in _ONE:
        for match in pattern.finditer(text):
            yield _refused(match[1], kind)
    for match in _SEVERAL.finditer(text):
        for name in _QUOTED.findall(match[1]):
            yield _refused(name, "missing")


def _refused(path: str, kind: Kind) -> Refused:
    parts = [part for part in re.split(r"[.\[\]]+", path) if part and not part.isdigit()]
    return Refused(path, parts[-1] if parts else path, kind)


def _collect(value: Any, keys: set[str], depth: int) -> None:
    """The names of all members, to a bounded depth and number."""
    if depth > MAX_DEPTH or len(keys) > MAX_KEYS:
        return
    if isinstance(value, dict):
        keys.update(str(key) for key in value)
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        if isinstance(inner, dict | list):
            _collect(inner, keys, depth + 1)
