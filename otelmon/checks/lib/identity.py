"""Values that name a record: ids, references, accounts, addresses."""

from __future__ import annotations

import re
from typing import Any

_ID_NAME = re.compile(
    r"(^|[_\W])(id|ids|uuid|guid|ref|reference|number|no|code|key|sku|account|iban|order|invoice|ticket|booking|email|mail"
    r"|phone|to|recipient|payee|user|customer|item|path|file|url|channel|issue|serial|licence|license|plate)s?([_\W]|$)",
    re.I,
)
_CAMEL_ID = re.compile(r"[a-z](Id|Ref|Number|Code|Key)$")
_LOOKS_LIKE_ID = re.compile(r"^(?=.*\d)[\w#./:@+-]{3,80}$")
_EMAIL = re.compile(r"^[^@\s]+@[^@\s]+\.[^@\s]+$")
_MAX_VALUES, _MAX_DEPTH = 200, 8


def identifying_values(data: Any) -> list[str]:
    """The values of JSON data that name a record, at most 200. Free text names none."""
    found: list[str] = []
    _collect("", data, found, 0)
    return found


def _collect(name: str, value: Any, found: list[str], depth: int) -> None:
    if depth > _MAX_DEPTH or len(found) >= _MAX_VALUES:
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            _collect(str(key), inner, found, depth + 1)
    elif isinstance(value, list):
        for inner in value[:_MAX_VALUES]:
            _collect(name, inner, found, depth + 1)
    elif _identifies(name, value):
        found.append(str(value))


def _identifies(name: str, value: Any) -> bool:
    if isinstance(value, bool) or value in (None, ""):
        return False
    named = bool(_ID_NAME.search(name) or _CAMEL_ID.search(name))
    if isinstance(value, int):
        return named
    if not isinstance(value, str) or len(value) > 200:
        return False
    if _EMAIL.match(value) or (_LOOKS_LIKE_ID.match(value) and any(c.isalpha() for c in value)):
        return True
    return named and " " not in value.strip()
