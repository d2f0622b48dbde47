"""What can be said of tools before anybody looked at them: effects with source and confidence, and a first
operator's file with every guess marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from otelmon.app.catalogue_write import as_yaml
from otelmon.checks.lib.effects import EffectOf, effect_of_tool
from otelmon.checks.lib.scopes import broad_scopes
from otelmon.checks.lib.verbs import classify_name, name_words
from otelmon.vocabulary.catalogue import Catalogue, IdempotencyKey, Tool

Confidence = Literal["sure", "likely", "guess"]
_KEYS = frozenset((("idempotency", "key"), ("idempotence", "key"), ("client", "request", "token")))


def confidence(tool: Tool, effect: EffectOf, trusted: bool = False) -> Confidence:
    """`sure`: the operator, or a service that is trusted, says so. `likely`: the name says so, or the name and
    the hints agree. `guess`: only the server's own hints say so, or nothing does."""
    if effect.source == "operator" or (trusted and effect.source == "hint"):
        return "sure"
    if effect.source == "none":
        return "guess"
    return "likely" if effect.source == "verb" or classify_name(tool.name).effect == effect.effect else "guess"


def suggest(tools: Sequence[Tool], schemas: bool = False) -> str:
    """An operator's file for these tools. What the operator wrote is kept; what is guessed is marked with a
    comment that says why, to be read and taken away. `schemas`: with descriptions and schemas too."""
    entries: list[Tool] = []
    notes: dict[tuple[str, str | None], dict[str, str]] = {}
    for tool in sorted(tools, key=lambda tool: (tool.server or "", tool.name)):
        entry, said = _entry(tool)
        if not schemas:
            entry = msgspec.structs.replace(
                entry, title=None, description="", input_schema=None, output_schema=None, annotations=None
            )
        entries.append(entry)
        notes[entry.name, entry.server] = said
    return as_yaml(Catalogue(version=1, complete=False, tools=tuple(entries)), notes)


def _entry(tool: Tool) -> tuple[Tool, dict[str, str]]:
    effect = effect_of_tool(tool)
    notes: dict[str, str] = {}
    given: dict[str, Any] = {}
    if tool.effect is None and effect.known:
        given["effect"] = effect.effect
        notes["effect"] = f"{confidence(tool, effect)}: {_because(effect)}"
    elif tool.effect is None:
        notes["name"] = "say its effect: read, write, destructive or external_send"
    writes = effect.effect in ("write", "destructive", "external_send")
    if tool.repeat is None and writes and effect.known:
        given["repeat"] = effect.repeat
        notes["repeat"] = f"guess: {'twice is twice' if effect.repeat == 'additive' else 'twice is once'}"
    key = _key_argument(tool)
    if tool.idempotency_key is None and key is not None:
        given["idempotency_key"] = IdempotencyKey(argument=key)
        notes["idempotency_key"] = "likely: an argument is called so"
    for broad in broad_scopes(tool):
        notes[f"broad {broad.where}"] = f"broad: {broad}; bound it, or forbid what it must not do under policy"
    return msgspec.structs.replace(tool, **given), notes


def _because(effect: EffectOf) -> str:
    return "the server's hints say so" if effect.source == "hint" else "the name says so"


def _key_argument(tool: Tool) -> str | None:
    properties = (tool.input_schema or {}).get("properties")
    names = properties if isinstance(properties, dict) else {}
    return next((name for name in names if name_words(name) in _KEYS), None)
