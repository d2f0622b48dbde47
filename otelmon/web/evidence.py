"""Evidence of a finding, arranged for a person: origins of values, claims, other calls, plain facts.

A check may put any JSON there, and values come from agents: what does not have a known form is shown
as the JSON it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from otelmon.checks.lib.provenance import Lineage
from otelmon.checks.lib.provenance_roles import leaves, role_of
from otelmon.store.results import ArgumentOrigin, CallDetail, FindingDetail
from otelmon.vocabulary.event import ToolCall

T = TypeVar("T")
MOST = 50  # origins, claims or values shown of one finding
_RECORD_ROLES = frozenset(("id", "code", "email", "phone", "address", "name", "path", "url"))
_ORIGINS = {
    "none": "nobody gave it: it is in no text the agent saw",
    "tool_description": "nobody gave it: copied from the tool's description",
    "user": "the user said it",
    "system": "the instructions say it",
    "context": "a text the model was given",
    "result": "a tool answered it",
    "argument": "an earlier call used it",
    "proposal": "the agent proposed it and the user agreed",
    "run": "who the run acts for",
    "schema": "a constant of the tool's schema",
    "composed": "the agent's own words or settings",
}


class Origin(msgspec.Struct, frozen=True):
    """Where one argument came from. `position` of the event that had it, for a link."""

    path: str
    value: str
    origin: str
    how: str
    position: int | None
    flagged: bool
    sure: bool


class Claimed(msgspec.Struct, frozen=True):
    """One sentence of a message, and why it is not so."""

    sentence: str
    why: str
    tried: tuple[tuple[str, str], ...]


class OtherCall(msgspec.Struct, frozen=True):
    """A call the evidence names that is not stored beside the finding: only what the evidence kept of it."""

    title: str
    tool: str
    outcome: str
    trace_id: str
    arguments: str
    result: str
    start_time_unix_nano: int


class Arranged(msgspec.Struct, frozen=True):
    """Evidence as it is shown; `rest` is what has no form of its own, by name."""

    origins: tuple[Origin, ...]
    claims: tuple[Claimed, ...]
    calls: tuple[OtherCall, ...]
    rest: tuple[tuple[str, str], ...]


class _Facts(msgspec.Struct, frozen=True):
    """What checks keep of a call (checks/lib/pairs.py)."""

    anchor: str
    tool_name: str
    outcome: str
    trace_id: str = ""
    arguments: Any = None
    result: str | None = None
    start_time_unix_nano: int = 0


class _Tried(msgspec.Struct, frozen=True):
    tool: str
    outcome: str


class _Claim(msgspec.Struct, frozen=True):
    claim: str
    why: str
    tried: tuple[_Tried, ...] = ()


def arranged(found: FindingDetail) -> Arranged:
    """The evidence of a finding, without the calls that are shown beside it anyway."""
    evidence = found.finding.evidence
    beside = {detail.call.key for detail in found.calls}
    origins = (*_origins(evidence.get("arguments"), True), *_origins(evidence.get("lineage"), False))
    used_origins = bool(origins)
    origins = origins or tuple(_stored(found.calls))
    claims = tuple(_claims(evidence.get("claims")))
    facts = {name: fact for name, value in evidence.items() if (fact := _convert(value, _Facts)) is not None}
    calls = tuple(_other(name, fact) for name, fact in facts.items() if fact.anchor not in beside)
    used = {*facts, *(["arguments", "lineage"] if used_origins else []), *(["claims"] if claims else [])}
    rest = tuple((name, text) for name, value in evidence.items() if name not in used and (text := fact_text(value)))
    return Arranged(origins, claims, calls, rest)


def _origins(value: object, flagged: bool) -> Iterable[Origin]:
    for item in value[:MOST] if isinstance(value, list) else ():
        line = _convert(item, Lineage)
        if line is not None:
            how = "" if line.transformation in ("verbatim", "") else line.transformation
            yield Origin(line.path, fact_text(line.value), _ORIGINS[line.source], how, line.position, flagged, line.sure)  # fmt: skip


def _stored(calls: Sequence[CallDetail]) -> Iterable[Origin]:
    """Where the arguments of the latest of the calls came from, as the store keeps it: the evidence need not say."""
    detail = calls[-1] if calls else None
    values = {path: value for path, _, value in leaves(detail.call.arguments)} if detail else {}
    for line in detail.lineage[:MOST] if detail else ():
        how = "" if line.transformation in ("verbatim", "") else line.transformation
        yield Origin(line.path, fact_text(values.get(line.path)), origin_text(line), how, None, False, line.sure)


def origin_text(line: ArgumentOrigin) -> str:
    """Where an argument came from, in words; the tool that gave it by its name."""
    if line.from_tool and line.source in ("result", "argument"):
        return f"{line.from_tool} answered it" if line.source == "result" else f"a call of {line.from_tool} used it"
    return _ORIGINS.get(line.source, line.source)


def _claims(value: object) -> Iterable[Claimed]:
    for item in value[:MOST] if isinstance(value, list) else ():
        claim = _convert(item, _Claim)
        if claim is not None:
            yield Claimed(claim.claim, claim.why, tuple((tried.tool, tried.outcome) for tried in claim.tried[:MOST]))


def _other(name: str, fact: _Facts) -> OtherCall:
    title = {"this": "this call", "other": "the other call"}.get(name, name.replace("_", " "))
    return OtherCall(
        title, fact.tool_name, fact.outcome, fact.trace_id, fact_text(fact.arguments), fact.result or "",
        fact.start_time_unix_nano,
    )  # fmt: skip


def _convert(value: object, kind: type[T]) -> T | None:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return None


def fact_text(value: Any) -> str:
    """Plain text for what reads as such, JSON for what does not; "" for nothing."""
    if value is None or value == "" or value == [] or value == {}:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def record_of(calls: Sequence[CallDetail]) -> list[tuple[str, str]]:
    """(argument, value) of what names the record, person or place that the calls were about."""
    named: dict[tuple[str, str], None] = {}
    for detail in calls:
        for path, name, value in leaves(detail.call.arguments):
            if value not in (None, "") and role_of(name, value, {}) in _RECORD_ROLES:
                named[path, str(value)] = None
    return list(named)[:MOST]


def comparison(calls: Sequence[CallDetail]) -> str:
    """How the arguments of several calls of one tool differ; "" when there is nothing to compare."""
    if len(calls) < 2:
        return ""
    first, *others = [detail.call for detail in calls]
    if any(_incomparable(first, other) for other in others):
        return ""
    known = dict(_paths(first))
    differing = sorted({path for other in others for path, _ in set(known.items()) ^ set(_paths(other))})
    return "The arguments are the same." if not differing else f"The arguments differ in {', '.join(differing[:MOST])}."


def _incomparable(one: ToolCall, other: ToolCall) -> bool:
    return one.tool_name != other.tool_name or one.arguments is None or other.arguments is None


def _paths(call: ToolCall) -> list[tuple[str, str]]:
    return [(path, repr(value)) for path, _, value in leaves(call.arguments)]
