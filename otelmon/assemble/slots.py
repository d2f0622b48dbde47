"""Calls that models asked for, each with the responses that histories show for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from otelmon.assemble.values import stable_bytes
from otelmon.vocabulary.canonical import sha256
from otelmon.vocabulary.reading import RequestedCall, ToolResponse

if TYPE_CHECKING:
    from otelmon.assemble.occurrences import Occurrence

_decoder = msgspec.json.Decoder()


@lru_cache(maxsize=16_384)
def _hash_of(key: bytes) -> str:
    return sha256(_decoder.decode(key))


def hash_of(value: Any) -> str:
    """`sha256:<hex>` over the canonical JSON of a value; remembered, since timelines are rebuilt."""
    key = stable_bytes(value)
    try:
        return _hash_of(key)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return sha256(value)


@dataclass(slots=True, eq=False)
class Group:
    """Consecutive assistant messages: their calls are one batch, in the order of `slots`."""

    number: int
    last: Occurrence
    slots: list[Slot] = field(default_factory=list)
    first_open: int = 0


@dataclass(slots=True, eq=False)
class Slot:
    """One requested call. `answer` is the occurrence of the first message that answers it."""

    request: RequestedCall
    node: Occurrence
    group: Group
    number: int
    arguments: bytes | None
    response: ToolResponse | None = None
    answer: Occurrence | None = None
    executions: int = 0
    aliases: list[Occurrence] = field(default_factory=list)


def arguments_key(request: RequestedCall) -> bytes | None:
    """None when the arguments are not known."""
    if request.fidelity in ("absent", "hashed", "truncated"):
        return None
    if request.arguments is None and request.arguments_text is not None:
        return b"t" + request.arguments_text.encode("utf-8", "backslashreplace")
    return stable_bytes(request.arguments if request.arguments is not None else {})


class SlotTable:
    """All requested calls of a conversation, in the order in which they were asked for."""

    def __init__(self) -> None:
        self.all: list[Slot] = []
        self._by_id: dict[str, list[Slot]] = {}
        self._by_call: dict[tuple[str, str, bytes | None], list[Slot]] = {}

    def add(self, node: Occurrence, group: Group, requests: Iterable[RequestedCall]) -> None:
        """Open a slot per request of a new assistant message."""
        for request in requests:
            slot = Slot(request, node, group, len(group.slots), arguments_key(request))
            group.slots.append(slot)
            self.all.append(slot)
            if request.tool_call_id:
                self._by_id.setdefault(request.tool_call_id, []).append(slot)
                self._by_call.setdefault((request.tool_call_id, request.tool_name, slot.arguments), []).append(slot)

    def same_call(self, request: RequestedCall) -> list[Slot]:
        """Known slots with this call id, name and arguments; empty without a call id."""
        if not request.tool_call_id:
            return []
        return self._by_call.get((request.tool_call_id, request.tool_name, arguments_key(request)), [])

    def answer(self, groups: Iterable[Group], response: ToolResponse, node: Occurrence) -> Slot | None:
        """Give a response to the slot it answers, or None when it answers no known call.

        In the batches just before it: by id, else by name, else by position. Call ids repeat
        inside a run, so an answered slot is passed over while an open one has the same id.
        """
        slot = next((found for group in groups if (found := self._in_group(group, response))), None)
        if slot is None and response.tool_call_id:
            slot = self._by_id_open(response.tool_call_id)
        if slot is None:
            return None
        if slot.response is None or (slot.answer is not None and slot.answer.time <= node.time):
            slot.response, slot.answer = response, slot.answer or node
        return slot

    def _by_id_open(self, call_id: str) -> Slot | None:
        same = self._by_id.get(call_id, [])
        return next((s for s in reversed(same[-16:]) if s.response is None), same[-1] if same else None)

    def _in_group(self, group: Group, response: ToolResponse) -> Slot | None:
        slots = group.slots
        while group.first_open < len(slots) and slots[group.first_open].response is not None:
            group.first_open += 1
        answered: Slot | None = None
        if response.tool_call_id:
            for index in range(group.first_open, len(slots)):
                if slots[index].request.tool_call_id == response.tool_call_id and slots[index].response is None:
                    return slots[index]
            answered = next((s for s in reversed(slots) if s.request.tool_call_id == response.tool_call_id), None)
            if answered is not None:
                return answered
        known = response.tool_call_id in self._by_id if response.tool_call_id else False
        free = [s for s in slots[group.first_open :] if s.response is None and not (s.request.tool_call_id and known)]
        return _by_name_or_place(slots, free, response.tool_name)


def _by_name_or_place(slots: list[Slot], free: list[Slot], name: str | None) -> Slot | None:
    """By name, where the batch has such a request at all; else by position. Results of one text are
    one message whatever tools they come from, so a name may have been used up."""
    if name:
        named = [s for s in slots if s.request.tool_name == name]
        if not named:
            return None
        free = [s for s in named if s.response is None and s in free] or free
    return free[0] if free else None
