"""What travels on the bus between the stages, beside the OTLP requests of the spans topic.

Encoded with msgpack (`encode` / `decode`). Every message is an upsert by a deterministic key: the
same message twice changes nothing, a later one replaces an earlier one.
"""

from __future__ import annotations

from typing import Any

import msgspec

from otelmon.vocabulary.catalogue import Annotations, Effect, Repeat
from otelmon.vocabulary.event import Event, Run, ToolCall, ToolDefinition
from otelmon.vocabulary.finding import Finding
from otelmon.vocabulary.reading import Reading

SPANS = "otelmon.spans"  # OTLP ExportTraceServiceRequest, keyed by trace id; see SIGNAL
READINGS = "otelmon.readings"  # ReadingBatch, keyed by conversation
RECORDS = "otelmon.records"  # StoreRecord, keyed by owner
MEMORY = "otelmon.memory"  # compacted: snapshots of traces by conversation and trace
LEDGER = "otelmon.ledger"  # compacted: LedgerEntry by effect or tool key and trace; also what the ledger consumes
DEAD = "otelmon.dead"  # what could not be read, as it came, with a reason header
TOPICS = (SPANS, READINGS, RECORDS, MEMORY, LEDGER, DEAD)
COMPACTED = (MEMORY, LEDGER)
SPLIT = 2  # the epoch of a trace whose spans belong to several conversations
SIGNAL = "signal"  # header of the spans topic: b"logs" when the message is an ExportLogsServiceRequest


class ReadingBatch(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="readings"):
    """Readings of one trace that belong to one conversation. `conversation_id` is "trace:<id>"
    (epoch 0) until a real id is seen (epoch 1); when the trace turns out to carry several
    conversations it is split (epoch 2) and each speaks for its own share; the owner of the old key then gets a
    Handover."""

    conversation_id: str
    epoch: int
    trace_id: str
    readings: tuple[Reading, ...]


class Handover(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="handover"):
    """The trace now belongs to another conversation: forget it, without retracting anything."""

    conversation_id: str
    trace_id: str
    to: str


DetectInput = ReadingBatch | Handover


class EffectEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One write that landed or may have landed, as the effect ledger keeps it.

    `anchor` is ToolCall.key. `request_digest` identifies the user turn that asked for it,
    `identifying` says that the arguments name a record (an id, an amount with a payee), so that an
    equal call in another conversation is suspicious. `asked` is how many times the user's wording
    asks for this effect (1 when it does not say). `state_changed` is true when the conversation
    shows that state changed before this repeat. `histories` are the keys under which the ledger keeps it beside
    its effect key: of what asked for it, of its idempotency key. `run_failed`: its run ended with an error.
    """

    effect_key: str
    anchor: str
    trace_id: str
    span_id: str
    run_id: str
    conversation_id: str
    tool_name: str
    tool_call_id: str | None
    effect: Effect
    repeat: Repeat
    outcome: str
    idempotency_key: str | None
    arguments: Any
    arguments_hash: str
    result_digest: str
    request_digest: str
    turn: int
    asked: int
    identifying: bool
    state_changed: bool
    trigger: str | None
    host: str
    agent_name: str | None
    service_name: str
    environment: str
    start_time_unix_nano: int
    end_time_unix_nano: int
    histories: tuple[str, ...] = ()
    run_failed: bool = False
    run_start_time_unix_nano: int = 0


class EffectBatch(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="effects"):
    """All effects of one trace in one history: replaces what this trace said before. `effect_key` is the effect key
    that they share, or one of their `histories`."""

    effect_key: str
    trace_id: str
    epoch: int
    entries: tuple[EffectEntry, ...]


class ToolVersion(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="tool_version"):
    """A version of a tool, and where it was first seen. `tool_key` names the tool (environment, namespace,
    server or agent, name), `version` what its definition means: definitions that differ in form share it.
    `approved`: the operator's catalogue says the same; one without a trace stands there only."""

    tool_key: str
    version: str
    name: str
    server: str | None
    description: str
    input_schema: dict[str, Any] | None
    annotations: Annotations | None
    trace_id: str
    span_id: str
    run_id: str
    conversation_id: str
    agent_name: str | None
    agent_version: str | None
    service_name: str
    service_namespace: str
    environment: str
    start_time_unix_nano: int
    approved: bool = False

    @property
    def key(self) -> str:
        """The key of evidence about this version."""
        return f"{self.tool_key}:{self.version}"


