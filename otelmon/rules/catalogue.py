"""Loads the operator's catalogue: what tools are, and what is allowed. YAML or JSON, strict, with positions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec

from otelmon.checks.lib.argument_types import argument_mistakes
from otelmon.checks.lib.expressions import expression_mistakes
from otelmon.rules.shapes import Keys
from otelmon.rules.sources import source_problems
from otelmon.rules.yaml_source import Source, problems_of, read_yaml, refuse_if, value_at
from otelmon.vocabulary.catalogue import Catalogue, Policy, Tool
from otelmon.vocabulary.errors import Problem
from otelmon.vocabulary.finding import SEVERITIES


def load_catalogue(path: Path) -> Catalogue:
    """The catalogue of a file. Raises UserError with every mistake, each with its position."""
    source = read_yaml(path)
    refuse_if(catalogue_problems(source, ()))
    return msgspec.convert(source.data, Catalogue)


def catalogue_of(data: dict[str, Any]) -> Catalogue:
    """The catalogue of (validated) data; the version may be left out, as inline tests do."""
    return msgspec.convert({"version": 1, **data}, Catalogue)


def catalogue_problems(source: Source, path: Keys, versioned: bool = True) -> Iterator[Problem]:
    """What is wrong with the catalogue at `path` of a file."""
    data = value_at(source.data, path)
    whole = {"version": 1, **data} if isinstance(data, dict) and not versioned else data
    problems = list(problems_of(source, whole, Catalogue, path))
    yield from problems
    if problems or not isinstance(data, dict):
        return
    catalogue = msgspec.convert(whole, Catalogue)
    yield from _tool_problems(source, path, catalogue.tools)
    yield from source_problems(source, path, catalogue)
    yield from _policy_problems(source, path, catalogue.policy)
    yield from _argument_problems(source, path, catalogue)


def _tool_problems(source: Source, path: Keys, tools: tuple[Tool, ...]) -> Iterator[Problem]:
    seen: set[tuple[str, str | None]] = set()
    for index, tool in enumerate(tools):
        at = (*path, "tools", index)
        if (tool.name, tool.server) in seen:
            of = f" of server {tool.server}" if tool.server else ""
            yield source.problem((*at, "name"), f"tool {tool.name}{of} is given twice", "expected each tool once")
        seen.add((tool.name, tool.server))
        key = tool.idempotency_key
        if key is not None and (key.argument is None) == (key.attribute is None):
            yield source.problem((*at, "idempotency_key"), "idempotency_key names no place, or two", "expected argument or attribute")  # fmt: skip
        if tool.max_attempts is not None and tool.max_attempts < 1:
            yield source.problem((*at, "max_attempts"), f"max_attempts is {tool.max_attempts}", "expected 1 or more")


def _policy_problems(source: Source, path: Keys, policies: tuple[Policy, ...]) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        at = (*path, "policy", index)
        if policy.id in seen:
            yield source.problem((*at, "id"), f"policy {policy.id} is given twice", "expected each id once")
        seen.add(policy.id)
        if policy.severity is not None and policy.severity not in SEVERITIES:
            yield source.problem((*at, "severity"), f'severity is "{policy.severity}"', f"expected one of {', '.join(SEVERITIES)}")  # fmt: skip
        if policy.action == "after" and not policy.calls:
            yield source.problem(
                at, f"policy {policy.id}: calls is missing", "expected the tools that must come before"
            )
        if policy.action == "limit" and policy.max is None:
            yield source.problem(at, f"policy {policy.id}: max is missing", "expected the largest number of calls")
        if policy.when is not None:
            for wrong, do in expression_mistakes(policy.when):
                yield source.problem((*at, "when"), f"when: {wrong}", do=do)


def _argument_problems(source: Source, path: Keys, catalogue: Catalogue) -> Iterator[Problem]:
    """Conditions that name an argument no tool they are about has, or use it as what it is not."""
    for index, policy in enumerate(catalogue.policy):
        if policy.when is None or not policy.tools or expression_mistakes(policy.when):
            continue
        for wrong, do in argument_mistakes(policy.when, tools_meant(policy.tools, catalogue)):
            yield source.problem((*path, "policy", index, "when"), f"when: {wrong}", do=do)


def tools_meant(globs: Sequence[str], catalogue: Catalogue) -> list[Tool]:
    """The tools of a catalogue that these globs name; none when it is only a part of what exists."""
    if not catalogue.complete:
        return []
    return [tool for tool in catalogue.tools if any(fnmatchcase(tool.name, glob) for glob in globs)]
