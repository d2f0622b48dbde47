"""Judge one assembled conversation: findings, effects for the ledger, and what could not be decided.

Pure: the same timeline under the same laws gives the same judgement.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from otelmon.checks.lib.effects import effect_entry
from otelmon.checks.lib.histories import HistoryKind
from otelmon.checks.lib.tool_versions import with_approved
from otelmon.checks.view import View
from otelmon.detect.lineage import lineages
from otelmon.rules.evaluate import Trouble, evaluate, evaluate_effects, evaluate_tools
from otelmon.rules.model import RuleSet
from otelmon.rules.suppress import Suppressed
from otelmon.vocabulary.catalogue import Catalogue
from otelmon.vocabulary.config import Suppression
from otelmon.vocabulary.event import Timeline
from otelmon.vocabulary.finding import Finding
from otelmon.vocabulary.messages import ArgumentLineage, EffectEntry, ToolVersion


class Laws(msgspec.Struct, frozen=True):
    """What conversations are judged by: rules, the operator's catalogue, whom to trust, what is accepted.
    `trust_approvals`: approvals that spans assert count from every service, not from `trusted` alone."""

    rules: RuleSet
    catalogue: Catalogue | None = None
    trusted: frozenset[str] = frozenset()
    suppress: tuple[Suppression, ...] = ()
    trust_approvals: bool = False


class Judgement(msgspec.Struct, frozen=True):
    """The whole answer for one conversation. `call_effects` is {call key: (effect, repeat)},
    `not_evaluable` {run id: {rule id: reason}}, `check_errors` {rule id: times it raised}, `raised` what
    and where, `undecided` {rule id: conditions that could not be decided}, `suppressed` what is accepted,
    `lineage` {call key: where its arguments came from} of runs that are over."""

    timeline: Timeline
    findings: tuple[Finding, ...]
    effects: tuple[EffectEntry, ...]
    call_effects: dict[str, tuple[str, str]]
    not_evaluable: dict[str, dict[str, str]]
    check_errors: dict[str, int]
    raised: dict[str, str] = {}
    undecided: dict[str, int] = {}
    suppressed: tuple[Suppressed, ...] = ()
    lineage: dict[str, tuple[ArgumentLineage, ...]] = {}


def judge(timeline: Timeline, laws: Laws) -> Judgement:
    """Run every rule over the conversation. Runs without a `closed` reason are judged by the rules
    that fire at once; the rest wait."""
    view = View(timeline, laws.catalogue, laws.trusted, laws.trust_approvals)
    closed = {run.run_id for run in timeline.runs if run.closed}
    evaluation = evaluate(laws.rules, view, closed, laws.suppress)
    entries = (effect_entry(call, view) for call in view.calls)
    effects = {call.key: view.effect(call) for call in view.calls}
    return Judgement(
        timeline=timeline,
        findings=tuple(evaluation.findings),
        effects=tuple(entry for entry in entries if entry is not None),
        call_effects={key: (found.effect, found.repeat) for key, found in effects.items()},
        not_evaluable=evaluation.not_evaluable,
        check_errors=evaluation.errors,
        raised=evaluation.raised,
        undecided=evaluation.undecided,
        suppressed=tuple(evaluation.suppressed),
        lineage=lineages(view, closed),
    )


def judge_effects(
    entries: Sequence[EffectEntry], laws: Laws, trouble: Trouble | None = None, kind: HistoryKind = "effect"
) -> tuple[Finding, ...]:
    """Run the ledger's rules over the history of one effect key, in any order given. `trouble`, when
    given, is filled with what went wrong and what is accepted."""
    ordered = sorted(entries, key=lambda entry: (entry.start_time_unix_nano, entry.anchor))
    return tuple(evaluate_effects(laws.rules, ordered, laws.suppress, trouble, kind))


def judge_tools(versions: Sequence[ToolVersion], laws: Laws, trouble: Trouble | None = None) -> tuple[Finding, ...]:
    """Run the ledger's rules over the versions of one tool, in any order given. `trouble` as above."""
    return tuple(evaluate_tools(laws.rules, with_approved(versions, laws.catalogue), laws.suppress, trouble))
