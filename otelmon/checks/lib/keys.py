"""The idempotency keys of a conversation: its writes by effect and by key. Read once, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import msgspec

from otelmon.checks.lib.sameness import plain_name
from otelmon.vocabulary.event import ToolCall

if TYPE_CHECKING:
    from otelmon.checks.view import View

_LISTED = 8


class KeyPast(msgspec.Struct, frozen=True):
    """Earlier writes, at most 8 of each, oldest first: those with the effect of this call, and those with its
    idempotency key."""

    same_effect: tuple[ToolCall, ...]
    same_key: tuple[ToolCall, ...]


_NOTHING = KeyPast((), ())
_REMEMBERED: WeakKeyDictionary[View, dict[str, KeyPast]] = WeakKeyDictionary()


def key_past(call: ToolCall, view: View) -> KeyPast:
    """The earlier writes that a call with an idempotency key has to be compared with."""
    known = _REMEMBERED.get(view)
    if known is None:
        known = _REMEMBERED[view] = _walk(view)
    return known.get(call.key, _NOTHING)


def _walk(view: View) -> dict[str, KeyPast]:
    found: dict[str, KeyPast] = {}
    by_effect: dict[str, list[ToolCall]] = {}
    by_key: dict[tuple[str, ...], list[ToolCall]] = {}
    for call in view.calls:
        key = view.idempotency_key(call) if view.writes(call) else None
        if key is None:
            continue
        effects = by_effect.setdefault(view.effect_key(call), [])
        keys = by_key.setdefault((call.environment, call.service_namespace, call.server or "", key), [])
        found[call.key] = KeyPast(tuple(effects), tuple(keys))
        effects[:] = [*effects[1 - _LISTED :], call]
        keys[:] = [*keys[1 - _LISTED :], call]
    return found


def only_a_key(call: ToolCall, view: View) -> bool:
    """True when the key can be nothing but an idempotency key: not a request id or a reference, which several
    calls may share."""
    tool = view.tool(call)
    if call.idempotency_key or (tool and tool.idempotency_key):
        return True
    names = [plain_name(name) for name in call.arguments] if isinstance(call.arguments, dict) else []
    return any("idempot" in name or "dedup" in name for name in names) or any(h.idempotency_key for h in call.http)
