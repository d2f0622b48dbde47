"""Events: typed facts of a conversation, in causal order. What checks look at.

Field names are the semantic-convention names without `gen_ai.`, dots to underscores
(`gen_ai.tool.call.arguments` -> `tool_call_arguments` on the wire and in SQL; in these types the
prefix `tool_call_` is dropped inside ToolCall where it would only repeat the class name).
Times are nanoseconds since the epoch.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from otelmon.vocabulary.catalogue import Annotations
from otelmon.vocabulary.reading import Approval, Fidelity, HttpFields, RequestedCall

Outcome = Literal["succeeded", "failed", "unknown", "denied", "pending"]
EndReason = Literal["root", "idle", "span_limit", "evicted", "end_of_file"]
NotEvaluable = Literal[
    "content_off", "hashed", "truncated", "sampled", "prior_turns_unseen", "no_catalogue", "incomplete_run"
]


class _Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """`position` is the place in the conversation, from 0; `span_id` the span it was read from."""

    position: int
    trace_id: str
    span_id: str
    run_id: str
    start_time_unix_nano: int
    end_time_unix_nano: int
    agent_name: str | None = None


class SystemMessage(_Event, frozen=True, kw_only=True, tag="system"):
    """Instructions given to the model. A source of values and of policy text."""

    text: str


class UserMessage(_Event, frozen=True, kw_only=True, tag="user"):
    """What the user said. `turn` counts user turns of the conversation from 1."""

    text: str
    turn: int = 0


class AssistantMessage(_Event, frozen=True, kw_only=True, tag="assistant"):
    """What the model said, and the calls it asked for. `final`: the last message of its run, with
    no call requested after it."""

    text: str
    requests: tuple[RequestedCall, ...] = ()
    final: bool = False


class ContextMessage(_Event, frozen=True, kw_only=True, tag="context"):
    """Text the model saw that is none of the above: a tool message that answers no known call,
    retrieved documents, a ticket. A legitimate source of values."""

    text: str


class ToolCall(_Event, frozen=True, kw_only=True, tag="tool_call"):
    """One execution of a tool.

    `key` is its identity: "<trace id>:<span id>", or "derived:<hash>" when only message history
    shows it (`derived`). `span_ids` are all spans merged into this execution, the anchor first.
    `arguments` is the decoded value (an object unless the agent sent something else), None when
    `arguments_fidelity` is absent, hashed or could not be decoded; `arguments_text` the raw text.
    `result` is the decoded payload or None, `result_text` the text the model saw.
    `turn` is the user turn it belongs to (0 before the first user message).
    `batch` numbers the assistant message that asked for it: calls of one batch ran in parallel or
    in the order given. `nested_calls` is the number of tool calls made under this call, None
    unless an agent ran under it.
    """

    key: str
    tool_name: str
    raw_name: str
    tool_call_id: str | None = None
    derived: bool = False
    span_ids: tuple[str, ...] = ()
    arguments: Any = None
    arguments_text: str | None = None
    arguments_fidelity: Fidelity = "exact"
    arguments_hash: str = ""
    result: Any = None
    result_text: str | None = None
    result_fidelity: Fidelity = "exact"
    outcome: Outcome = "succeeded"
    outcome_source: str = ""
    error_type: str | None = None
    error_message: str | None = None
    server: str | None = None
    idempotency_key: str | None = None
    attempt: int | None = None
    retry_of: str | None = None
    approval: Approval | None = None
    effect_hint: str | None = None
    annotations: Annotations | None = None
    http: tuple[HttpFields, ...] = ()
    nested_calls: int | None = None
    turn: int = 0
    batch: int = 0
    model: str | None = None
    principal: str | None = None
    agent_version: str | None = None
    service_name: str = ""
    service_namespace: str = ""
    environment: str = ""
    host: str = ""
    trigger: str | None = None


class ToolDefinition(_Event, frozen=True, kw_only=True, tag="tool_definition"):
    """A tool as the run saw it. Emitted once per run and distinct definition, before first use.

    `of_call`: only a call of the tool shows it, so that it says nothing of what other tools there are."""

    name: str
    description: str = ""
    input_schema: dict[str, Any] | None = None
    annotations: Annotations | None = None
    server: str | None = None
    schema_hash: str = ""
    definition_hash: str = ""
    of_call: bool = False


class RunEnd(_Event, frozen=True, kw_only=True, tag="run_end"):
    """The run is over: why, and what it could show. `root_seen` false means incomplete."""

    reason: EndReason
    root_seen: bool
    error_type: str | None = None


Event = SystemMessage | UserMessage | AssistantMessage | ContextMessage | ToolCall | ToolDefinition | RunEnd


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One handling of one request. `run_id` = trace id + ":" + id of the topmost agent span
    (":" + "" when the trace has none). `gaps` are the reasons why its context is not complete:
    a rule that rests on what was *not* seen can not be evaluated while there are any.
    `needs_met` is not stored: see checks/view.py."""

    run_id: str
    trace_id: str
    conversation_id: str
    agent_name: str | None = None
    agent_version: str | None = None
    model: str | None = None
    service_name: str = ""
    service_namespace: str = ""
    environment: str = ""
    host: str = ""
    principal: str | None = None
    trigger: str | None = None
    dialects: tuple[str, ...] = ()
    start_time_unix_nano: int = 0
    end_time_unix_nano: int = 0
    last_received_unix_nano: int = 0
    spans: int = 0
    root_seen: bool = False
    closed: EndReason | None = None
    gaps: tuple[NotEvaluable, ...] = ()
    error_type: str | None = None


class Timeline(msgspec.Struct, frozen=True):
    """A conversation, assembled: its runs in order and all events in causal order."""

    conversation_id: str
    runs: tuple[Run, ...]
    events: tuple[Event, ...]
