"""What one span says, in our words: the output of a dialect, the input of the timeline.

A reading is made from one span alone. Everything that needs other spans (order, runs, derived
calls, duplicates, inherited conversation ids) is decided later from the set of readings, so the
order in which spans arrive can not change a result.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from otelmon.vocabulary.catalogue import Annotations

Kind = Literal["tool", "model", "agent", "http", "setup", "other"]
Fidelity = Literal["exact", "decoded", "repaired", "redacted", "hashed", "truncated", "absent"]
Role = Literal["system", "user", "assistant", "tool"]


class RequestedCall(msgspec.Struct, frozen=True):
    """A tool call that a model asked for. `arguments` decoded when `fidelity` is not "absent";
    text that could not be decoded stays in `arguments_text` and `arguments` is None."""

    tool_name: str
    tool_call_id: str | None = None
    arguments: Any = None
    arguments_text: str | None = None
    fidelity: Fidelity = "exact"


class ToolResponse(msgspec.Struct, frozen=True):
    """A tool result as message history shows it. `text` is the text given to the model."""

    text: str
    tool_call_id: str | None = None
    tool_name: str | None = None
    is_error: bool | None = None


class Message(msgspec.Struct, frozen=True):
    """One message of a model span's input or output. `digest` identifies the content.

    `responses` only for role "tool", `requests` only for role "assistant". Content that is not
    text (images, blobs) is named in `text` as `[image]`, `[file]`.
    """

    role: Role
    digest: str
    text: str = ""
    requests: tuple[RequestedCall, ...] = ()
    responses: tuple[ToolResponse, ...] = ()
    truncated: bool = False


class Definition(msgspec.Struct, frozen=True):
    """A tool definition as a span shows it. Hashes are `sha256:<hex>` over RFC 8785 JSON."""

    name: str
    description: str = ""
    input_schema: dict[str, Any] | None = None
    annotations: Annotations | None = None
    server: str | None = None
    schema_hash: str = ""
    definition_hash: str = ""


class Approval(msgspec.Struct, frozen=True):
    """Evidence of a decision on a call. `decision` approved, rejected or auto."""

    decision: str
    source: str = ""
    by: str = ""
    id: str = ""
    arguments_hash: str = ""
    expires_unix_nano: int | None = None


class ToolFields(msgspec.Struct, frozen=True):
    """What a tool span says of its call.

    `name` is canonical (prefixes such as `mcp__server__` removed, the server kept in `server`),
    `raw_name` as sent. `result` is the decoded payload, `result_text` the text it came from.
    `outcome_hint` is the outcome the span *itself* claims (shim vocabulary); the outcome of the
    event is derived in assemble/outcome.py and does not trust status alone.
    `signals` are the raw facts that derivation needs, e.g. "status_error", "exception",
    "timeout", "abandoned", "denied", "is_error".
    """

    name: str
    raw_name: str
    call_id: str | None = None
    arguments: Any = None
    arguments_text: str | None = None
    arguments_fidelity: Fidelity = "absent"
    arguments_hash: str = ""
    result: Any = None
    result_text: str | None = None
    result_fidelity: Fidelity = "absent"
    error_type: str | None = None
    error_message: str | None = None
    signals: tuple[str, ...] = ()
    outcome_hint: str | None = None
    outcome_source: str | None = None
    server: str | None = None
    idempotency_key: str | None = None
    attempt: int | None = None
    retry_of: str | None = None
    approval: Approval | None = None
    effect_hint: str | None = None
    annotations: Annotations | None = None
    description: str = ""


class HttpFields(msgspec.Struct, frozen=True):
    """What an HTTP client span says. `idempotency_key` from the request header, when captured."""

    method: str
    url: str = ""
    status_code: int | None = None
    resend_count: int = 0
    idempotency_key: str | None = None
    error_type: str | None = None


class Reading(msgspec.Struct, frozen=True):
    """One span in our words. `key` = trace id + span id + digest; ids are lower-case hex.

    `content` says what the span could show: "full", "off" (the instrumentation does not write
    content), "hashed", "truncated", "redacted". `history_complete` is true on a model reading
    whose input messages start at the first turn of what the model saw.
    `kind` "setup" prepares agents (an agent is created, a server's tools are listed) and is no run.
    `tool` on another kind than "tool" is what a span says of the call above it (name "").
    `input` and `output` hold message digests in order; the messages themselves are in `messages`
    (only those not sent before for this trace: see assemble/history.py).
    `trigger` names what started the run beside the conversation (workflow id, job id), `attempt`
    its attempt; `host` tells replicas apart (service.instance.id, host.name or pod).
    `supplement`: made from a log record that names the span, not from the span itself: it has no parent
    and no length, and adds what it says to the reading of its span.
    """

    trace_id: str
    span_id: str
    parent_span_id: str
    digest: str
    kind: Kind
    name: str
    dialect: str
    start_time_unix_nano: int
    end_time_unix_nano: int
    received_unix_nano: int
    status_error: bool = False
    error_type: str | None = None
    content: str = "full"
    conversation_id: str | None = None
    agent_name: str | None = None
    agent_version: str | None = None
    model: str | None = None
    principal: str | None = None
    service_name: str = ""
    service_namespace: str = ""
    environment: str = ""
    host: str = ""
    trigger: str | None = None
    tool: ToolFields | None = None
    http: HttpFields | None = None
    input: tuple[str, ...] = ()
    output: tuple[str, ...] = ()
    messages: tuple[Message, ...] = ()
    definitions: tuple[Definition, ...] = ()
    history_complete: bool = False
    response_id: str | None = None
    scope_name: str = ""
    dropped: int = 0
    supplement: bool = False

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.trace_id, self.span_id, self.digest)
