"""Calls sent again: the same tool with the same arguments, inside one stretch of work. Read once, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from weakref import WeakKeyDictionary

import msgspec

from otelmon.checks.lib.polling import lets_time_pass
from otelmon.checks.lib.sameness import comparable, is_volatile, plain_name
from otelmon.checks.lib.verbs import words
from otelmon.checks.view import View
from otelmon.vocabulary.canonical import short_hash
from otelmon.vocabulary.event import ToolCall

_LISTED, _CHANGES = 16, 8
_TIMES = words(
    """ts timestamp time date at createdat updatedat sentat now elapsed elapsedms duration durationms took tookms latency
    latencyms requestid traceid correlationid etag nonce servertime expiresat"""
)
_IDS = ("id", "ids", "uuid", "guid", "ref", "reference", "key", "number", "token")
_MAX_RESULT, _MAX_DEPTH = 20_000, 6
_ENCODER = msgspec.json.Encoder(order="deterministic")


class Past(msgspec.Struct, frozen=True):
    """What came before a call in its stretch.

    `same`: the latest earlier calls with its fingerprint, at most 16, oldest first; `same_before` how many
    there were. `failures`: how many of them in a row ended badly just before. `of_tool`: the latest earlier
    calls of its tool; `tool_failures` how many calls of the tool in a row ended badly just before.
    `changed_since` is true when something may have changed since the latest of `same`; `in_a_row` when no other
    call of the stretch came between it and this one.
    """

    same: tuple[ToolCall, ...]
    same_before: int
    failures: int
    of_tool: tuple[ToolCall, ...]
    tool_failures: int
    changed_since: bool
    in_a_row: bool


_NOTHING = Past((), 0, 0, (), 0, False, False)
_REMEMBERED: WeakKeyDictionary[View, dict[str, Past]] = WeakKeyDictionary()


class _Trail:
    """The calls of one fingerprint, or of one tool, in one stretch."""

    __slots__ = ("calls", "failures", "total")

    def __init__(self) -> None:
        self.calls: list[ToolCall] = []
        self.total = 0
        self.failures = 0

    def add(self, call: ToolCall) -> None:
        self.calls = [*self.calls[1 - _LISTED :], call]
        self.total += 1
        self.failures = self.failures + 1 if ended_badly(call) else 0


def ended_badly(call: ToolCall) -> bool:
    """True when the call is not known to have done its work."""
    return call.outcome in ("failed", "denied", "unknown")


def past(call: ToolCall, view: View) -> Past:
    """What came before the call in its stretch of work."""
    known = _REMEMBERED.get(view)
    if known is None:
        known = _REMEMBERED[view] = _walk(view)
    return known.get(call.key, _NOTHING)


def stretch(call: ToolCall) -> tuple[object, ...]:
    """What a repeat is looked for in: one turn of the user (without user text one run) of one agent."""
    return (call.turn or call.run_id, call.agent_name)


def fingerprint(call: ToolCall, view: View) -> str:
    """What makes two calls the same: scope, tool, and the arguments as they were written (another type is a
    mended call). Volatile ones count only when there are no others (a note to itself). A call whose
    arguments can not be compared is like no other."""
    if not comparable(call):
        return call.key
    scope = (call.environment, call.service_namespace, call.server or "", call.tool_name)
    return "\x1f".join((*scope, call.arguments_hash if call.arguments is None else _written(call, view)))


def _written(call: ToolCall, view: View) -> str:
    kept = call.arguments
    if isinstance(kept, dict):
        tool = view.tool(call)
        volatile = tool.volatile if tool else ()
        kept = {k: v for k, v in kept.items() if not is_volatile(k) and k not in volatile} or kept
    try:
        return _ENCODER.encode(kept).decode()
    except (TypeError, ValueError, UnicodeError):
        return repr(kept)


def _walk(view: View) -> dict[str, Past]:
    found: dict[str, Past] = {}
    same: dict[tuple[object, ...], _Trail] = {}
    tools: dict[tuple[object, ...], _Trail] = {}
    changes: deque[ToolCall] = deque(maxlen=_CHANGES)
    latest: dict[tuple[object, ...], ToolCall] = {}
    for call in view.calls:
        where = stretch(call)
        mine = same.setdefault((where, fingerprint(call, view)), _Trail())
        tool = tools.setdefault((where, call.tool_name, call.server), _Trail())
        changed = bool(mine.calls) and _changed_since(mine.calls[-1], changes)
        found[call.key] = Past(
            same=tuple(mine.calls),
            same_before=mine.total,
            failures=mine.failures,
            of_tool=tuple(tool.calls),
            tool_failures=tool.failures,
            changed_since=changed,
            in_a_row=bool(mine.calls) and mine.calls[-1] is latest[where],
        )
        latest[where] = call
        mine.add(call)
        tool.add(call)
        if _may_change(call, view):
            changes.append(call)
    return found


def _changed_since(last: ToolCall, changes: Iterable[ToolCall]) -> bool:
    """True when something may have changed after this call, or while it ran."""
    return any(
        c is not last and (c.position > last.position or c.end_time_unix_nano > last.start_time_unix_nano)
        for c in changes
    )


def _may_change(call: ToolCall, view: View) -> bool:
    """True when the world may look different after this call, or when it let time pass."""
    if lets_time_pass(call):
        return True
    return view.effect(call).effect != "read" and call.outcome not in ("failed", "denied")


def sent_at_once(first: ToolCall, second: ToolCall) -> bool:
    """True when the second was decided on before the first had answered: it is no answer to it."""
    if first.tool_call_id and first.tool_call_id == second.tool_call_id:
        return False  # one request executed again
    return first.batch == second.batch or second.start_time_unix_nano < first.end_time_unix_nano


def what_came_back(call: ToolCall, view: View) -> str:
    """A digest of the answer without what differs between two equal answers: times and request ids; of a
    write also the ids it made up. "" when no answer can be seen."""
    if call.result is None and not call.result_text:
        return ""
    return short_hash(f"{call.outcome}\x1f{_stripped(call, view.writes(call))}")


def _stripped(call: ToolCall, writes: bool) -> str:
    if isinstance(call.result, dict | list):
        return repr(_without_volatile(call.result, writes, 0))[:_MAX_RESULT]
    text = call.result_text if call.result_text is not None else str(call.result)
    return text[:_MAX_RESULT]


def _without_volatile(value: object, writes: bool, depth: int) -> object:
    if depth > _MAX_DEPTH:
        return value
    if isinstance(value, dict):
        kept = ((str(k), v) for k, v in value.items() if not _volatile(str(k), writes))
        return sorted(((k, _without_volatile(v, writes, depth + 1)) for k, v in kept), key=lambda pair: pair[0])
    if isinstance(value, list):
        return [_without_volatile(v, writes, depth + 1) for v in value[:200]]
    return value


def _volatile(name: str, writes: bool) -> bool:
    short = plain_name(name)
    return short in _TIMES or (writes and short.endswith(_IDS))


def spans(*calls: ToolCall) -> tuple[str, ...]:
    """Span ids for evidence, each once."""
    return tuple(dict.fromkeys(span for call in calls for span in (call.span_ids or (call.span_id,))))
