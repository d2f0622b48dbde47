"""Tools that hand the model a whole language, machine or network instead of one deed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from otelmon.checks.lib.drift_normal import TooLargeError, normal
from otelmon.checks.lib.verbs import classify_name, name_words, words
from otelmon.vocabulary.catalogue import Tool

Why = Literal["code", "command", "sql", "address", "path", "anything", "wildcard"]
_NAMED: tuple[tuple[Why, frozenset[str]], ...] = (
    ("sql", words("sql")),
    ("command", words("command commands cmd shell bash script argv commandline")),
    ("code", words("code expression javascript python eval snippet")),
    ("address", words("url uri href endpoint host hostname webhook")),
    ("path", words("path file filepath folder directory")),
)
_RUNS: tuple[tuple[Why, frozenset[str]], ...] = (
    ("sql", words("sql database db postgres mysql sqlite bigquery snowflake")),
    ("command", words("bash shell terminal exec powershell ssh")),
)
_CARRIES = words("query statement text input q")  # names that say code where the tool is one that runs it
_SAID: dict[Why, str] = {
    "sql": "takes SQL of any kind",
    "command": "takes a command of any kind",
    "code": "takes code of any kind",
    "address": "takes any address",
    "path": "takes any path",
    "anything": "takes an object with any keys",
    "wildcard": "is allowed everything by a wildcard",
}
_BOUNDS = ("enum", "pattern")


class Broad(msgspec.Struct, frozen=True):
    """An argument that bounds nothing. `where` is its name, "" for the arguments as a whole."""

    where: str
    why: Why

    def __str__(self) -> str:
        return f"{self.where or 'the tool'} {_SAID[self.why]}"


def broad_scopes(tool: Tool) -> tuple[Broad, ...]:
    """Arguments through which the tool can be made to do anything of a kind: a text of SQL, shell or code, an
    address or path that no list or pattern bounds, an object with any keys, a wildcard as a scope. A tool
    whose effect the operator wrote down was looked at, and has none; one that is named a reader and takes an
    address or a path does what readers do."""
    if tool.effect is not None:
        return ()
    try:
        schema = normal(tool.input_schema)
    except (TooLargeError, RecursionError):
        return ()
    reads = classify_name(tool.name).effect == "read"
    found = [*_whole(tool.input_schema or {}), *_parameters(tool, schema)]
    return tuple(one for one in found if not (reads and one.why in ("address", "path")))


def _whole(schema: Mapping[str, Any]) -> Iterator[Broad]:
    extras = schema.get("additionalProperties", False)
    if not schema.get("properties") and (extras is True or isinstance(extras, dict)):
        yield Broad("", "anything")


def _parameters(tool: Tool, schema: Mapping[str, Any]) -> Iterator[Broad]:
    named = frozenset(name_words(tool.name)) | frozenset(name_words(tool.server or ""))
    properties = schema.get("properties", {})
    for name, part in properties.items() if isinstance(properties, dict) else ():
        if not isinstance(part, dict) or any(bound in part for bound in _BOUNDS):
            continue
        why = _why(name, part, named)
        if why is not None:
            yield Broad(name, why)


def _why(name: str, part: Mapping[str, Any], named: frozenset[str]) -> Why | None:
    types = part.get("type") or ["string"]
    if "object" in types and not part.get("properties") and part.get("additionalProperties", True) is not False:
        return "anything"
    if part.get("default") == "*" or "*" in (part.get("examples") or ()):
        return "wildcard"
    if "string" not in types and "array" not in types:
        return None
    parts = frozenset(name_words(name))
    if parts & _CARRIES:
        return next((why for why, tools in _RUNS if tools & named), None)
    last = name_words(name)[-1:]
    return next((why for why, its in _NAMED if its.intersection(last)), None)
