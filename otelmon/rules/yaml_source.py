"""Strict YAML that knows where everything stands: file:line:column for every value, all mistakes at once.

Read as YAML 1.2 JSON-like data: only `true`/`false` are booleans, only plain decimal numbers are
numbers; `no`, `on`, `1:30`, `007` and dates stay text. Keys are text, and never given twice. Tags are
refused; an alias stands for what it names, within a bound. JSON is read by the same code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from otelmon.rules.shapes import Key, Keys, mistakes
from otelmon.vocabulary.errors import Problem, UserError

T = TypeVar("T")

MAX_DEPTH = 64
MAX_VALUES = 200_000
MAX_DIGITS = 40  # a longer run of digits is no number that anybody counts with
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)\Z")
_NUMBER = re.compile(r"[-+]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?\Z")
_ESCAPE = re.compile(
    r"\\(?:(?P<pair>u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2}))|.)", re.DOTALL
)
_BREAKS = {ord("\t"): " ", 0x85: "\\N", 0x2028: "\\L", 0x2029: "\\P"}
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_CORE_TAGS = frozenset(f"tag:yaml.org,2002:{t}" for t in ("str", "seq", "map"))
_Loader: type[Any] = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class Source(msgspec.Struct, frozen=True):
    """A file, read: its data, and the line and column (from 1) of every value and key by path."""

    name: str
    data: Any
    marks: dict[Keys, tuple[int, int]]

    def where(self, path: Keys = ()) -> str:
        """`file:line:column` of the value at the path, or of the nearest thing around it."""
        while path and path not in self.marks:
            path = path[:-1]
        line, column = self.marks.get(path, (1, 1))
        return f"{self.name}:{line}:{column}"

    def problem(self, path: Keys, wrong: str, expected: str = "", do: str = "") -> Problem:
        return Problem(self.where(path), wrong, expected, do)


def read_yaml(path: Path, name: str | None = None) -> Source:
    """Read a YAML or JSON file. Raises UserError with every mistake of form."""
    label = name or str(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(
            Problem(label, f"can not be read ({error.strerror or error})", "", "give a readable file")
        ) from None
    except UnicodeDecodeError as error:
        raise UserError(
            Problem(label, f"is not UTF-8 text (byte {error.start})", "expected UTF-8", "save it as UTF-8")
        ) from None
    return parse_yaml(text.removeprefix("\ufeff"), label)


def parse_yaml(text: str, name: str = "<text>") -> Source:
    """Read YAML or JSON text. Raises UserError with every mistake of form."""
    try:
        node = yaml.compose(_from_json(text) if text.lstrip()[:1] in ("{", "[") else text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        raise UserError(_syntax_problem(name, error)) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise UserError(Problem(name, f"is not YAML ({error})".replace("\n", " "))) from None
    reader = _Reader(name)
    data = reader.value(node, ()) if node is not None else None
    if reader.problems:
        raise UserError(*reader.problems)
    return Source(name, data, reader.marks)


def decode(source: Source, kind: type[T], path: Keys = ()) -> T:
    """The value at `path` as a `kind`. Raises UserError with every mistake, each with its position."""
    value = value_at(source.data, path)
    refuse_if(problems_of(source, value, kind, path))
    return msgspec.convert(value, kind)


def refuse_if(problems: Iterable[Problem]) -> None:
    """Raises UserError with the problems in the order of the file, when there are any."""
    found = sorted(dict.fromkeys(problems), key=_place)
    if found:
        raise UserError(*found)


def _place(problem: Problem) -> tuple[int, ...]:
    return tuple(int(part) for part in problem.where.rsplit(":", 2)[1:] if part.isdecimal())


def problems_of(source: Source, value: Any, kind: Any, path: Keys = ()) -> Iterator[Problem]:
    """What is wrong with a value that should be a `kind`, with positions."""
    for mistake in mistakes(value, kind, path):
        yield source.problem(mistake.path, mistake.wrong, mistake.expected, mistake.do)


def value_at(data: Any, path: Keys) -> Any:
    for key in path:
        data = data[key]
    return data


def _from_json(text: str) -> str:
    """JSON as YAML can read it: without tabs (which JSON has between values only), line separators of
    Unicode escaped, and characters beyond the first plane as themselves, not as two escapes."""
    return _ESCAPE.sub(_joined, text.translate(_BREAKS))


def _joined(escape: re.Match[str]) -> str:
    if not escape["pair"]:
        return escape[0]
    units = bytes.fromhex(escape["high"] + escape["low"])
    return units.decode("utf-16-be")


def _syntax_problem(name: str, error: yaml.MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    where = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
    said = " ".join(p for p in (error.context, error.problem) if p)
    return Problem(where, f"is not YAML: {said}")


class _Reader:
    """Turns nodes into data, keeping positions and gathering mistakes of form."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.marks: dict[Keys, tuple[int, int]] = {}
        self.problems: list[Problem] = []
        self._values = 0

    def value(self, node: yaml.Node, path: Keys) -> Any:
        if path not in self.marks:
            self.marks[path] = (node.start_mark.line + 1, node.start_mark.column + 1)
        self._values += 1
        if self._values > MAX_VALUES:
            return self._too_many(node)
        if len(path) > MAX_DEPTH:
            return self._refuse(node, f"nested deeper than {MAX_DEPTH} levels")
        if node.tag not in _CORE_TAGS:
            return self._refuse(node, f"tag {node.tag}", "plain YAML without tags", "remove the tag")
        if isinstance(node, yaml.MappingNode):
            return self._map(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        return node.value if getattr(node, "style", None) else _scalar(node.value)

    def _map(self, node: yaml.MappingNode, path: Keys) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._refuse(key_node, "a key that is a list or a map", "text")
                continue
            key = key_node.value
            at: tuple[Key, ...] = (*path, key)
            if key in found:
                line = self.marks[at][0]
                self._refuse(key_node, f"{key} is given twice (first in line {line})", "each key once", "remove one")
                continue
            if key == "<<" and not key_node.style:
                self._refuse(key_node, "a merge key (<<)", "the values themselves", "write them out again")
                continue
            self.marks[at] = (key_node.start_mark.line + 1, key_node.start_mark.column + 1)
            found[key] = self.value(value_node, at)
        return found

    def _too_many(self, node: yaml.Node) -> None:
        if self._values == MAX_VALUES + 1:
            self._refuse(node, f"more than {MAX_VALUES} values, counting what aliases repeat")

    def _refuse(self, node: yaml.Node, wrong: str, expected: str = "", do: str = "") -> None:
        where = f"{self.name}:{node.start_mark.line + 1}:{node.start_mark.column + 1}"
        self.problems.append(Problem(where, wrong, expected and f"expected {expected}", do))


def _scalar(text: str) -> Any:
    if text.lower() in _WORDS and text in (text.lower(), text.upper(), text.capitalize()):
        return _WORDS[text.lower()]
    if _INTEGER.match(text):
        return int(text) if len(text) < MAX_DIGITS else text
    if _NUMBER.match(text):
        return float(text)
    return text
