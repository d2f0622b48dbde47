"""What changed between two versions of a tool, sorted by what its callers notice. Pure.

`breaking`: a call made by the old definition may be refused now, or do something else. `text`: only what
the model reads. `annotations`: what the server says of the tool's nature. `compatible`: there is more
room than before. White space, the order of keys and defaults written out are no change.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Protocol

import msgspec

from otelmon.checks.lib.drift_normal import TooLargeError, normal, plain_text
from otelmon.checks.lib.drift_schema import CLASSES, Change, Class, Kind, schema_changes
from otelmon.checks.lib.instructions import read_description
from otelmon.checks.lib.verbs import classify_name
from otelmon.vocabulary.canonical import canonical, sha256
from otelmon.vocabulary.catalogue import Annotations
from otelmon.vocabulary.finding import Severity, level

__all__ = ["CLASSES", "Change", "Changes", "Class", "Described", "Kind", "compare", "version_hash"]
_SHOWN = 240
_ORDERING = frozenset(("override", "secrecy", "template", "hidden", "secret_paths"))
_HINTS = {  # what the specification assumes, and the value that promises less
    "read_only_hint": (False, False),
    "destructive_hint": (True, True),
    "idempotent_hint": (False, False),
    "open_world_hint": (True, True),
}
_WIRE = {
    "read_only_hint": "readOnlyHint", "destructive_hint": "destructiveHint",
    "idempotent_hint": "idempotentHint", "open_world_hint": "openWorldHint",
}  # fmt: skip
_WORDS: dict[Kind, str] = {
    "tool_added": "the tool is new",
    "tool_removed": "the tool is gone",
    "tool_renamed": "the tool has a new name",
    "description_changed": "its description says something else",
    "title_changed": "its title changed",
    "param_added_required": "{} is new and required",
    "param_added_optional": "{} is new",
    "param_removed": "{} is gone",
    "param_renamed": "{} has a new name",
    "required_tightened": "{} is required now",
    "required_relaxed": "{} is no longer required",
    "param_type_changed": "{} has another type",
    "param_type_widened": "{} takes more types",
    "enum_narrowed": "{} takes fewer or other values",
    "enum_widened": "{} takes more values",
    "param_description_changed": "{} is described otherwise",
    "param_text_changed": "{} reads otherwise",
    "text_directs": "the text of {} orders the agent about",
    "constraint_tightened": "{} is bounded more tightly",
    "constraint_relaxed": "{} is bounded less tightly",
    "constraint_changed": "{} is bounded otherwise",
    "default_added": "{} has a default",
    "default_changed": "{} has another default",
    "extras_forbidden": "{} takes no other keys any more",
    "extras_allowed": "{} takes other keys now",
    "hint_less_safe": "{} promises less",
    "hint_safer": "{} promises more",
    "hint_against_name": "{} promises more than the tool's name",
    "hint_written": "{} is said where it was assumed, or the other way round",
    "hint_title_changed": "its display title changed",
    "output_narrowed": "the result's {} is gone or of another type",
    "output_changed": "the result's {} changed",
    "schema_changed": "its schema changed, and is too large to compare",
}


class Described(Protocol):
    """What a version of a tool says of itself."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def input_schema(self) -> dict[str, Any] | None: ...
    @property
    def annotations(self) -> Annotations | None: ...


class Changes(msgspec.Struct, frozen=True):
    """All differences of two versions of one tool, the gravest first. Empty: they are one version."""

    tool: str
    changes: tuple[Change, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.changes)

    @property
    def worst(self) -> Class | None:
        """The class of the gravest change."""
        return self.changes[0].of if self.changes else None

    @property
    def classes(self) -> tuple[Class, ...]:
        """The classes there are, the gravest first."""
        return tuple(one for one in CLASSES if any(change.of == one for change in self.changes))

    @property
    def severity(self) -> Severity:
        """How grave all of it is: high for what breaks callers or makes the tool less safe."""
        return max((_severity(change) for change in self.changes), key=level, default="info")

    def words(self, most: int = 3) -> str:
        """The changes in words, the gravest first."""
        said = list(dict.fromkeys(in_words(change) for change in self.changes))
        return "; ".join(said[:most]) + (f"; and {len(said) - most} more" if len(said) > most else "")

    def facts(self, most: int = 20) -> list[dict[str, Any]]:
        """The changes as JSON data, long texts cut to the place where they differ."""
        return [_fact(change) for change in self.changes[:most]]


def compare(before: Described | None, after: Described | None, partial: bool = False) -> Changes:
    """What changed. None: there was, or is, no such tool. With `partial` a part that one of the two does
    not show (no schema, no description, no hints) is unknown, not gone: traces show what they show."""
    if before is None or after is None:
        name = (before or after).name if before or after else ""  # type: ignore[union-attr]
        if before is None and after is None:
            return Changes(name)
        kind: Change = Change("tool_added", "compatible") if before is None else Change("tool_removed", "breaking")
        return Changes(name, (kind,))
    found = [
        *_texts(before, after, partial),
        *_input(before, after, partial),
        *_output(before, after),
        *_annotations(before, after, partial),
    ]
    found.extend([_directing(change) for change in found if change.of == "text" and _directs(change)])
    found.sort(key=lambda change: (CLASSES.index(change.of), -level(_severity(change)), change.where, change.kind))
    return Changes(after.name, tuple(found))


