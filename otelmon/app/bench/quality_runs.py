"""A labelled run, judged: what was found in it, beside what its labels say. One record in, one small value out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import msgspec

from otelmon.app.bench.quality_truth import Facts, acted_on_attack, declared_writes, facts_of, right, seen_and_flagged
from otelmon.assemble.timeline import build
from otelmon.assemble.traces import TraceTable
from otelmon.assemble.transcripts import read_transcript
from otelmon.checks.lib.verbs import classify_name
from otelmon.detect.engine import Judgement, Laws, judge
from otelmon.vocabulary.config import Config
from otelmon.vocabulary.event import AssistantMessage, ToolCall
from otelmon.vocabulary.finding import Finding, Severity, finding_id, level
from otelmon.vocabulary.messages import ReadingBatch
from otelmon.vocabulary.reading import Reading

ATTACK = "attack"  # the family of findings on attacks
Attack = Literal["", "resisted", "succeeded"]


class Hit(msgspec.Struct, frozen=True):
    """One finding. `call` is the place of the call it points at among the agent's calls, `message` that of the
    message among all messages of the record; both None for a finding on a definition or a run. `right` is what
    the labels say of it, None when they say nothing."""

    rule_id: str
    family: str
    severity: Severity
    tool: str | None
    call: int | None
    right: bool | None
    summary: str
    message: int | None = None


class CallEffect(msgspec.Struct, frozen=True):
    """One call of a replayed record: whether it changed something, and our words for its effect and for that of
    its tool by the name alone. `gives`: the tool's makers describe it as giving something back."""

    tool: str
    changed: bool
    word: str
    by_name: str
    gives: bool = False
    error: bool = False

    @property
    def counted_read(self) -> bool:
        """A read that the environment counts as a change."""
        return self.changed and self.gives


class JudgedRun(msgspec.Struct, frozen=True):
    """`passed` is the label on the whole run (None: there is none); `attack` whether text in it attacked the
    agent, and how that ended. `known` is {kind of wrong call: (such calls by the labels, how many of them
    were flagged)}; `effects` one a call; `declared` one (tool, changes something by its authors' word, ours from
    the name alone) a tool; `failures` the kinds of failure by the labels; `acted` whether an attacked
    agent did any of what the attack asked for."""

    data_set: str
    run_id: str
    domain: str
    model: str
    passed: bool | None
    attack: Attack
    calls: int
    aligned: bool
    hits: tuple[Hit, ...]
    known: dict[str, tuple[int, int]]
    effects: tuple[CallEffect, ...]
    not_evaluable: tuple[str, ...]
    declared: tuple[tuple[str, bool, str], ...] = ()
    failures: tuple[str, ...] = ()
    acted: bool = False


def flagged(run: JudgedRun, least: Severity, wanted: Callable[[Hit], bool] | None = None) -> bool:
    """Whether anything (of the wanted kind) of at least this severity was found in the run."""
    return any(level(hit.severity) >= level(least) and (wanted is None or wanted(hit)) for hit in run.hits)


def is_definitions(record: Any) -> bool:
    """Whether a record holds tools and no run: a list of them, or one before and after a change."""
    if not isinstance(record, dict) or "messages" in record:
        return False
    return isinstance(record.get("tools"), list) or {"before", "after"} <= record.keys()


def tool_list(record: dict[str, Any], data_set: str) -> JudgedRun:
    """Tools without a run: only their kinds can be compared."""
    if "tools" not in record:
        record = record | {"tools": [record["before"], record["after"]]}
    return JudgedRun(
        data_set=data_set, run_id=str(record.get("tag") or record.get("id")), domain="", model="", passed=None,
        attack="", calls=0, aligned=True, hits=(), known={}, effects=(), not_evaluable=(), declared=_declared(record),
    )  # fmt: skip


def _declared(record: dict[str, Any]) -> tuple[tuple[str, bool, str], ...]:
    said = sorted(declared_writes(record).items())
    return tuple((name, writes, classify_name(name).effect) for name, writes in said)


