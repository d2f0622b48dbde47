"""A golden task: an incident frozen as a case that fails until the agent is fixed (JSON lines, version 1)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

MatcherKind = Literal["exact", "normalised", "number", "any", "absent", "from_call"]


class _Task(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    pass


class Source(_Task, frozen=True, kw_only=True):
    """Where the task came from. The ids are the monitor's; they hold no content."""

    incident_id: str
    finding_ids: tuple[str, ...]
    run_id: str


class Message(_Task, frozen=True, kw_only=True):
    """A message of the conversation before the failure."""

    role: Literal["system", "user", "assistant"]
    content: str


class ToolSpec(_Task, frozen=True, kw_only=True):
    """A tool the agent has."""

    name: str
    description: str = ""
    parameters: dict[str, Any] | None = None
    effect: str = "unknown"


class Stub(_Task, frozen=True, kw_only=True):
    """A recorded answer: what the tool gives when it is called so. `outcome` as in events; a result
    that came with outcome unknown is an effect that may have happened."""

    tool: str
    arguments: Any = None
    result: Any = None
    outcome: str = "succeeded"
    error_type: str | None = None


class Matcher(_Task, frozen=True, kw_only=True):
    """How one argument is compared: exact JSON; normalised text (case, spaces, leading signs); a
    number within `tolerance`; any value; absent; what an earlier call of `tool` gave in `field` (`items[].sku`)
    of its result, whatever that is then: `value` is what it was when it was recorded."""

    kind: MatcherKind = "exact"
    value: Any = None
    tolerance: float = 0.0
    tool: str = ""
    field: str = ""


class Call(_Task, frozen=True, kw_only=True):
    """A call, and how often: between `at_least` and `at_most` times (None: no bound)."""

    tool: str
    arguments: dict[str, Matcher] = {}
    at_least: int = 1
    at_most: int | None = 1
    why: str = ""


class Effect(_Task, frozen=True, kw_only=True):
    """An effect that must have landed exactly `times` times when the agent is done."""

    tool: str
    arguments: dict[str, Matcher]
    times: int


class GoldenTask(_Task, frozen=True, kw_only=True, tag_field="version", tag=1):
    """One case. `input` is what the user said last before the failure, `conversation` what came
    before it. `precedence` are pairs of positions in `expected_calls`: the first before the second.
    `rules` fired on the incident and must stay silent now. `initial_state` is a fixture the user may
    add; personal data is replaced with equality kept."""

    id: str
    title: str
    source: Source
    agent: str
    user: str | None = None
    input: str
    conversation: tuple[Message, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    stubs: tuple[Stub, ...] = ()
    initial_state: Any = None
    expected_calls: tuple[Call, ...] = ()
    optional_calls: tuple[Call, ...] = ()
    forbidden_calls: tuple[Call, ...] = ()
    precedence: tuple[tuple[int, int], ...] = ()
    expected_effects: tuple[Effect, ...] = ()
    expected_final_state: Any = None
    response_must_include: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    reviewed: bool = False


def encode_task(task: GoldenTask) -> bytes:
    """One JSON line, without the line end."""
    return msgspec.json.encode(task, order="deterministic")


_decoder = msgspec.json.Decoder(GoldenTask)


def decode_task(line: bytes) -> GoldenTask:
    """Raises msgspec.DecodeError when the line is not a golden task of a version we know."""
    return _decoder.decode(line)
