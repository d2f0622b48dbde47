"""Runs rules over one conversation (or one effect history) and turns evidence into findings. Pure.

For every rule and every anchor of the kinds its check knows: needs first (unmet: not evaluable, with
the reason), then the check, then severity, precedence between rules, and what the operator accepted.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from otelmon.checks.lib.expressions import undecided_here
from otelmon.checks.lib.histories import HistoryKind
from otelmon.checks.registry import On, run_check
from otelmon.checks.view import View
from otelmon.rules.model import Rule, RuleSet
from otelmon.rules.needs import unmet
from otelmon.rules.suppress import Suppressed, split
from otelmon.vocabulary.config import Suppression
from otelmon.vocabulary.event import Event, ToolCall, ToolDefinition
from otelmon.vocabulary.finding import Evidence, Finding, Severity, finding_id, level
from otelmon.vocabulary.messages import EffectEntry, ToolVersion

TOOL_ANCHOR = "tool:"
HISTORIES: frozenset[On] = frozenset(("effect", "tool", "request", "key"))


class Evaluation(msgspec.Struct, frozen=True):
    """What was found in one conversation. `not_evaluable` is {run id: {rule id: reason}}, `errors`
    {rule id: times its check raised}, `raised` {rule id: what it raised first, and where}, `suppressed`
    what the operator accepted, with the reasons, `undecided` {rule id: conditions of it that could not be
    decided}."""

    findings: list[Finding]
    not_evaluable: dict[str, dict[str, str]]
    errors: dict[str, int]
    suppressed: list[Suppressed] = []
    raised: dict[str, str] = {}
    undecided: dict[str, int] = {}


class Trouble(msgspec.Struct):
    """What rules met beside findings, to be filled; the fields are those of Evaluation."""

    errors: dict[str, int] = {}
    raised: dict[str, str] = {}
    undecided: dict[str, int] = {}
    suppressed: list[Suppressed] = []


class _Hit(msgspec.Struct, frozen=True):
    """A piece of evidence beside its rule and what its anchor is."""

    rule: Rule
    evidence: Evidence
    finding: Finding


def evaluate(
    rules: RuleSet | Sequence[Rule],
    view: View,
    closed_runs: set[str] | None = None,
    suppress: Sequence[Suppression] = (),
) -> Evaluation:
    """Every rule over every anchor of the conversation.

    `closed_runs`: ids of the runs that are over; by default those with a `closed` reason. Rules that
    wait are asked only about these. A check that raises is counted and stops nothing else. Findings
    come in the order of anchor, then rule id.
    """
    over = {run.run_id for run in view.runs if run.closed} if closed_runs is None else closed_runs
    not_evaluable: dict[str, dict[str, str]] = {}
    trouble = Trouble()
    hits: list[_Hit] = []
    for rule in _sequence(rules):
        for kind, function in rule.check.functions.items():
            if kind in HISTORIES:
                continue
            for event in _anchors(kind, rule, view, over):
                reason = unmet(rule, kind, event, view)
                if reason is not None:
                    not_evaluable.setdefault(event.run_id, {}).setdefault(rule.id, reason)
                    continue
                subject = view.run_of(event) if kind == "run" else event
                ask = partial(run_check, function, subject, view, rule.params)
                hits.extend(_ask(rule, ask, _Conversation(view, event), trouble))
    hits.sort(key=lambda hit: (hit.finding.event_time_unix_nano, hit.evidence.anchor, hit.rule.id))
    kept, suppressed = split(_unique(_preferred(hits)), suppress)
    return Evaluation(kept, not_evaluable, trouble.errors, suppressed, trouble.raised, trouble.undecided)


def evaluate_effects(
    rules: RuleSet | Sequence[Rule],
    entries: Sequence[EffectEntry],
    suppress: Sequence[Suppression] = (),
    trouble: Trouble | None = None,
    kind: HistoryKind = "effect",
) -> list[Finding]:
    """The ledger's rules over one history of writes, sorted by (start time, anchor): of one effect, of one
    request, or of one idempotency key. `trouble`, when given, is filled."""
    history = tuple(entries)
    return _evaluate_history(kind, rules, history, _History(history), suppress, trouble)


def evaluate_tools(
    rules: RuleSet | Sequence[Rule],
    versions: Sequence[ToolVersion],
    suppress: Sequence[Suppression] = (),
    trouble: Trouble | None = None,
) -> list[Finding]:
    """The ledger's rules over the versions of one tool, by first sight. Evidence of such a check has the
    `key` of the version it is about. `trouble`, when given, is filled."""
    history = tuple(versions)
    return _evaluate_history("tool", rules, history, _Versions(history), suppress, trouble)


def _evaluate_history(
    kind: On,
    rules: RuleSet | Sequence[Rule],
    history: tuple[Any, ...],
    place: _History | _Versions,
    suppress: Sequence[Suppression],
    trouble: Trouble | None,
) -> list[Finding]:
    met = Trouble() if trouble is None else trouble
    hits: list[_Hit] = []
    for rule in _sequence(rules):
        function = rule.check.functions.get(kind)
        if function is not None:
            ask = partial(run_check, function, history, rule.params)
            hits.extend(_ask(rule, ask, place, met))
    kept, suppressed = split(_unique(_preferred(hits)), suppress)
    met.suppressed.extend(suppressed)
    return kept


def _sequence(rules: RuleSet | Sequence[Rule]) -> Iterable[Rule]:
    return rules.rules.values() if isinstance(rules, RuleSet) else rules


def _anchors(kind: On, rule: Rule, view: View, over: set[str]) -> Iterator[Event]:
    """What the rule's check is asked about. A run is represented by its last event."""
    if kind == "run":
        for run in view.runs:
            of_run = view.run_events(run.run_id)
            if run.run_id in over and of_run:
                yield of_run[-1]
        return
    waits = rule.waits or kind == "final"
    events: dict[On, Sequence[Event]] = {"call": view.calls, "definition": view.definitions, "final": view.finals}
    for event in events.get(kind, ()):
        if not waits or event.run_id in over:
            yield event


