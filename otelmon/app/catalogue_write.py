"""Writes catalogues as the operator's file: what servers say is replaced, what the operator said is kept."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from otelmon.vocabulary.catalogue import Catalogue, Tool
from otelmon.vocabulary.errors import OtelmonError, Problem, UserError

_SAID = ("title", "description", "input_schema", "output_schema", "annotations")  # by the server, not the operator
_NUMERIC = tuple("0123456789+-.")  # what may begin a number, in the reader's YAML or another
_OTHER_BREAKS = frozenset("\x85\u2028\u2029")
Notes = Mapping[tuple[str, str | None], Mapping[str, str]]


def merged(known: Catalogue | None, tools: Sequence[Tool], server: str | None = None) -> Catalogue:
    """The catalogue with these tools as they are now. The operator's own fields and policy stay; of `server` (of
    all, when none is named) tools that are not there any more are taken out."""
    if known is None:
        return Catalogue(version=1, tools=tuple(tools))
    mine = {(tool.name, tool.server): tool for tool in known.tools}
    fresh = [_laid_over(mine.get((t.name, t.server)) or mine.get((t.name, None)), t) for t in tools]
    names = {tool.name for tool in tools}
    kept = [t for t in known.tools if server is not None and t.server != server and not (t.server is None and t.name in names)]  # fmt: skip
    return msgspec.structs.replace(known, tools=(*kept, *fresh))


def _laid_over(mine: Tool | None, now: Tool) -> Tool:
    if mine is None:
        return now
    said = {name: getattr(now, name) for name in _SAID}
    return msgspec.structs.replace(mine, server=now.server or mine.server, **said)


def as_yaml(catalogue: Catalogue, notes: Notes | None = None) -> str:
    """The operator's file as text. `notes` are comments by tool and field, written behind the field."""
    parts = [f"version: 1\ncomplete: {str(catalogue.complete).lower()}\n"]
    parts.append("tools:\n" if catalogue.tools else "tools: []\n")
    for tool in catalogue.tools:
        text = _block([plain(tool)])
        for field, note in (notes or {}).get((tool.name, tool.server), {}).items():
            text = _noted(text, field, note)
        parts.append("".join(f"  {line}\n" if line else "\n" for line in text.removesuffix("\n").split("\n")))
    if catalogue.policy:
        parts.append(_block({"policy": [msgspec.to_builtins(_without_defaults(one)) for one in catalogue.policy]}))
    return "".join(parts)


def as_json(catalogue: Catalogue) -> str:
    """The operator's file as JSON text."""
    whole: dict[str, Any] = {"version": 1, "complete": catalogue.complete, "tools": [plain(t) for t in catalogue.tools]}
    if catalogue.policy:
        whole["policy"] = [_without_defaults(one) for one in catalogue.policy]
    return msgspec.json.format(msgspec.json.encode(whole), indent=2).decode() + "\n"


def plain(tool: Tool) -> dict[str, Any]:
    """A tool as it stands in a file, without what says nothing."""
    return _without_defaults(tool)


def _without_defaults(value: msgspec.Struct) -> dict[str, Any]:
    kind = type(value)
    names = zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
    defaults = msgspec.structs.fields(kind)
    found: dict[str, Any] = {}
    for (name, wire), field in zip(names, defaults, strict=True):
        here = getattr(value, name)
        if here != field.default and not (here in ((), {}) and field.default is not None):
            found[wire] = msgspec.to_builtins(here)
    return found


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as they are read."""


def _text(dumper: _Dumper, text: str) -> yaml.Node:
    if _OTHER_BREAKS.intersection(text):
        style: str | None = '"'  # elsewhere they end a line
    elif "\n" in text:
        # A block that ends in empty lines would end the document too, and one that begins with spaces hides them.
        style = "|" if text[0] not in " \n" and not text.endswith("\n\n") else '"'
    else:
        style = "'" if text[:1] in _NUMERIC else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def _block(value: Any) -> str:
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110))


def _noted(text: str, field: str, note: str) -> str:
    """A comment behind a field of one line, before the tool otherwise."""
    lines = text.removesuffix("\n").split("\n")
    for number, line in enumerate(lines):
        goes_on = number + 1 < len(lines) and (not lines[number + 1] or lines[number + 1].startswith("    "))
        if line.startswith((f"  {field}: ", f"- {field}: ")) and not goes_on:
            lines[number] = f"{line}  # {note}"
            return "\n".join(lines)
    return "\n".join([f"# {note}", *lines])


def write_file(path: Path, text: str, check: Callable[[Path], object] | None = None) -> None:
    """Replace the file as a whole or not at all. `check` is asked about the new file first, and raises
    OtelmonError when it will not do. Raises UserError."""
    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:  # fmt: skip
            file.write(text)
    except OSError as error:
        raise UserError(Problem(str(path), f"can not be written ({error.strerror or error})")) from None
    fresh = Path(file.name)
    try:
        if check is not None:
            check(fresh)
        fresh.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o644)
        fresh.replace(path)
    except OtelmonError as error:
        why = "; ".join(str(problem).partition(": ")[2] for problem in error.problems)
        raise UserError(Problem(str(path), f"would not load any more ({why})", "", "correct it by hand first")) from None  # fmt: skip
    except OSError as error:
        raise UserError(Problem(str(path), f"can not be written ({error.strerror or error})")) from None
    finally:
        fresh.unlink(missing_ok=True)
