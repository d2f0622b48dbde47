"""What a call does to the world: its class, whether twice is two, and what makes two writes one effect."""

from __future__ import annotations

import msgspec

from otelmon.vocabulary.canonical import sha256
from otelmon.vocabulary.catalogue import Effect, EffectSource, Repeat, Tool
from otelmon.vocabulary.event import ToolCall


class EffectOf(msgspec.Struct, frozen=True):
    """The effect of one call. `source` is the strongest source that decided: operator > hint > verb;
    "call" when the call itself (SQL verb, HTTP method, shell command) refined it. `repeat` is what
    sending it twice means. `known` is false when nothing but a guess stands behind `effect`."""

    effect: Effect
    repeat: Repeat
    source: EffectSource
    known: bool = True


def effect_of(call: ToolCall, tool: Tool | None, trusted: bool = False) -> EffectOf:
    """The effect of a call, from the weakest source to the strongest: name verbs, hints, operator."""
    effect: Effect = (tool.effect if tool else None) or "unknown"
    return EffectOf(
        effect, (tool.repeat if tool else None) or "additive", "operator" if effect != "unknown" else "none"
    )


def business_arguments(call: ToolCall, tool: Tool | None) -> dict[str, object]:
    """All arguments but volatile ones and the idempotency key; `identity` of the catalogue wins."""
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    return dict(arguments)


def effect_key(call: ToolCall, tool: Tool | None) -> str:
    """Hash of scope (environment, namespace, server) + tool + canonical business arguments."""
    return sha256(
        [call.environment, call.service_namespace, call.server, call.tool_name, business_arguments(call, tool)]
    )


def idempotency_key_of(call: ToolCall, tool: Tool | None) -> str | None:
    """The idempotency key the call was sent with, from any of the places it can be."""
    return call.idempotency_key