def _ask(
    rule: Rule,
    ask: Callable[[], list[Evidence]],
    place: _Conversation | _History | _Versions,
    trouble: Trouble,
) -> list[_Hit]:
    """The check's evidence as hits. Whatever it raises is counted for the rule and goes no further; so are
    conditions that it could not decide."""
    before = undecided_here()
    try:
        return [_Hit(rule, evidence, place.finding(rule, evidence)) for evidence in ask()]
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a check may be a plug-in; the stream goes on
        trouble.errors[rule.id] = trouble.errors.get(rule.id, 0) + 1
        trouble.raised.setdefault(rule.id, _said(error))
        return []
    finally:
        if undecided_here() > before:
            trouble.undecided[rule.id] = trouble.undecided.get(rule.id, 0) + undecided_here() - before


def _said(error: BaseException) -> str:
    """What was raised, and the last place in code it came through."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {error}{where}"


class _Conversation:
    """Finds in a conversation what evidence points at; `event` is what the check was asked about."""

    def __init__(self, view: View, event: Event) -> None:
        self.view, self.event = view, event

    def finding(self, rule: Rule, evidence: Evidence) -> Finding:
        event = self._anchored(evidence.anchor)
        run = self.view.run_of(event)
        call = self.view.call_by_key.get(evidence.anchor)
        name = call.tool_name if call else evidence.tool_name
        if evidence.anchor.startswith(TOOL_ANCHOR):
            name = evidence.anchor.removeprefix(TOOL_ANCHOR)
        effect = self.view.effect(call).effect if call else "unknown"
        return _finding(
            rule,
            evidence,
            severity=weigh(rule, evidence, effect, call.outcome if call else ""),
            trace_id=event.trace_id,
            conversation_id=run.conversation_id or self.view.conversation_id,
            run_id=event.run_id,
            # A finding on a whole run points at its agent span, when it has one.
            span_id=(evidence.anchor == run.run_id and run.run_id.rpartition(":")[2]) or event.span_id,
            tool_call_id=call.tool_call_id if call else None,
            tool_name=name,
            agent_name=event.agent_name or run.agent_name,
            environment=run.environment,
            service_name=run.service_name,
            event_time_unix_nano=event.start_time_unix_nano,
        )

    def _anchored(self, anchor: str) -> Event:
        """The event with this anchor: a call, a definition, a message, or the end of the run asked about.
        Raises LookupError when there is none: such evidence is a mistake of the check."""
        call = self.view.call_by_key.get(anchor)
        if call is not None:
            return call
        if anchor.startswith(TOOL_ANCHOR):
            return self._definition(anchor.removeprefix(TOOL_ANCHOR)) or self.event
        if anchor in (self.event.span_id, self.event.run_id):
            return self.event
        for event in self.view.events:
            if event.span_id == anchor and not isinstance(event, ToolCall):
                return event
        raise LookupError(f"evidence points at {anchor}, which is not in the conversation")

    def _definition(self, name: str) -> Event | None:
        if isinstance(self.event, ToolDefinition) and self.event.name == name:
            return self.event
        seen = (e for e in self.view.run_events(self.event.run_id) if isinstance(e, ToolDefinition) and e.name == name)
        return next(seen, None)


class _History:
    """Finds in a history of writes what evidence points at: a write, or the run of one."""

    def __init__(self, entries: Sequence[EffectEntry]) -> None:
        self.by_anchor = {entry.run_id: _as_run(entry) for entry in reversed(entries)}
        self.by_anchor.update({entry.anchor: entry for entry in entries})

    def finding(self, rule: Rule, evidence: Evidence) -> Finding:
        entry = self.by_anchor[evidence.anchor]
        return _finding(
            rule,
            evidence,
            severity=weigh(rule, evidence, entry.effect, entry.outcome),
            trace_id=entry.trace_id,
            conversation_id=entry.conversation_id,
            run_id=entry.run_id,
            span_id=entry.span_id,
            tool_call_id=entry.tool_call_id,
            tool_name=entry.tool_name or evidence.tool_name,
            agent_name=entry.agent_name,
            environment=entry.environment,
            service_name=entry.service_name,
            event_time_unix_nano=entry.start_time_unix_nano,
        )


def _as_run(entry: EffectEntry) -> EffectEntry:
    """The run of a write, in the place of a write."""
    span_id = entry.run_id.rpartition(":")[2] or entry.span_id
    return msgspec.structs.replace(entry, span_id=span_id, tool_call_id=None, tool_name="")


class _Versions:
    """Finds the version of a tool that evidence is about."""

    def __init__(self, versions: Sequence[ToolVersion]) -> None:
        self.by_key = {version.key: version for version in versions}

    def finding(self, rule: Rule, evidence: Evidence) -> Finding:
        version = self.by_key[evidence.key]
        return _finding(
            rule,
            evidence,
            severity=weigh(rule, evidence, "unknown", ""),
            trace_id=version.trace_id,
            conversation_id=version.conversation_id,
            run_id=version.run_id,
            span_id=version.span_id,
            tool_call_id=None,
            tool_name=version.name,
            agent_name=version.agent_name,
            environment=version.environment,
            service_name=version.service_name,
            event_time_unix_nano=version.start_time_unix_nano,
        )


def _finding(rule: Rule, evidence: Evidence, span_id: str, **facts: Any) -> Finding:
    return Finding(
        finding_id=finding_id(rule.id, evidence.anchor, evidence.key),
        rule_id=rule.id,
        rule_version=rule.version,
        family=rule.family,
        status="open",
        span_ids=tuple(dict.fromkeys((span_id, *evidence.span_ids))),
        summary=evidence.summary,
        evidence=evidence.details,
        **facts,
    )


def weigh(rule: Rule, evidence: Evidence, effect: str, outcome: str) -> Severity:
    """The severity of a finding: the operator's word; else the check's own; else the rule's, at most
    medium on a read, at least high on a destructive call that landed or may have landed."""
    if rule.severity_fixed:
        return rule.severity
    if evidence.severity is not None:
        return evidence.severity
    if effect == "read" and level(rule.severity) > level("medium"):
        return "medium"
    landed = outcome in ("succeeded", "unknown", "pending")
    if effect == "destructive" and landed and level(rule.severity) < level("high"):
        return "high"
    return rule.severity


def _preferred(hits: Sequence[_Hit]) -> list[_Hit]:
    """Without findings that another rule explains better at the same anchor. Evidence about different
    arguments (details "argument") is about different facts, and both stay."""
    by_anchor: dict[str, list[_Hit]] = {}
    for hit in hits:
        by_anchor.setdefault(hit.evidence.anchor, []).append(hit)
    return [hit for hit in hits if not any(_explains(other, hit) for other in by_anchor[hit.evidence.anchor])]


def _explains(better: _Hit, hit: _Hit) -> bool:
    if hit.rule.id not in better.rule.wins_over:
        return False
    one, two = better.evidence.details.get("argument"), hit.evidence.details.get("argument")
    return one is None or two is None or one == two


def _unique(hits: Iterable[_Hit]) -> list[Finding]:
    """One finding an id, the first one."""
    found: dict[str, Finding] = {}
    for hit in hits:
        found.setdefault(hit.finding.finding_id, hit.finding)
    return list(found.values())
