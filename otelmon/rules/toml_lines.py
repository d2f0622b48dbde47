"""On which line of a TOML file each value stands, which the standard reader does not say."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

from otelmon.rules.shapes import Keys


def toml_lines(text: str) -> dict[Keys, int]:
    """The line (from 1) of every table and value, by path. The text must be valid TOML."""
    lines = text.splitlines()
    found: dict[Keys, int] = {}
    counts: dict[Keys, int] = {}
    table: Keys = ()
    index = 0
    while index < len(lines):
        line = lines[index].strip()
        used = 1
        if line.startswith("["):
            table = _table(line, counts)
            found.setdefault(table, index + 1)
        elif line and not line.startswith("#"):
            statement, used = _statement(lines, index)
            for path in _paths(statement):
                found.setdefault((*table, *path), index + 1)
        index += used
    return found


def _table(line: str, counts: dict[Keys, int]) -> Keys:
    """The path of a table's heading. An array of tables counts; a table under one belongs to its last."""
    data: Any = tomllib.loads(line)
    path: Keys = ()
    while data:
        if isinstance(data, list):
            counts[path] = counts.get(path, 0) + 1
            return (*path, counts[path] - 1)
        key, data = next(iter(data.items()))
        path = (*path, key)
        if path in counts and not isinstance(data, list):
            path = (*path, counts[path] - 1)
    return path


def _statement(lines: list[str], index: int) -> tuple[dict[str, Any], int]:
    """The key and value that begin on this line, and how many lines they take."""
    for used in range(1, len(lines) - index + 1):
        try:
            return tomllib.loads("\n".join(lines[index : index + used])), used
        except tomllib.TOMLDecodeError:
            continue
    return {}, 1


def _paths(data: Any) -> Iterator[Keys]:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield (key,)
        for path in _paths(value):
            yield (key, *path)
