"""The reference of the HTTP API, from its routes, its reads and the types they answer with."""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Iterator
from typing import Any

import msgspec

from otelmon.web.api import OWN_HEADER, described
from otelmon.web.reads import READS

HEAD = f"""\
# HTTP API

On the address of the pages (`web.listen`). Answers are JSON; an error is `{{"error": "where: what is wrong; what was
expected; what to do"}}` with 400 for a mistake in the request, 404 for an id or a read that does not exist, 503 when
this process has no store. Times are nanoseconds since the epoch.

- `web.token`, when set, is asked for as `Authorization: Bearer TOKEN` or as the password of HTTP basic authentication.
- Every POST needs the header `{OWN_HEADER}: 1`: a foreign page can not set it.
- On a loopback address only requests under a name of this machine are answered (421 else).
"""


def api_page() -> str:
    """Routes, reads with their parameters, and the types of the answers."""
    parts = [HEAD, "## Addresses\n", "| method | path | what |", "|---|---|---|"]
    parts += [f"| {method} | `{path}` | {doc} |" for method, path, doc in described()]
    parts += ["\n## Reads\n\n`GET /api/v1/NAME?parameter=value`. Parameters without a default are needed.\n"]
    kinds: dict[type[msgspec.Struct], None] = {}
    for name, read in READS.items():
        needs = f" Needs the header `{OWN_HEADER}`." if read.works else ""
        parts += [f"### {name}\n\n{read.doc}{needs} Answers {_shown(read.result)}.\n"]
        rows = list(_parameters(read.params))
        parts += [*(["| parameter | type | default |", "|---|---|---|", *rows, ""] if rows else [])]
        kinds.update(dict.fromkeys(_structs(read.result)))
    parts.append("## Types\n")
    for kind in sorted(kinds, key=lambda kind: kind.__name__):
        parts += [f"### {kind.__name__}\n\n{_doc(kind)}\n", "| field | type |", "|---|---|"]
        parts += [f"| `{field}` | {_cell(hint)} |" for field, hint in _hints(kind)] + [""]
    return "\n".join(parts).rstrip() + "\n"


def _parameters(params: type[msgspec.Struct]) -> Iterator[str]:
    hints = dict(_hints(params))
    for field in msgspec.structs.fields(params):
        default = (
            "needed" if field.required else "-" if field.default in (None, "") else f"`{str(field.default).lower()}`"
        )
        yield f"| `{field.name}` | {_shown(hints[field.name])} | {default} |"


def _hints(kind: type[msgspec.Struct]) -> Iterator[tuple[str, Any]]:
    """Fields as they stand in the JSON: with the tag first, when there is one."""
    config = kind.__struct_config__
    if config.tag is not None:
        yield str(config.tag_field), typing.Literal[config.tag]
    hints = typing.get_type_hints(kind)
    for name, encoded in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True):
        yield encoded, hints[name]


def _structs(hint: Any) -> Iterator[type[msgspec.Struct]]:
    """Every struct in a type, those of its fields too."""
    todo, seen = [hint], set()
    while todo:
        here = todo.pop()
        if isinstance(here, type) and issubclass(here, msgspec.Struct):
            if here not in seen:
                seen.add(here)
                yield here
                todo.extend(inner for _, inner in _hints(here))
        else:
            todo.extend(typing.get_args(here) if typing.get_origin(here) is not typing.Literal else ())


def _shown(hint: Any) -> str:
    """A type in words of JSON, its structs as links."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return " or ".join(f"`{value}`" for value in args)
    if origin in (types.UnionType, typing.Union):
        return " or ".join(_shown(arg) for arg in args if arg is not type(None))
    if origin in (tuple, list):
        return f"a list of {_shown(args[0])}"
    if origin is dict:
        return f"an object of {_shown(args[1])}"
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return f"[{hint.__name__}](#{hint.__name__.lower()})"
    return {str: "text", int: "whole number", float: "number", bool: "true or false"}.get(hint, "any JSON")


def _cell(hint: Any) -> str:
    optional = type(None) in typing.get_args(hint)
    return _shown(hint) + (", or null" if optional else "")


def _doc(kind: type) -> str:
    return re.sub(r"\s*\n\s*", " ", inspect.cleandoc(kind.__doc__ or ""))
