"""The SQL of the store, loaded by name from sql/: numbered migrations, and files of named statements."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)
_MIGRATION = re.compile(r"^(\d{3})_\w+\.sql$")


def migrations() -> list[tuple[int, str]]:
    """(number, script) in order, from sql/schema/NNN_what.sql."""
    found = []
    for entry in files("otelmon.store").joinpath("sql", "schema").iterdir():
        match = _MIGRATION.match(entry.name)
        if match:
            found.append((int(match[1]), entry.read_text("utf-8")))
    return sorted(found)


@cache
def statements(topic: str) -> dict[str, str]:
    """The statements of sql/queries/<topic>.sql by name. Each starts with a line `-- name: <name>`."""
    text = files("otelmon.store").joinpath("sql", "queries", f"{topic}.sql").read_text("utf-8")
    parts = _NAME.split(text)
    return {name: body.strip() for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def sql(name: str) -> str:
    """The statement called "<topic>.<name>"."""
    topic, _, statement = name.partition(".")
    return statements(topic)[statement]
