"""One execution from the spans that show it: a client and its server, two instrumentations.

Two spans of one scope that do not overlap are two executions (retries are real), whatever their
call ids say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from otelmon.assemble.occurrences import overlapping
from otelmon.assemble.runs import Place, SpanKey, span_order
from otelmon.assemble.values import bind, stable_bytes
from otelmon.vocabulary.reading import HttpFields, Reading, ToolFields

SLACK_NANOS = 2_000_000
OPEN_CLUSTERS = 16
_SCALARS = (str, int, float)
_JOINTS = ("_", ".", "-", "/", ":")
_FILLED = (
    "call_id", "error_type", "error_message", "outcome_hint", "outcome_source", "server",
    "idempotency_key", "attempt", "retry_of", "approval", "effect_hint", "annotations",
)  # fmt: skip


@dataclass(slots=True, eq=False)
class Execution:
    """One execution. `members` are its spans, the anchor first; `start` places it among others."""

    members: list[Place]
    fields: ToolFields
    arguments: bytes | None
    start: int
    http: list[HttpFields] = field(default_factory=list)

    @property
    def place(self) -> Place:
        return self.members[0]

    @property
    def reading(self) -> Reading:
        return self.members[0].reading

    @property
    def order(self) -> tuple[int, int, str, str]:
        reading = self.members[0].reading
        return (self.start, reading.end_time_unix_nano, reading.trace_id, reading.span_id)


Schemas = Mapping[str, dict[str, Any]]


def executions(places: Mapping[SpanKey, Place], readings: Sequence[Reading], schemas: Schemas) -> list[Execution]:
    """The executions that the tool readings show, in clock order. `schemas` by tool name names the
    argument of calls that were written as a bare value."""
    single = {}
    parts: list[Place] = []
    for reading in sorted((r for r in readings if r.tool is not None), key=span_order):
        place = places[(reading.trace_id, reading.span_id)]
        if reading.kind == "tool":
            single[id(place)] = _single(place, schemas)
        else:
            parts.append(place)
    _join_parts(single.values(), parts)
    clusters = _nested(single)
    clusters = _pair(clusters, by_id=True)
    clusters = _pair(clusters, by_id=False)
    _attach_http(clusters, readings, places)
    clusters.sort(key=lambda execution: execution.order)
    return clusters


def _single(place: Place, schemas: Schemas) -> Execution:
    fields = place.reading.tool
    if fields is None:
        raise ValueError("a tool reading without tool fields")
    if isinstance(fields.arguments, _SCALARS) and not isinstance(fields.arguments, bool):
        bound = bind(fields.arguments, schemas.get(fields.name))
        if bound is not fields.arguments:
            fields = msgspec.structs.replace(fields, arguments=bound, arguments_fidelity="decoded")
    return Execution([place], fields, fields_key(fields), place.reading.start_time_unix_nano)


def _join_parts(found: Iterable[Execution], parts: Iterable[Place]) -> None:
    """Give to each call what spans below it say of it that are no calls themselves: the approval, the
    execution."""
    by_span = {(e.reading.trace_id, e.reading.span_id): e for e in found}
    for part in parts:
        above, fields = part.tool, part.reading.tool
        owner = by_span.get((above.trace_id, above.span_id)) if above else None
        if owner is not None and fields is not None:
            owner.members.append(part)
            owner.fields = join_fields(owner.fields, fields)
            owner.arguments = fields_key(owner.fields)


def fields_key(fields: ToolFields) -> bytes | None:
    """Comparable arguments of a tool span; None when it does not show them."""
    if fields.arguments_fidelity in ("absent", "hashed", "truncated", "redacted"):
        return None
    if fields.arguments is None:
        return b"t" + (fields.arguments_text or "").encode("utf-8", "backslashreplace")
    return stable_bytes(fields.arguments)


def _nested(single: dict[int, Execution]) -> list[Execution]:
    """Join a tool span with the tool span of the same call right above it."""
    by_span = {(e.reading.trace_id, e.reading.span_id): e for e in single.values()}
    inner: dict[int, list[Execution]] = {}
    for execution in single.values():
        above = execution.place.tool
        outer = by_span.get((above.trace_id, above.span_id)) if above and execution.place.direct else None
        if outer is not None and outer is not execution and _same_call_inside(outer, execution):
            inner.setdefault(id(outer), []).append(execution)
    child_ids = {id(_last_of(children)) for children in inner.values()}
    return [_join_down(execution, inner) for execution in single.values() if id(execution) not in child_ids]


def _last_of(children: list[Execution]) -> Execution:
    return max(children, key=lambda e: e.order)


def _join_down(top: Execution, inner: Mapping[int, list[Execution]]) -> Execution:
    """The chain from the outermost span down. An outer span around several attempts is one with
    the last of them; the others are executions of their own."""
    current, merged = top, top
    while children := inner.get(id(current)):
        last = _last_of(children)
        merged = _merged(merged, last, last.start if len(children) > 1 else merged.start)
        current = last
    return merged


def _same_call_inside(outer: Execution, child: Execution) -> bool:
    a, b = outer.reading, child.reading
    if not _same_name(outer.fields.name, child.fields.name) or _other_arguments(outer, child):
        return False
    if a.host != b.host or a.service_name != b.service_name:
        return True  # clocks of two hosts need not agree
    return a.start_time_unix_nano - SLACK_NANOS <= b.start_time_unix_nano <= a.end_time_unix_nano + SLACK_NANOS


def _same_name(outer: str, inner: str) -> bool:
    """Hosts put the server's name in front of the tool's."""
    return outer == inner or (outer.endswith(inner) and outer[: -len(inner)][-1:] in _JOINTS and inner != "")


def _other_arguments(one: Execution, other: Execution) -> bool:
    """Both show arguments, and they differ by more than the name of a single one."""
    if one.arguments is None or other.arguments is None or one.arguments == other.arguments:
        return False
    return _bare(one) != _bare(other)


def _bare(execution: Execution) -> bytes:
    """Comparable arguments in which a lone argument has no name: some dialects write it so."""
    arguments = execution.fields.arguments
    if isinstance(arguments, dict) and len(arguments) == 1:
        return stable_bytes(next(iter(arguments.values())))
    return execution.arguments or b""


def _pair(clusters: list[Execution], by_id: bool) -> list[Execution]:
    """Join what two instrumentations say of one execution: by call id, else by name and arguments."""
    groups: dict[tuple[str, bytes], list[Execution]] = {}
    done: list[Execution] = []
    for cluster in clusters:
        name, call_id = cluster.fields.name, cluster.fields.call_id
        if by_id and call_id:
            groups.setdefault((name, call_id.encode()), []).append(cluster)
        elif not by_id and cluster.arguments is not None:
            groups.setdefault((name, _bare(cluster)), []).append(cluster)
        else:
            done.append(cluster)
    for group in groups.values():
        done.extend(_pair_group(group) if len(group) > 1 else group)
    return done


def _pair_group(group: list[Execution]) -> list[Execution]:
    group.sort(key=lambda e: e.order)
    found: list[Execution] = []
    for cluster in group:
        first = max(0, len(found) - OPEN_CLUSTERS)
        for index in range(first, len(found)):
            if _twice_seen(found[index], cluster):
                one, other = sorted((found[index], cluster), key=lambda e: (not e.fields.call_id, e.order))
                found[index] = _merged(one, other, min(one.start, other.start))
                break
        else:
            found.append(cluster)
    return found


def _twice_seen(one: Execution, other: Execution) -> bool:
    if _scopes(one) & _scopes(other):
        return False
    if one.fields.call_id and other.fields.call_id and one.fields.call_id != other.fields.call_id:
        return False
    if one.reading.host != other.reading.host:
        return False
    return overlapping(one.reading, other.reading)


def _scopes(execution: Execution) -> set[tuple[str, str]]:
    return {(m.reading.scope_name, m.reading.dialect) for m in execution.members}


def _merged(one: Execution, other: Execution, start: int) -> Execution:
    fields = join_fields(one.fields, other.fields)
    return Execution([*one.members, *other.members], fields, fields_key(fields), start)


def join_fields(one: ToolFields, other: ToolFields) -> ToolFields:
    """The first, with what it lacks taken from the other; the signals of both count."""
    changes: dict[str, Any] = {
        name: getattr(other, name)
        for name in _FILLED
        if getattr(one, name) is None and getattr(other, name) is not None
    }
    named = not isinstance(one.arguments, dict) and isinstance(other.arguments, dict)
    if named or (fields_key(one) is None and other.arguments_fidelity != "absent"):
        for name in ("arguments", "arguments_text", "arguments_fidelity"):
            changes[name] = getattr(other, name)
    if not one.arguments_hash:
        changes["arguments_hash"] = other.arguments_hash
    if one.result_text is None and one.result is None:
        for name in ("result", "result_text", "result_fidelity"):
            changes[name] = getattr(other, name)
    if other.signals:
        changes["signals"] = tuple(sorted({*one.signals, *other.signals}))
    if not one.description:
        changes["description"] = other.description
    return msgspec.structs.replace(one, **changes)


def _attach_http(clusters: Iterable[Execution], readings: Sequence[Reading], places: Mapping[SpanKey, Place]) -> None:
    """HTTP client spans under a tool span are evidence of what it sent, in order."""
    owner = {(m.reading.trace_id, m.reading.span_id): e for e in clusters for m in e.members}
    for reading in sorted((r for r in readings if r.http is not None), key=span_order):
        above = places[(reading.trace_id, reading.span_id)].tool
        execution = owner.get((above.trace_id, above.span_id)) if above else None
        if execution is not None and reading.http is not None:
            execution.http.append(reading.http)
