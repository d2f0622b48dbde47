"""What changed between two catalogues, and which policies and rules rest on what changed. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from otelmon.checks.lib.drift import Change, Changes, Class, compare
from otelmon.checks.lib.drift_normal import plain_name
from otelmon.checks.lib.scopes import broad_scopes
from otelmon.rules.model import Rule
from otelmon.vocabulary.catalogue import Catalogue, Policy, Tool

_ARGUMENT = re.compile(r"arguments\s*(?:\.\s*(\w+)|\[\s*['\"]([^'\"]+)['\"]\s*\])")
_GONE = frozenset(("param_removed", "param_renamed"))
Key = tuple[str, str | None]


class ToolDiff(msgspec.Struct, frozen=True):
    """One tool that changed. `form_only`: the files differ, the tool does not. `touches` names what rests on it
    ("policy freeze", "sources of issue_refund"), `loses` what names an argument that is gone, `broad` the
    arguments that bound nothing and did not before."""

    tool: str
    server: str | None
    changes: Changes
    form_only: bool
    touches: tuple[str, ...] = ()
    loses: tuple[str, ...] = ()
    broad: tuple[str, ...] = ()

    @property
    def of(self) -> Class | str:
        """The class of the gravest change, or "form"."""
        return self.changes.worst or "form"


def diff(before: Catalogue, after: Catalogue, laws: Sequence[Catalogue] = (), rules: Iterable[Rule] = ()) -> list[ToolDiff]:  # fmt: skip
    """Tools that differ, in the order of their names. What a catalogue that holds only a part of the tools
    (`complete: false`) does not name is not gone. `laws` are the catalogues whose policy is asked, by default
    these two."""
    one, other = _by_key(before, after), _by_key(after, before)
    asked, known = laws or (before, after), list(rules)
    found = []
    for key in sorted(one.keys() | other.keys(), key=lambda key: (key[0], key[1] or "")):
        changed = _changed(one.get(key), other.get(key), after.complete, before.complete)
        if changed is not None:
            found.append(_with_touched(changed, one.get(key), other.get(key), asked, known))
    return _with_renamed(found, one, other)


def _by_key(catalogue: Catalogue, beside: Catalogue) -> dict[Key, Tool]:
    """Tools by name and server; by name alone where one of the two says no server and no name is there twice."""
    both = (catalogue.tools, beside.tools)
    unique = all(len({tool.name for tool in tools}) == len(tools) for tools in both)
    silent = any(not any(tool.server for tool in tools) for tools in both)
    return {(tool.name, None if unique and silent else tool.server): tool for tool in catalogue.tools}


def _changed(one: Tool | None, other: Tool | None, all_after: bool, all_before: bool) -> ToolDiff | None:
    if (other is None and not all_after) or (one is None and not all_before):
        return None
    tool = other or one
    if tool is None:
        return None
    changes = compare(one, other)
    form = not changes and one is not None and other is not None and _shown(one) != _shown(other)
    return ToolDiff(tool.name, tool.server, changes, form) if changes or form else None


def _shown(tool: Tool) -> tuple[Any, ...]:
    return tool.title, tool.description, msgspec.json.encode((tool.input_schema, tool.output_schema)), tool.annotations


def _with_touched(
    found: ToolDiff, one: Tool | None, other: Tool | None, laws: Sequence[Catalogue], rules: Sequence[Rule]
) -> ToolDiff:
    gone = {change.where for change in found.changes.changes if change.kind in _GONE}
    were = set(map(str, broad_scopes(one))) if one else set()
    return msgspec.structs.replace(
        found,
        touches=tuple(dict.fromkeys(_touched(found.tool, laws, rules))),
        loses=tuple(dict.fromkeys(_losing(found.tool, gone, laws, rules))),
        broad=tuple(str(one) for one in (broad_scopes(other) if other else ()) if str(one) not in were),
    )


def _touched(tool: str, laws: Sequence[Catalogue], rules: Sequence[Rule]) -> Iterator[str]:
    for catalogue in laws:
        yield from (f"policy {policy.id}" for policy in catalogue.policy if _concerns(policy, tool))
        for entry in catalogue.tools:
            if any(source.partition(".")[0] == tool for source in entry.sources.values()):
                yield f"sources of {entry.name}"
    yield from (f"rule {rule.id}" for rule in rules if _names(rule.raw.get("params"), tool))


def _losing(tool: str, gone: set[str], laws: Sequence[Catalogue], rules: Sequence[Rule]) -> Iterator[str]:
    if not gone:
        return
    for catalogue in laws:
        for policy in catalogue.policy:
            if _concerns(policy, tool) and gone & _arguments(policy.when or ""):
                yield f"policy {policy.id}"
        for entry in catalogue.tools:
            if entry.name == tool and gone & _own_arguments(entry):
                yield f"entry of {tool}"
    for rule in rules:
        params = rule.raw.get("params")
        if _names(params, tool) and any(gone & _arguments(text) for text in _texts(params)):
            yield f"rule {rule.id}"


def _concerns(policy: Policy, tool: str) -> bool:
    return any(fnmatchcase(tool, glob) for glob in (*policy.tools, *policy.calls))


def _names(params: Any, tool: str) -> bool:
    return any(text == tool or ("*" in text and text.strip("*") and fnmatchcase(tool, text)) for text in _texts(params))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)


def _arguments(condition: str) -> set[str]:
    return {dotted or quoted for dotted, quoted in _ARGUMENT.findall(condition)}


def _own_arguments(tool: Tool) -> set[str]:
    key = tool.idempotency_key.argument if tool.idempotency_key else None
    return {*(tool.identity or ()), *tool.volatile, *tool.sources, *([key] if key else [])}


def _with_renamed(found: list[ToolDiff], one: dict[Key, Tool], other: dict[Key, Tool]) -> list[ToolDiff]:
    """One tool went and one came that takes the same: it has a new name."""
    left = [d for d in found if d.changes.changes and d.changes.changes[0].kind == "tool_removed"]
    came = [d for d in found if d.changes.changes and d.changes.changes[0].kind == "tool_added"]
    by_name = {(tool.name, tool.server): tool for tool in (*one.values(), *other.values())}
    for gone in left:
        was = by_name[gone.tool, gone.server]
        heir = next((new for new in came if _is_heir(was, by_name[new.tool, new.server])), None)
        if heir is None:
            continue
        came.remove(heir)
        change = Change("tool_renamed", "breaking", "", gone.tool, heir.tool)
        renamed = msgspec.structs.replace(gone, changes=Changes(gone.tool, (change,)), broad=heir.broad)
        found = [renamed if d is gone else d for d in found if d is not heir]
    return found


def _is_heir(was: Tool, new: Tool) -> bool:
    if was.server != new.server:
        return False
    if plain_name(was.name) == plain_name(new.name):
        return True
    return bool(was.input_schema) and not compare(was, msgspec.structs.replace(new, name=was.name))