def judge_record(record: dict[str, Any], data_set: str, laws: Laws, config: Config) -> JudgedRun:
    """Judge one labelled transcript as `otelmon check` would, and lay its labels beside the findings."""
    labels = record.get("labels") or {}
    judgement = _judged(record, laws, config)
    calls = [event for event in judgement.timeline.events if isinstance(event, ToolCall)]
    facts = facts_of(record)
    # A last call that was asked for and never made is in the record, and is no call of ours.
    aligned = [call.tool_name for call in calls] == [call.name for call in facts.calls[: len(calls)]]
    places = {call.key: place for place, call in enumerate(calls)} if aligned else {}
    hits = tuple(_hits(judgement, places, facts, _said_by(record, judgement)))
    flagged = {(hit.rule_id, hit.call) for hit in hits if hit.call is not None}
    reasons = sorted({rule_id for rules in judgement.not_evaluable.values() for rule_id in rules})
    return JudgedRun(
        data_set=data_set,
        run_id=str(record.get("id")),
        domain=str(record.get("domain") or ""),
        model=str(record.get("model") or ""),
        passed=_passed(labels),
        attack=_attack(labels),
        calls=len(calls),
        aligned=aligned,
        hits=hits,
        known=seen_and_flagged(facts, flagged) if aligned else {},
        effects=_effects(judgement, calls, facts) if aligned else (),
        not_evaluable=tuple(reasons),
        declared=_declared(record),
        failures=tuple(str(kind) for kind in labels.get("failure_kinds") or ()),
        acted=acted_on_attack(record, facts),
    )


def _judged(record: dict[str, Any], laws: Laws, config: Config) -> Judgement:
    """Every run of the record judged as a whole: what the stages do at the end of a file."""
    readings = list(_readings(record, config))
    conversation = readings[0].conversation_id or "" if readings else ""
    open_runs = build(conversation, readings).runs
    return judge(build(conversation, readings, {run.run_id: "end_of_file" for run in open_runs}), laws)


def _readings(record: dict[str, Any], config: Config) -> Iterator[Reading]:
    for message in TraceTable(config.assemble).feed(read_transcript(record, 1), 0, 1):
        if isinstance(message, ReadingBatch):
            yield from message.readings


def _said_by(record: dict[str, Any], judgement: Judgement) -> dict[str, int]:
    """{span of an assistant message: its place among the messages of the record}, by their texts in order."""
    said = [
        (place, message["content"].strip())
        for place, message in enumerate(record["messages"])
        if isinstance(message, dict) and message.get("role") == "assistant" and isinstance(message.get("content"), str)
    ]
    found, after = {}, 0
    for event in judgement.timeline.events:
        if isinstance(event, AssistantMessage) and event.text:
            here = next((n for n in range(after, len(said)) if said[n][1] == event.text.strip()), None)
            if here is not None:
                found[event.span_id], after = said[here][0], here + 1
    return found


def _hits(judgement: Judgement, places: dict[str, int], facts: Facts, said: dict[str, int]) -> Iterator[Hit]:
    for finding in judgement.findings:
        call = _place(finding, judgement, places)
        yield Hit(
            rule_id=finding.rule_id,
            family=finding.family,
            severity=finding.severity,
            tool=finding.tool_name,
            call=call,
            right=right(finding, call, facts),
            summary=finding.summary,
            message=said.get(finding.span_ids[0]) if finding.tool_name is None and finding.span_ids else None,
        )


def _place(finding: Finding, judgement: Judgement, places: dict[str, int]) -> int | None:
    """The place of the call a finding points at. Several calls may stand in one span: then also by id and
    by start, and by the id of the finding where a model gave two calls one id."""
    if finding.tool_name is None:
        return None
    found = [
        call
        for call in judgement.timeline.events
        if isinstance(call, ToolCall)
        and call.span_id == finding.span_ids[0]
        and call.tool_name == finding.tool_name
        and call.tool_call_id == finding.tool_call_id
        and call.start_time_unix_nano == finding.event_time_unix_nano
    ]
    exact = [call for call in found if finding_id(finding.rule_id, call.key, "") == finding.finding_id]
    return next((places.get(call.key) for call in exact or found), None)


def _passed(labels: dict[str, Any]) -> bool | None:
    for name in ("success", "utility"):
        if isinstance(labels.get(name), bool):
            return bool(labels[name])
    return None


def _attack(labels: dict[str, Any]) -> Attack:
    if not labels.get("attacked"):
        return ""
    return "succeeded" if labels.get("attack_succeeded") else "resisted"


def _effects(judgement: Judgement, calls: Sequence[ToolCall], facts: Facts) -> tuple[CallEffect, ...]:
    found = []
    for call, fact in zip(calls, facts.calls, strict=False):
        changed = facts.changes(fact)
        if changed is not None:
            found.append(
                CallEffect(
                    tool=call.tool_name,
                    changed=changed,
                    word=judgement.call_effects.get(call.key, ("unknown", ""))[0],
                    by_name=classify_name(call.tool_name).effect,
                    gives=call.tool_name in facts.readers,
                    error=fact.error,
                )
            )
    return tuple(found)
