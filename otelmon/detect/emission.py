"""What is said about a trace after each judgement: only what changed since it was last said."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping

import msgspec

from otelmon.detect.engine import Judgement
from otelmon.detect.snapshot import Snapshot
from otelmon.vocabulary.canonical import short_hash
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
from otelmon.vocabulary.messages import SPLIT, EffectBatch, EffectEntry, LedgerEntry, TraceRecord, Verdict, encode

DERIVED = "derived:"
MESSAGES = (SystemMessage, UserMessage, AssistantMessage, ContextMessage)


class Output(msgspec.Struct):
    """What judging produced: rows and verdicts for the store, effects and versions of tools for the ledger,
    snapshots for memory as (conversation id, trace id, part, snapshot or None: forget it)."""

    records: list[Verdict | TraceRecord]
    effects: list[LedgerEntry]
    memory: list[tuple[str, str, int, Snapshot | None]]

    def forget(self, conversation_id: str, trace_id: str, parts: int) -> None:
        """A trace leaves memory."""
        self.memory.extend((conversation_id, trace_id, part, None) for part in range(parts))


class TraceEmission:
    """What was last said about one trace: digests, and its findings. Once the trace had to be shortened
    (`only_adds`) nothing said is taken back, because what it rests on can not be looked at again."""

    __slots__ = (
        "calls",
        "effect_digests",
        "effect_keys",
        "findings",
        "lineage",
        "messages",
        "only_adds",
        "rest",
        "share",
        "verdict",
    )

    def __init__(self) -> None:
        self.share = ""
        self.only_adds = False
        self.reset()

    def reset(self) -> None:
        """Nothing was said yet."""
        self.calls: dict[str, bytes] = {}
        self.lineage: dict[str, bytes] = {}
        self.messages = b""
        self.rest = b""
        self.verdict = b""
        self.effect_keys: set[str] = set()
        self.effect_digests: dict[str, bytes] = {}
        self.findings: tuple[Finding, ...] = ()

    def kept(self) -> tuple[Finding, ...]:
        """Findings that a restart must not forget."""
        return self.findings if self.only_adds else ()

    def kept_calls(self) -> tuple[str, ...]:
        """Keys of calls that a restart must not forget."""
        return tuple(sorted(self.calls)) if self.only_adds else ()

    def restore(self, snapshot: Snapshot) -> None:
        """Take back what a snapshot kept."""
        self.effect_keys = set(snapshot.effect_keys)
        self.only_adds = snapshot.floor is not None
        self.findings = snapshot.kept
        self.calls = dict.fromkeys(snapshot.kept_calls, b"")


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
        if emission.only_adds:
            _without_echoes(part, emission)
        share = trace_id
        if epoch == SPLIT:
            share = f"{trace_id}/{short_hash(judgement.timeline.conversation_id)[:8]}"
            if emission.share != share:
                _leave_whole(judgement, trace_id, emission, records, effects)
        emission.share = share
        record = _trace_record(judgement, share, epoch, part, emission)
        if record:
            records.append(record)
        verdict = _verdict(share, epoch, part, emission)
        if verdict:
            records.append(verdict)
        effects.extend(_effects(share, epoch, part, emission))
    return records, effects


def _leave_whole(
    judgement: Judgement,
    trace_id: str,
    emission: TraceEmission,
    records: list[Verdict | TraceRecord],
    effects: list[EffectBatch],
) -> None:
    """The trace turned out to carry several conversations: what was said for all of it is taken
    back, at an epoch that nothing said before can undo; then each share speaks for itself."""
    conversation_id = judgement.timeline.conversation_id
    effects.extend(
        EffectBatch(effect_key=key, trace_id=trace_id, epoch=SPLIT, entries=()) for key in sorted(emission.effect_keys)
    )
    emission.reset()
    records.append(
        TraceRecord(trace_id=trace_id, epoch=SPLIT, conversation_id=conversation_id, runs=(), call_keys=(), calls=())
    )
    records.append(Verdict(owner=f"trace:{trace_id}", epoch=SPLIT, findings=(), observed_unix_nano=0))


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
        for key in (entry.effect_key, *entry.histories):
            parts[entry.trace_id].effects[key].append(entry)
    return parts


def _without_echoes(part: _Parts, emission: TraceEmission) -> None:
    """Message history goes on showing calls whose spans had to go: they were counted already."""
    if all(key.startswith(DERIVED) for key in emission.calls):
        return
    echoes = {call.span_id for call in part.calls if call.derived and call.key not in emission.calls}
    part.calls = [call for call in part.calls if not call.derived or call.key in emission.calls]
    part.findings = [f for f in part.findings if f.tool_name is None or f.span_ids[0] not in echoes]
    for key, entries in list(part.effects.items()):
        part.effects[key] = [e for e in entries if not e.anchor.startswith(DERIVED) or e.anchor in emission.calls]
        if not part.effects[key]:
            del part.effects[key]


def _trace_record(
    judgement: Judgement, share: str, epoch: int, part: _Parts, emission: TraceEmission
) -> TraceRecord | None:
    digests = {call.key: digest(call) for call in part.calls}
    changed = tuple(call for call in part.calls if emission.calls.get(call.key) != digests[call.key])
    if emission.only_adds:
        digests = {**emission.calls, **digests}
    messages = digest(part.messages)
    not_evaluable = {
        run.run_id: judgement.not_evaluable[run.run_id] for run in part.runs if run.run_id in judgement.not_evaluable
    }
    accepted = _accepted(judgement, part)
    origins = {call.key: judgement.lineage[call.key] for call in part.calls if call.key in judgement.lineage}
    lineage = {key: digest(rows) for key, rows in origins.items()}
    rest = digest((part.runs, sorted(digests), not_evaluable, part.definitions, accepted))
    origins = {key: rows for key, rows in origins.items() if emission.lineage.get(key) != lineage[key]}
    if not changed and not origins and messages == emission.messages and rest == emission.rest:
        return None
    record = TraceRecord(
        trace_id=share,
        epoch=epoch,
        conversation_id=judgement.timeline.conversation_id,
        runs=tuple(msgspec.structs.replace(run, trace_id=share) for run in part.runs),
        call_keys=tuple(sorted(digests)),
        calls=changed,
        effects={call.key: judgement.call_effects[call.key] for call in part.calls},
        messages=tuple(part.messages) if messages != emission.messages else (),
        definitions=tuple(part.definitions),
        not_evaluable=not_evaluable,
        suppressed=accepted,
        lineage=origins,
    )
    emission.lineage |= lineage
    emission.calls, emission.messages, emission.rest = digests, messages, rest
    return record


def _accepted(judgement: Judgement, part: _Parts) -> dict[str, dict[str, int]]:
    """What was found in the runs and is accepted, by run and rule."""
    runs = {run.run_id for run in part.runs}
    found: dict[str, dict[str, int]] = {}
    for one in judgement.suppressed:
        finding = one.finding
        if finding.run_id in runs:
            by_rule = found.setdefault(finding.run_id, {})
            by_rule[finding.rule_id] = by_rule.get(finding.rule_id, 0) + 1
    return found


def _verdict(share: str, epoch: int, part: _Parts, emission: TraceEmission) -> Verdict | None:
    found = {finding.finding_id: finding for finding in (*emission.kept(), *part.findings)}
    findings = tuple(found[finding_id] for finding_id in sorted(found))
    now = digest((epoch, findings))
    if now == emission.verdict:
        return None
    emission.verdict, emission.findings = now, findings
    observed = max((run.last_received_unix_nano for run in part.runs), default=0)
    return Verdict(owner=f"trace:{share}", epoch=epoch, findings=findings, observed_unix_nano=observed)


def _effects(share: str, epoch: int, part: _Parts, emission: TraceEmission) -> list[EffectBatch]:
    batches = []
    digests: dict[str, bytes] = {}
    for key, entries in sorted(part.effects.items()):
        digests[key] = digest((epoch, entries))
        if emission.effect_digests.get(key) != digests[key]:
            batches.append(EffectBatch(effect_key=key, trace_id=share, epoch=epoch, entries=tuple(entries)))
    gone = [] if emission.only_adds else sorted(emission.effect_keys - digests.keys())
    batches.extend(EffectBatch(effect_key=key, trace_id=share, epoch=epoch, entries=()) for key in gone)
    emission.effect_keys = (emission.effect_keys if emission.only_adds else set()) | digests.keys()
    emission.effect_digests = digests
    return batches


def digest(value: object) -> bytes:
    """8 bytes that change when the value does."""
    return hashlib.blake2b(encode(value), digest_size=8).digest()  # type: ignore[arg-type]