def version_hash(tool: Described) -> str:
    """16 hex characters that two definitions share when they differ in form only."""
    hints = msgspec.to_builtins(tool.annotations) if tool.annotations else None
    if tool.input_schema is None:
        return sha256([plain_text(tool.description), None, hints])[7:23]
    raw = _raw(tool.input_schema)
    schema = _normal(raw)
    return sha256([plain_text(tool.description), raw.hex() if schema is None else schema, hints])[7:23]


def _raw(schema: dict[str, Any]) -> bytes:
    """Canonical bytes of a schema; all that are too deep to be read are one."""
    try:
        return canonical(schema)
    except RecursionError:
        return b"too deep"


@lru_cache(maxsize=2048)
def _normal(raw: bytes) -> dict[str, Any] | None:
    """The normal form of a schema, cached: every run shows the same ones. None: too large, or not JSON."""
    try:
        return normal(msgspec.json.decode(raw.removeprefix(b"x")))
    except (TooLargeError, RecursionError, msgspec.DecodeError):
        return None


def _texts(before: Described, after: Described, partial: bool) -> Iterator[Change]:
    one, other = plain_text(before.description), plain_text(after.description)
    if one != other and not (partial and not (one and other)):
        yield Change("description_changed", "text", "", before.description, after.description)
    titles = [plain_text(getattr(tool, "title", None) or "") for tool in (before, after)]
    if titles[0] != titles[1] and not (partial and not all(titles)):
        yield Change("title_changed", "text", "", *titles)


def _input(before: Described, after: Described, partial: bool) -> Iterator[Change]:
    if partial and (before.input_schema is None or after.input_schema is None):
        return
    yield from _schemas(before.input_schema or {}, after.input_schema or {})


def _schemas(one: dict[str, Any], other: dict[str, Any]) -> Iterator[Change]:
    before, after = _raw(one), _raw(other)
    first, second = _normal(before), _normal(after)
    if first is not None and second is not None:
        yield from schema_changes(first, second)
    elif before != after:
        yield Change("schema_changed", "breaking")


def _output(before: Described, after: Described) -> Iterator[Change]:
    """Results have no caller who could be refused: what can go wrong is that a part is missing."""
    one, other = (getattr(tool, "output_schema", None) for tool in (before, after))
    if one is None or other is None:
        return
    for change in _schemas(one, other):
        lost = change.kind in ("param_removed", "param_renamed", "param_type_changed", "param_type_widened")
        kind: Kind = "output_narrowed" if lost else "output_changed"
        of: Class = "breaking" if lost else "text" if change.of == "text" else "compatible"
        yield Change(kind, of, change.where, change.before, change.after)


def _annotations(before: Described, after: Described, partial: bool) -> Iterator[Change]:
    one, other = before.annotations, after.annotations
    if one == other or (partial and (one is None or other is None)):
        return
    one, other = one or Annotations(), other or Annotations()
    for name, (assumed, less) in _HINTS.items():
        said, says = getattr(one, name), getattr(other, name)
        if said == says:
            continue
        was, now = (assumed if value is None else value for value in (said, says))
        kind: Kind = "hint_written" if was == now else "hint_less_safe" if now == less else "hint_safer"
        if kind == "hint_safer" and _denies_its_name(after.name, name):
            kind = "hint_against_name"
        yield Change(kind, "annotations", _WIRE[name], said, says)
    if one.title != other.title:
        yield Change("hint_title_changed", "annotations", "title", one.title, other.title)


def _directs(change: Change) -> bool:
    """A text with a sign of orders to the agent that its former version did not have."""
    was, now = (_signs(value) for value in (change.before, change.after))
    return bool((now - was) & _ORDERING)


def _signs(value: Any) -> set[str]:
    passage = read_description(value if isinstance(value, str) else str(_said(value)))
    return set(passage.kinds) if passage else set()


def _directing(change: Change) -> Change:
    return Change("text_directs", "text", change.where, change.before, change.after)


def _denies_its_name(tool: str, hint: str) -> bool:
    """A tool named after a change that is declared to change or to destroy nothing."""
    effect = classify_name(tool).effect
    if hint == "read_only_hint":
        return effect in ("write", "destructive", "external_send")
    return hint == "destructive_hint" and effect == "destructive"


def _severity(change: Change) -> Severity:
    if change.of == "breaking" or change.kind in ("hint_less_safe", "hint_against_name", "text_directs"):
        return "high"
    return "low" if change.of == "compatible" or change.kind == "hint_title_changed" else "medium"


def in_words(change: Change) -> str:
    """One change in words."""
    return _WORDS[change.kind].format(change.where or "the tool")


def _fact(change: Change) -> dict[str, Any]:
    before, after = _excerpts(change.before, change.after)
    return {"kind": change.kind, "class": change.of, "where": change.where, "before": before, "after": after}


def _excerpts(before: Any, after: Any) -> tuple[Any, Any]:
    """The two values; of long ones the place where they begin to differ."""
    one, other = _said(before), _said(after)
    if max(len(str(one)), len(str(other))) <= _SHOWN:
        return one, other
    one, other = str(one), str(other)
    same = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    start = max(0, same - 40)
    return tuple(("…" if start else "") + text[start : start + _SHOWN] + ("…" if len(text) > start + _SHOWN else "") for text in (one, other))  # type: ignore[return-value]  # fmt: skip


def _said(value: Any) -> Any:
    return (
        value
        if value is None or isinstance(value, str | int | float | bool)
        else canonical(value).decode("utf-8", "replace")
    )