LedgerEntry = EffectBatch | ToolVersion


class Verdict(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="verdict"):
    """Everything that is found for one owner ("trace:<id>", "effect:<key>" or "tool:<key>"), replacing what was
    found before: a stored finding of this owner that is not listed here is retracted. A verdict of
    a lower epoch than one already stored is ignored."""

    owner: str
    epoch: int
    findings: tuple[Finding, ...]
    observed_unix_nano: int


class ArgumentLineage(msgspec.Struct, frozen=True, array_like=True):
    """Where one argument of a call came from, without content. `path` in the arguments; `role` what it is for;
    `source` the kind of text that had it ("none": nothing did); `anchor` the key of the call, or the span of the
    message, that had it first ("": no event did); `transformation` how it was derived; `sure` false when that, or
    that there is no source, rests on a rule of thumb or on a part of the context."""

    path: str
    role: str
    source: str
    anchor: str
    transformation: str
    sure: bool


class TraceRecord(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="trace"):
    """Rows of one trace, or of a conversation's share of a split one ("<trace id>/<hash>"). `runs` and the keys of `calls` are complete for the trace: rows stored
    earlier that are not named are removed. `calls` and `effects` hold only rows that changed since
    the last record; `messages` is complete for the trace, or empty when none of them changed;
    `not_evaluable` is complete: {run id: {rule id: reason}}; so is `suppressed`: {run id: {rule id: findings that
    the operator accepts}}. `lineage` holds only what changed: {call key: where its arguments came from}."""

    trace_id: str
    epoch: int
    conversation_id: str
    runs: tuple[Run, ...]
    call_keys: tuple[str, ...]
    calls: tuple[ToolCall, ...]
    effects: dict[str, tuple[str, str]] = {}
    messages: tuple[Event, ...] = ()
    definitions: tuple[ToolDefinition, ...] = ()
    not_evaluable: dict[str, dict[str, str]] = {}
    suppressed: dict[str, dict[str, int]] = {}
    lineage: dict[str, tuple[ArgumentLineage, ...]] = {}


class Account(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="account"):
    """What a stage refused, counted by reason, to be kept durably. `id` makes it an upsert."""

    id: str
    stage: str
    received: int
    rejected: dict[str, int]
    observed_unix_nano: int


StoreRecord = Verdict | TraceRecord | Account

_encoder = msgspec.msgpack.Encoder()


def encode(message: msgspec.Struct) -> bytes:
    """msgpack bytes of a message."""
    return _encoder.encode(message)


_detect = msgspec.msgpack.Decoder(ReadingBatch | Handover)
_ledger: msgspec.msgpack.Decoder[LedgerEntry] = msgspec.msgpack.Decoder(EffectBatch | ToolVersion)
_store: msgspec.msgpack.Decoder[StoreRecord] = msgspec.msgpack.Decoder(Verdict | TraceRecord | Account)


def decode_detect_input(data: bytes) -> DetectInput:
    """Raises msgspec.DecodeError when the bytes are not such a message."""
    return _detect.decode(data)


def decode_ledger(data: bytes) -> LedgerEntry:
    """Raises msgspec.DecodeError when the bytes are not such a message."""
    return _ledger.decode(data)


def decode_store_record(data: bytes) -> StoreRecord:
    """Raises msgspec.DecodeError when the bytes are not such a message."""
    return _store.decode(data)
