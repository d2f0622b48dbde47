"""The histories that the ledger keeps a write in beside that of its effect: what asked for it, its idempotency key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, cast
from weakref import WeakKeyDictionary

from otelmon.checks.lib.asking import request_text
from otelmon.checks.lib.keys import only_a_key
from otelmon.checks.lib.wording import agrees, only_thanks
from otelmon.vocabulary.canonical import sha256
from otelmon.vocabulary.event import ToolCall

if TYPE_CHECKING:
    from otelmon.checks.view import View

HistoryKind = Literal["effect", "request", "key"]
_KINDS = ("request", "key")
MAX_LISTED = 20  # writes of a run in the history of its request, and of a trace under one idempotency key
_SHORTEST = 12  # characters of a request whose words can tell it from others


def history_kind(key: str) -> HistoryKind:
    """What the entries under a key of the ledger share: their effect, what asked for them, or their idempotency key."""
    kind = key.partition(":")[0]
    return cast("HistoryKind", kind) if kind in _KINDS else "effect"


def history_keys(call: ToolCall, view: View) -> tuple[str, ...]:
    """The keys under which other conversations may have writes of the same request, or with the same idempotency
    key. A key that may be a number of the conversation (`request_id: 3`) is in none, nor are more than the first
    MAX_LISTED writes of a run, or under a key."""
    known = _REMEMBERED.get(view)
    if known is None:
        known = _REMEMBERED[view] = _walk(view)
    return known.get(call.key, ())


_REMEMBERED: WeakKeyDictionary[View, dict[str, tuple[str, ...]]] = WeakKeyDictionary()


def _walk(view: View) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    listed: Counter[tuple[str, str]] = Counter()
    for call in view.calls:
        if call.outcome in ("succeeded", "unknown") and view.writes(call):
            keys = [
                (key, call.run_id if history_kind(key) == "request" else call.trace_id) for key in _keys(call, view)
            ]
            listed.update(keys)
            found[call.key] = tuple(key for key, where in keys if listed[key, where] <= MAX_LISTED)
    return found


def _keys(call: ToolCall, view: View) -> Iterator[str]:
    run = view.run_of(call)
    scope = [call.environment, call.service_namespace]
    trigger, words = call.trigger or run.trigger, request_text(call, view)
    if trigger:
        yield "request:" + sha256([*scope, "trigger", run.agent_name, trigger])
    elif tells(words, named=True):
        yield "request:" + sha256([*scope, "words", run.agent_name, words])
    key = view.idempotency_key(call)
    if key and only_a_key(call, view):
        yield "key:" + sha256([*scope, call.server or "", key])


def tells(text: str, named: bool) -> bool:
    """True when the words of a request can tell it from others: no mere yes or thanks; `named`: it has a number or
    an id in it, so that two people do not write it by chance."""
    if len(text) < _SHORTEST or only_thanks(text) or (len(text) < 4 * _SHORTEST and agrees(text)):
        return False
    return not named or sum(c.isdigit() for c in text) > 1
