"""Lists that a dialect flattened into attributes: `prefix.N.rest = value`."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from otelmon.vocabulary.span import Attributes

Rows = dict[int, dict[str, Any]]


def rows(attributes: Attributes, prefix: str) -> Rows:
    """{N: {rest: value}} of the keys under a prefix (that ends in a dot), in order of N."""
    found: Rows = {}
    size = len(prefix)
    for key, value in attributes.items():
        if not key.startswith(prefix):
            continue
        number, dot, rest = key[size:].partition(".")
        if dot and number.isascii() and number.isdigit() and len(number) < 10:
            found.setdefault(int(number), {})[rest] = value
    return dict(sorted(found.items()))


def gaps(found: Rows) -> bool:
    """Whether numbers are missing: limits on the count of attributes evict keys one by one."""
    return list(found) != list(range(len(found)))


def fingerprint(prefix: str, row: dict[str, Any]) -> Hashable:
    """Equal for equal rows; cheap, and holds no content."""
    return prefix, hash(tuple((k, v if isinstance(v, str) else repr(v)) for k, v in row.items()))
