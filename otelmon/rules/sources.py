"""What is wrong with the `sources` of a catalogue: arguments, tools and fields that do not exist."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

from otelmon.checks.lib.sources import Term, argument_path, mistakes, parse
from otelmon.rules.shapes import Keys
from otelmon.rules.yaml_source import Source
from otelmon.vocabulary.catalogue import Catalogue, Tool
from otelmon.vocabulary.errors import Problem


def source_problems(source: Source, path: Keys, catalogue: Catalogue) -> Iterator[Problem]:
    """What is wrong with the `sources` of the tools at `path` of a file."""
    for index, tool in enumerate(catalogue.tools):
        for argument, text in tool.sources.items():
            at = (*path, "tools", index, "sources", argument)
            yield from (source.problem(at, wrong, do=do) for wrong, do in _argument(argument, tool))
            yield from (source.problem(at, wrong, do=do) for wrong, do in mistakes(text))
            if not mistakes(text):
                unknown = (found for term in parse(text) for found in _term(term, catalogue))
                yield from (source.problem(at, wrong, do=do) for wrong, do in unknown)


def _argument(argument: str, tool: Tool) -> Iterator[tuple[str, str]]:
    if argument_path(argument) != argument:
        yield f'"{argument}" names one place of a list', "write items[].sku for all of them"
    first = argument.split(".")[0].split("[")[0]
    guess = _mistaken(first, [tool.input_schema])
    if guess:
        yield f"{tool.name} has no argument {first}", guess


def _term(term: Term, catalogue: Catalogue) -> Iterator[tuple[str, str]]:
    if term.kind is not None:
        return
    meant = [tool for tool in catalogue.tools if fnmatchcase(tool.name, term.tool)]
    if not meant and catalogue.complete:
        yield f"no tool is called {term.tool}", _guess(term.tool, [tool.name for tool in catalogue.tools])
    first = term.path[0].replace("[]", "")
    guess = _mistaken(first, [tool.output_schema for tool in meant])
    if guess and first != "*":
        yield f"{term.tool} gives no {first}", guess


def _mistaken(name: str, schemas: Sequence[dict[str, Any] | None]) -> str:
    """What must have been meant: none of the schemas has the name, and they forbid it or know a similar one.
    "" when it may exist."""
    known = [(schema or {}).get("properties") for schema in schemas]
    names = [set(fields) for fields in known if isinstance(fields, dict)]
    if not names or len(names) < len(schemas) or any(name in fields for fields in names):
        return ""
    guess = _guess(name, set().union(*names))
    closed = all((schema or {}).get("additionalProperties") is False for schema in schemas)
    return guess if closed or guess.startswith("did") else ""


def _guess(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, list(known), n=1)
    return f"did you mean {near[0]}?" if near else f"known: {', '.join(sorted(known))}"
