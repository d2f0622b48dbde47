"""What is said about a trace after each judgement: only what changed since it was last said."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping

from otelmon.detect.engine import Judgement
from otelmon.vocabulary.event import (
    AssistantMessage,
    ContextMessage,
    Event,
    Run,
    SystemMessage,
    ToolCall,
    ToolDefinition,
    UserMessage,
)
from otelmon.vocabulary.finding import Finding
from otelmon.vocabulary.messages import EffectBatch, EffectEntry, TraceRecord, Verdict, encode

MESSAGES = (SystemMessage, UserMessage, AssistantMessage, ContextMessage)


class TraceEmission:
    """Digests of what was last said about one trace."""

    __slots__ = ("calls", "effect_digests", "effect_keys", "messages", "rest", "verdict")

    def __init__(self) -> None:
        self.calls: dict[str, bytes] = {}
        self.messages = b""
        self.rest = b""
        self.verdict = b""
        self.effect_keys: set[str] = set()
        self.effect_digests: dict[str, bytes] = {}


class _Parts:
    """The judgement of one trace."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.calls: list[ToolCall] = []
        self.messages: list[Event] = []
        self.definitions: list[ToolDefinition] = []
        self.findings: list[Finding] = []
        self.effects: dict[str, list[EffectEntry]] = defaultdict(list)


def emit(
    judgement: Judgement, said: Mapping[str, tuple[int, TraceEmission]]
) -> tuple[list[Verdict | TraceRecord], list[EffectBatch]]:
    """Records and effects that differ from what `said` ({trace id: (epoch, last emission)}) holds;
    the emissions are brought up to date."""
    parts = _by_trace(judgement)
    records: list[Verdict | TraceRecord] = []
    effects: list[EffectBatch] = []
    for trace_id, (epoch, emission) in said.items():
        part = parts.get(trace_id) or _Parts()
        record = _trace_record(judgement, trace_id, epoch, part, emission)
        if record:
            records.append(record)
        verdict = _verdict(trace_id, epoch, part, emission)
        if verdict:
            records.append(verdict)
        effects.extend(_effects(trace_id, epoch, part, emission))
    return records, effects


def _by_trace(judgement: Judgement) -> dict[str, _Parts]:
    parts: dict[str, _Parts] = defaultdict(_Parts)
    for run in judgement.timeline.runs:
        parts[run.trace_id].runs.append(run)
    for event in judgement.timeline.events:
        part = parts[event.trace_id]
        if isinstance(event, ToolCall):
            part.calls.append(event)
        elif isinstance(event, ToolDefinition):
            part.definitions.append(event)
        elif isinstance(event, MESSAGES):
            part.messages.append(event)
    for finding in judgement.findings:
        parts[finding.trace_id].findings.append(finding)
    for entry in judgement.effects:
        parts[entry.trace_id].effects[entry.effect_key].append(entry)
    return parts


def _trace_record(
    judgement: Judgement, trace_id: str, epoch: int, part: _Parts, emission: TraceEmission
) -> TraceRecord | None:
    digests = {call.key: digest(call) for call in part.calls}
    changed = tuple(call for call in part.calls if emission.calls.get(call.key) != digests[call.key])
    messages = digest(part.messages)
    not_evaluable = {
        run.run_id: judgement.not_evaluable[run.run_id] for run in part.runs if run.run_id in judgement.not_evaluable
    }
    rest = digest((part.runs, sorted(digests), not_evaluable, part.definitions))
    if not changed and messages == emission.messages and rest == emission.rest:
        return None
    record = TraceRecord(
        trace_id=trace_id,
        epoch=epoch,
        conversation_id=judgement.timeline.conversation_id,
        runs=tuple(part.runs),
        call_keys=tuple(sorted(digests)),
        calls=changed,
        effects={call.key: judgement.call_effects[call.key] for call in part.calls},
        messages=tuple(part.messages) if messages != emission.messages else (),
        definitions=tuple(part.definitions),
        not_evaluable=not_evaluable,
    )
    emission.calls, emission.messages, emission.rest = digests, messages, rest
    return record


def _verdict(trace_id: str, epoch: int, part: _Parts, emission: TraceEmission) -> Verdict | None:
    findings = tuple(sorted(part.findings, key=lambda finding: finding.finding_id))
    now = digest((epoch, findings))
    if now == emission.verdict:
        return None
    emission.verdict = now
    observed = max((run.last_received_unix_nano for run in part.runs), default=0)
    return Verdict(owner=f"trace:{trace_id}", epoch=epoch, findings=findings, observed_unix_nano=observed)


def _effects(trace_id: str, epoch: int, part: _Parts, emission: TraceEmission) -> list[EffectBatch]:
    batches = []
    digests: dict[str, bytes] = {}
    for key, entries in sorted(part.effects.items()):
        digests[key] = digest((epoch, entries))
        if emission.effect_digests.get(key) != digests[key]:
            batches.append(EffectBatch(effect_key=key, trace_id=trace_id, epoch=epoch, entries=tuple(entries)))
    gone = sorted(emission.effect_keys - digests.keys())
    batches.extend(EffectBatch(effect_key=key, trace_id=trace_id, epoch=epoch, entries=()) for key in gone)
    emission.effect_keys, emission.effect_digests = set(digests), digests
    return batches


def digest(value: object) -> bytes:
    """8 bytes that change when the value does."""
    return hashlib.blake2b(encode(value), digest_size=8).digest()  # type: ignore[arg-type]
