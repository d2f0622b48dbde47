"""Rules in words: system text that demands the user's yes before an effect."""

from __future__ import annotations

import re
from functools import lru_cache

from otelmon.checks.lib.verbs import name_words
from otelmon.checks.lib.wording import says
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall

_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
_MAX_TEXT = 100_000
KINDS = ("deletion", "cancellation", "irreversible", "payment", "change")


def demands(text: str) -> tuple[tuple[str, str], ...]:
    """(kind of effect, sentence) for each sentence that says the effect needs a person's yes."""
    return _demands(text[:_MAX_TEXT])


@lru_cache(maxsize=64)
def _demands(text: str) -> tuple[tuple[str, str], ...]:
    found = []
    for sentence in _SENTENCE.split(text):
        if says("confirmation.demand", sentence) and says("confirmation.necessity", sentence):
            found += [(kind, sentence.strip()[:300]) for kind in KINDS if says(f"confirmation.{kind}", sentence)]
    return tuple(found)


def demand_on(call: ToolCall, view: View) -> str | None:
    """The sentence of the instructions that demands a yes for a call like this, or None."""
    kinds = _kinds_of(call, view)
    if not kinds:
        return None
    for message in view.system_messages:
        if message.position < call.position:
            for kind, sentence in demands(message.text):
                if kind in kinds:
                    return sentence
    return None


def _kinds_of(call: ToolCall, view: View) -> set[str]:
    """Which kinds of demand speak about this call. Only effects that can not be taken back."""
    effect = view.effect(call)
    if effect.effect != "destructive":
        return set()
    if effect.source == "call":
        return {"irreversible", "deletion", "change"}
    words = " ".join(name_words(call.tool_name))
    return {"irreversible", "change"} | {kind for kind in KINDS if says(f"confirmation.{kind}", words)}
