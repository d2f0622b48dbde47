"""Calls that do what some text in the data orders, where the user asked for nothing of the kind.

Such text need not speak to a machine: "pay 900 to this account" in a mail is an order once somebody pays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from weakref import WeakKeyDictionary

import msgspec

from otelmon.checks.lib.directing import plain_direction, result_text
from otelmon.checks.lib.following import MAX_SAID, Act, following, is_address, names_another, wants_to_know
from otelmon.checks.lib.instructions import delegates, flatten, is_order, sentence_at
from otelmon.checks.lib.provenance import Lineage, lineage
from otelmon.checks.lib.provenance_roles import Role
from otelmon.checks.lib.values import compact, words_of
from otelmon.checks.view import View
from otelmon.vocabulary.event import AssistantMessage, ToolCall, UserMessage

MAX_PLACES = 12  # places of one value in one text that are looked at
_MIN = 6  # letters and digits of a value that is nobody's by chance
_PLACES: frozenset[Role] = frozenset(("email", "url", "phone", "id", "code", "other"))
_NAME = re.compile(r"[^.\[\]]+")


class Unrequested(msgspec.Struct, frozen=True):
    """All such calls of a conversation, by the key of the call, and of the call whose result has the order."""

    by_call: dict[str, tuple[Act, ...]]
    by_source: dict[str, tuple[Act, ...]]


_REMEMBERED: WeakKeyDictionary[View, Unrequested] = WeakKeyDictionary()


def unrequested(view: View) -> Unrequested:
    """The writes that carry out what only an order in data said; read once. The user only wanted to know, or (then
    the act is `excused`, as it may have been meant) named another place."""
    known = _REMEMBERED.get(view)
    if known is None:
        by_call: dict[str, tuple[Act, ...]] = {}
        by_source: dict[str, tuple[Act, ...]] = {}
        for act in _find(view):
            for table, key in ((by_call, act.call.key), (by_source, act.direction.anchor)):
                table[key] = (*table.get(key, ()), act)
        known = _REMEMBERED[view] = Unrequested(by_call, by_source)
    return known


def _find(view: View) -> Iterator[Act]:
    candidates = {call.key: lines for call in view.calls if (lines := tuple(_destinations(call, view)))}
    said = "\n".join(message.text for message in view.user_messages())
    if not candidates or delegates(said):
        return
    only_asked = wants_to_know(flatten(said[:MAX_SAID]))
    steered = following(view).by_call
    keys = {compact(str(line.value)) for lines in candidates.values() for line in lines}
    witnesses = _witnesses(keys, view)
    answered = _answered(keys, view)
    for call in view.calls:
        for line in candidates.get(call.key, ()) if call.key not in steered else ():
            key = compact(str(line.value))
            sources = [w for w in witnesses.get(key, ()) if w.position < call.position]
            orders = [_order(source, str(line.value)) for source in sources]
            meant = only_asked or names_another(str(line.value), said)
            if meant and orders and all(orders) and answered.get(key, call.position) >= call.position:
                direction = plain_direction(sources[0], orders[0])
                yield Act(call, direction, "destination", line.path, str(line.value), True, excused=not only_asked)


def _answered(keys: set[str], view: View) -> dict[str, int]:
    """Where the user answered after the agent had put a value forward: from there it is the user's as well."""
    found: dict[str, int] = {}
    pending: set[str] = set()
    for event in view.events:
        if isinstance(event, AssistantMessage):
            pending |= words_of(event.text).words & keys
        elif isinstance(event, UserMessage):
            for key in pending:
                found.setdefault(key, event.position)
            pending.clear()
    return found


def _destinations(call: ToolCall, view: View) -> Iterator[Lineage]:
    """Arguments that say where a write goes, and that a result said first. A page that is merely read is none:
    links in data are there to be followed."""
    if view.effect(call).effect in ("read", "unknown"):
        return
    for line in lineage(call, view):
        if line.source != "result" or line.position is None or not isinstance(line.value, str):
            continue
        if line.role not in _PLACES or len(compact(line.value)) < _MIN or len(line.value) > 200:
            continue
        name = (_NAME.findall(line.path) or [""])[-1]
        source = view.events[line.position]
        if line.role == "other" and not is_address(name, line.role, line.value):
            continue
        if isinstance(source, ToolCall) and _order(source, line.value):
            yield line


def _witnesses(keys: set[str], view: View) -> dict[str, list[ToolCall]]:
    """The results that have each value: one pass."""
    found: dict[str, list[ToolCall]] = {}
    for call in view.calls:
        for key in words_of(result_text(call)).words & keys:
            found.setdefault(key, []).append(call)
    return found


def _order(source: ToolCall, value: str) -> str:
    """The sentence that orders something with the value, when it stands in such sentences only."""
    flat, wanted = flatten(result_text(source)[:200_000]), flatten(value)
    first = ""
    start = flat.find(wanted)
    for _ in range(MAX_PLACES):
        if start < 0:
            return first
        sentence = sentence_at(flat, start)
        if not is_order(sentence):
            return ""
        first = first or sentence
        start = flat.find(wanted, start + len(wanted))
    return first
