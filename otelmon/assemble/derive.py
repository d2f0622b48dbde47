"""Which execution answers which request, and the calls that only message history shows.

A requested call without an execution is derived when a response proves that it ran. Without a
response nothing shows that it ran, and there is no call.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import msgspec

from otelmon.assemble.merge import Execution
from otelmon.assemble.slots import Slot, SlotTable, hash_of
from otelmon.assemble.values import decode_payload, stable_bytes
from otelmon.vocabulary.canonical import short_hash
from otelmon.vocabulary.reading import ToolFields

_TRACE, _ID, _NAME, _ARGUMENTS, _RESULT = range(5)
# What must agree, surest first.
_AGREE = (
    (_TRACE, _ID, _NAME, _ARGUMENTS, _RESULT),
    (_TRACE, _ID, _NAME, _ARGUMENTS),
    (_ID, _NAME, _ARGUMENTS),
    (_TRACE, _ID),
    (_ID, _NAME),
    (_TRACE, _NAME, _ARGUMENTS, _RESULT),
    (_TRACE, _NAME, _ARGUMENTS),
    (_NAME, _ARGUMENTS),
    (_TRACE, _NAME, _RESULT),
    (_TRACE, _NAME),
)
_LEVELS = len(_AGREE)
_PICK = tuple(itemgetter(*fields) for fields in _AGREE)
_WHILE_OPEN = (0, 5, 8)  # an equal result is a hint only at the time
_BLIND = (4, 8, 9)  # only for executions that show no arguments
_WITHOUT_ID = 7  # only for executions without a call id: another trace is far away
_SAME_TRACE_BY_ID = (1, 3)

_Facts = tuple[str, str | None, str, bytes | None, str | None]


def _key(level: int, facts: _Facts) -> Hashable | None:
    fields = _AGREE[level]
    if (_ID in fields and not facts[_ID]) or (_ARGUMENTS in fields and facts[_ARGUMENTS] is None):
        return None
    return (level, *_PICK[level](facts))


def _slot_keys(slot: Slot, level: int) -> list[Hashable]:
    request, trace = slot.request, slot.node.place.reading.trace_id
    result = slot.response.text if slot.response else None
    spellings = _spellings(slot) if _ARGUMENTS in _AGREE[level] else [None]
    keys = (_key(level, (trace, request.tool_call_id, request.tool_name, a, result)) for a in spellings)
    return [key for key in keys if key is not None]


def _execution_key(execution: Execution, level: int) -> Hashable | None:
    fields, arguments = execution.fields, execution.arguments
    if (level in _BLIND and arguments is not None) or (level == _WITHOUT_ID and fields.call_id):
        return None
    trace = execution.reading.trace_id
    return _key(level, (trace, fields.call_id, fields.name, arguments, fields.result_text))


@dataclass(slots=True, eq=False)
class Called:
    """A call: an execution, the request it answers, or both. `ordinal` counts executions of one
    request from 0."""

    execution: Execution | None
    slot: Slot | None
    fields: ToolFields
    ordinal: int = 0


class _Pool:
    """Open slots under several keys; a slot taken under one key is gone under all."""

    def __init__(self, slots: Sequence[Slot]) -> None:
        self._all = slots
        self._levels: set[int] = set()
        self._taken: set[int] = set()
        self._slots: dict[Hashable, list[Slot]] = {}
        self._open: dict[Hashable, int] = {}
        self._first: dict[Hashable, int] = {}

    def index(self, level: int) -> None:
        """Make the keys of a level known; most levels are never needed."""
        if level in self._levels:
            return
        self._levels.add(level)
        for slot in self._all:
            for key in _slot_keys(slot, level):
                self._slots.setdefault(key, []).append(slot)

    @property
    def knows_requests(self) -> bool:
        return bool(self._all)

    def newest(self, key: Hashable) -> Slot | None:
        """The last slot under a key, taken or not."""
        slots = self._slots.get(key)
        return slots[-1] if slots else None

    def take_open_at(self, key: Hashable, time: int) -> Slot | None:
        """The first slot that was asked for before this time and answered after it. Times must not
        go back from call to call."""
        slots = self._slots.get(key, [])
        index = self._open.get(key, 0)
        while index < len(slots) and (id(slots[index]) in self._taken or _over(slots, index, time)):
            index += 1
        self._open[key] = index
        if index == len(slots) or slots[index].node.time > time:
            return None
        return self._take(slots[index])

    def take_first(self, key: Hashable) -> Slot | None:
        """The first slot, whatever the clocks say."""
        slots = self._slots.get(key, [])
        index = self._first.get(key, 0)
        while index < len(slots) and id(slots[index]) in self._taken:
            index += 1
        self._first[key] = index
        return self._take(slots[index]) if index < len(slots) else None

    def _take(self, slot: Slot) -> Slot:
        self._taken.add(id(slot))
        return slot


def _over(slots: list[Slot], index: int, time: int) -> bool:
    """Answered before this time; without an answer, when the next such request was made."""
    slot = slots[index]
    if slot.answer is not None:
        return slot.answer.time < time
    following = slots[index + 1] if index + 1 < len(slots) else None
    return following is not None and following.group is not slot.group and following.node.time <= time


def match(executions: Sequence[Execution], table: SlotTable) -> list[Called]:
    """Pair executions (in clock order) with requests (in message order), surest evidence first: call
    id, name, arguments and result; then less and less of it. At each step a request that was open
    at the time wins over the first one. An execution whose id belongs to a request that is taken is
    another attempt at it."""
    pool = _Pool(table.all)
    found: dict[int, Slot] = {}
    left = list(executions) if table.all else []
    for level in range(_LEVELS if left else 0):
        pool.index(level)
        for by_time in (True,) if level in _WHILE_OPEN else (True, False):
            left = _pair_up(left, pool, found, level, by_time)
        if not left:
            break
    called = []
    for execution in executions:
        answers = found.get(id(execution)) or _another_attempt(execution, pool)
        called.append(Called(execution, answers, _filled(execution.fields, answers), _count(answers)))
    return called


def _pair_up(
    executions: Iterable[Execution], pool: _Pool, found: dict[int, Slot], level: int, by_time: bool
) -> list[Execution]:
    """Returns the executions that are still without a request."""
    left = []
    for execution in executions:
        key = _execution_key(execution, level)
        slot = None
        if key is not None:
            slot = pool.take_open_at(key, execution.start) if by_time else pool.take_first(key)
        if slot is None:
            left.append(execution)
        else:
            found[id(execution)] = slot
    return left


def _count(slot: Slot | None) -> int:
    if slot is None:
        return 0
    slot.executions += 1
    return slot.executions - 1


def _spellings(slot: Slot) -> Sequence[bytes | None]:
    """The arguments, and the bare value when there is only one: some dialects write it so."""
    if slot.arguments is None:
        return []
    arguments = slot.request.arguments
    if isinstance(arguments, dict) and len(arguments) == 1:
        return [slot.arguments, stable_bytes(next(iter(arguments.values())))]
    return [slot.arguments]


def _another_attempt(execution: Execution, pool: _Pool) -> Slot | None:
    """In the same trace only: elsewhere it belongs to a run of its own."""
    if not pool.knows_requests or not execution.fields.call_id:
        return None
    for level in _SAME_TRACE_BY_ID:
        pool.index(level)
    keys = (_execution_key(execution, level) for level in _SAME_TRACE_BY_ID)
    return next((slot for key in keys if key is not None and (slot := pool.newest(key))), None)


def _filled(fields: ToolFields, slot: Slot | None) -> ToolFields:
    """What the span does not say, from the request and the response in the messages."""
    if slot is None:
        return fields
    request, response = slot.request, slot.response
    changes: dict[str, Any] = {}
    if fields.call_id is None and request.tool_call_id:
        changes["call_id"] = request.tool_call_id
    if _lacks_arguments(fields) and request.fidelity != "absent":
        changes["arguments"] = request.arguments
        changes["arguments_text"] = request.arguments_text
        changes["arguments_fidelity"] = request.fidelity
    if response is not None and fields.result_text is None and fields.result is None:
        changes["result_text"] = response.text
        changes["result"] = decode_payload(response.text)
        changes["result_fidelity"] = "decoded"
        if response.is_error:
            changes["signals"] = tuple(sorted({*fields.signals, "is_error"}))
    return msgspec.structs.replace(fields, **changes) if changes else fields


def _lacks_arguments(fields: ToolFields) -> bool:
    if fields.arguments_fidelity in ("absent", "truncated"):
        return True
    return fields.arguments is not None and not isinstance(fields.arguments, dict | list)


def derived(table: SlotTable) -> list[Called]:
    """Calls of requests that have a response and no execution."""
    found = []
    for slot in table.all:
        if slot.executions or slot.response is None:
            continue
        request, response = slot.request, slot.response
        fields = ToolFields(
            name=request.tool_name,
            raw_name=request.tool_name,
            call_id=request.tool_call_id,
            arguments=request.arguments,
            arguments_text=request.arguments_text,
            arguments_fidelity=request.fidelity,
            result=decode_payload(response.text),
            result_text=response.text,
            result_fidelity="decoded",
            signals=("is_error",) if response.is_error else (),
        )
        found.append(Called(None, slot, fields))
    return found


class DerivedKeys:
    """Identities of derived calls: the same whichever traces repeat the history."""

    def __init__(self, conversation_id: str) -> None:
        self._conversation = conversation_id
        self._seen: dict[tuple[str, str, str], int] = {}

    def key(self, call: Called, service: str) -> str:
        """Ask in the order in which the calls were requested."""
        arguments = hash_of(call.fields.arguments_text if call.fields.arguments is None else call.fields.arguments)
        same = (service, call.fields.call_id or call.fields.name, arguments)
        ordinal = self._seen.get(same, 0)
        self._seen[same] = ordinal + 1
        return "derived:" + short_hash(service, self._conversation, same[1], str(ordinal), arguments)
