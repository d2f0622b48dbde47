"""Which execution answers which request, and the calls that only message history shows.

A requested call without an execution is derived when a response proves that it ran. Without a
response nothing shows that it ran, and there is no call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from otelmon.assemble.merge import Execution
from otelmon.assemble.slots import Slot, SlotTable, hash_of
from otelmon.assemble.values import decode_payload
from otelmon.vocabulary.canonical import short_hash
from otelmon.vocabulary.reading import ToolFields


@dataclass(slots=True, eq=False)
class Called:
    """A call: an execution, the request it answers, or both. `ordinal` counts executions of one
    request from 0."""

    execution: Execution | None
    slot: Slot | None
    fields: ToolFields
    ordinal: int = 0


@dataclass(slots=True)
class _Pool:
    """Open slots under several keys; a slot taken under one key is gone under all."""

    taken: set[int] = field(default_factory=set)
    queues: dict[Hashable, deque[Slot]] = field(default_factory=dict)

    def add(self, key: Hashable, slot: Slot) -> None:
        self.queues.setdefault(key, deque()).append(slot)

    def take(self, key: Hashable) -> Slot | None:
        queue = self.queues.get(key)
        while queue:
            slot = queue.popleft()
            if id(slot) not in self.taken:
                self.taken.add(id(slot))
                return slot
        return None


def match(executions: Sequence[Execution], table: SlotTable) -> list[Called]:
    """Pair executions (in clock order) with requests (in message order), surest evidence first:
    call id with name and arguments, call id with name, then name with arguments, then name and
    order. An execution whose id belongs to a request that is taken is another attempt at it."""
    pool = _Pool()
    last: dict[Hashable, Slot] = {}
    for slot in table.all:
        for key in _slot_keys(slot):
            pool.add(key, slot)
            last[key] = slot
    found: dict[int, Slot] = {}
    for level in range(7):
        for execution in executions:
            if id(execution) in found:
                continue
            key = _execution_key(execution, level)
            slot = pool.take(key) if key is not None else None
            if slot is not None:
                found[id(execution)] = slot
    called = []
    for execution in executions:
        slot = found.get(id(execution)) or _another_attempt(execution, last)
        called.append(Called(execution, slot, _filled(execution.fields, slot), _count(slot)))
    return called


def _count(slot: Slot | None) -> int:
    if slot is None:
        return 0
    slot.executions += 1
    return slot.executions - 1


def _slot_keys(slot: Slot) -> Iterable[Hashable]:
    trace = slot.node.place.reading.trace_id
    call_id, name = slot.request.tool_call_id, slot.request.tool_name
    for arguments in _spellings(slot):
        if call_id:
            yield (0, trace, call_id, name, arguments)
            yield (1, call_id, name, arguments)
        yield (4, trace, name, arguments)
        yield (5, name, arguments)
    if call_id:
        yield (2, trace, call_id)
        yield (3, call_id, name)
    yield (6, trace, name)


def _spellings(slot: Slot) -> list[bytes]:
    """The arguments, and the bare value when there is only one: some dialects write it so."""
    if slot.arguments is None:
        return []
    arguments = slot.request.arguments
    if isinstance(arguments, dict) and len(arguments) == 1:
        return [slot.arguments, msgspec.json.encode(next(iter(arguments.values())), order="sorted")]
    return [slot.arguments]


def _execution_key(execution: Execution, level: int) -> Hashable:
    """The key to look under at this level; None when the level does not apply."""
    fields, arguments = execution.fields, execution.arguments
    trace, call_id, name = execution.reading.trace_id, fields.call_id, fields.name
    by_id: tuple[Hashable, ...] = (
        (0, trace, call_id, name, arguments) if arguments is not None else None,
        (1, call_id, name, arguments) if arguments is not None else None,
        (2, trace, call_id),
        (3, call_id, name) if arguments is None else None,
    )
    if level < 4:
        return by_id[level] if call_id else None
    if level == 4:
        return (4, trace, name, arguments) if arguments is not None else None
    if level == 5:
        return (5, name, arguments) if arguments is not None and not call_id else None
    return (6, trace, name) if arguments is None else None


def _another_attempt(execution: Execution, last: dict[Hashable, Slot]) -> Slot | None:
    for level in (0, 2):  # in the same trace only: elsewhere it belongs to a run of its own
        key = _execution_key(execution, level)
        if key is not None and key in last:
            return last[key]
    return None


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
