"""The catalogue: what tools are, what they do, and what is allowed (the operator's file)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Effect = Literal["read", "write", "destructive", "external_send", "unknown"]
Repeat = Literal["additive", "absolute"]
EffectSource = Literal["operator", "hint", "verb", "description", "call", "none"]
Action = Literal["forbid", "confirm", "after", "limit"]


class Annotations(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """MCP tool hints, verbatim. They come from the party being watched: hints, not facts."""

    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


class IdempotencyKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the idempotency key of a call is: an argument, or a span attribute."""

    argument: str | None = None
    attribute: str | None = None


class Tool(msgspec.Struct, frozen=True, kw_only=True, rename={"input_schema": "inputSchema", "output_schema": "outputSchema"}, forbid_unknown_fields=True):  # fmt: skip
    """One tool: MCP's shape plus what only the operator knows. All operator fields may be absent."""

    name: str
    server: str | None = None
    title: str | None = None
    description: str = ""
    input_schema: dict[str, Any] | None = None
    output_schema: dict[str, Any] | None = None
    annotations: Annotations | None = None
    effect: Effect | None = None
    repeat: Repeat | None = None
    identity: tuple[str, ...] | None = None
    volatile: tuple[str, ...] = ()
    idempotency_key: IdempotencyKey | None = None
    max_attempts: int | None = None
    poll_ok: bool = False
    sources: dict[str, str] = {}
    claims: tuple[str, ...] = ()


class Policy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One policy entry. Empty selectors match everything; `tools` are globs; `when` is CEL over
    `call`; `calls` are the tools that must have been called before (action "after"); `max` and
    `window_seconds` bound a "limit"."""

    id: str
    action: Action
    tools: tuple[str, ...] = ()
    effects: tuple[Effect, ...] = ()
    agents: tuple[str, ...] = ()
    principals: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    when: str | None = None
    unless_approved: bool = False
    calls: tuple[str, ...] = ()
    max: int | None = None
    window_seconds: float | None = None
    severity: str | None = None
    reason: str = ""


class Catalogue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The operator's file. `complete` false: these are a part of the tools that exist."""

    version: Literal[1]
    complete: bool = True
    tools: tuple[Tool, ...] = ()
    policy: tuple[Policy, ...] = ()
