"""Runs the inline tests of a rule: builds the conversation, asks the rule, compares positions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from otelmon.checks.lib.effects import effect_entry
from otelmon.checks.lib.histories import history_kind
from otelmon.checks.lib.tool_versions import tool_versions, with_approved
from otelmon.rules.catalogue import catalogue_of
from otelmon.rules.evaluate import Evaluation, Trouble, evaluate, evaluate_effects, evaluate_tools
from otelmon.rules.loader import with_params
from otelmon.rules.model import Rule
from otelmon.rules.notation import TestCase
from otelmon.rules.scene import Scene, build
from otelmon.vocabulary.finding import Finding, Severity, level
from otelmon.vocabulary.messages import EffectEntry, ToolVersion

Verdict = Literal["pass", "FAIL", "ERROR"]


class TestResult(msgspec.Struct, frozen=True):
    """How one inline test went. FAIL: the rule said something else than the test; ERROR: it could not
    be asked (its check raised, the test could not be built). `message` says why, "" for a pass."""

    __test__ = False  # not a test class of pytest

    rule_id: str
    name: str
    verdict: Verdict
    message: str = ""

    def __str__(self) -> str:
        return f"{self.verdict} {self.rule_id}: {self.name}" + (f": {self.message}" if self.message else "")


def run_rule_tests(rule: Rule) -> list[TestResult]:
    """All inline tests of a rule, in the order of the file."""
    return [run_rule_test(rule, case) for case in rule.tests]


def run_rule_test(rule: Rule, case: TestCase) -> TestResult:
    """One inline test. Never raises."""
    try:
        verdict, message = _run(rule, case)
    except Exception as error:  # noqa: BLE001 - a test that can not be run is a result, not a crash
        verdict, message = "ERROR", f"{type(error).__name__}: {error}"
    return TestResult(rule.id, case.name, verdict, message)


def _run(rule: Rule, case: TestCase) -> tuple[Verdict, str]:
    subject = with_params(rule, case.params) if case.params else rule
    scene = build(case, catalogue_of(case.catalogue) if case.catalogue is not None else None)
    trouble = Trouble()
    found: list[Finding] = []
    reasons: set[str] = set()
    for view in scene.views:
        evaluation = evaluate([subject], view)
        trouble.raised |= evaluation.raised
        found.extend(evaluation.findings)
        reasons |= _reasons(evaluation)
    found.extend(_effects_of(subject, scene, trouble))
    found.extend(_tools_of(subject, scene, trouble))
    if trouble.raised:
        return "ERROR", f"the check raised {trouble.raised[subject.id]}"
    return _compare(case, _located(found, scene), reasons)


def _compare(case: TestCase, fired: dict[int, Severity], reasons: set[str]) -> tuple[Verdict, str]:
    expected = case.expected()
    if set(expected) != set(fired):
        return "FAIL", f"expected {_positions(expected)}, got {_positions(fired)}"
    for position, severity in sorted(expected.items()):
        if severity is not None and fired[position] != severity:
            return "FAIL", f"expected severity {severity} at {position}, got {fired[position]}"
    if case.not_evaluable is not None and case.not_evaluable not in reasons:
        return "FAIL", f"expected not_evaluable {case.not_evaluable}, got {', '.join(sorted(reasons)) or 'none'}"
    return "pass", ""


def _positions(positions: Mapping[int, object]) -> str:
    return f"findings at {', '.join(str(p) for p in sorted(positions))}" if positions else "no finding"


def _reasons(evaluation: Evaluation) -> set[str]:
    return {reason for by_rule in evaluation.not_evaluable.values() for reason in by_rule.values()}


def _effects_of(rule: Rule, scene: Scene, trouble: Trouble) -> Iterator[Finding]:
    """What a ledger rule finds, as the ledger would: all conversations together, one history a key."""
    if not {"effect", "request", "key"} & rule.check.functions.keys():
        return
    histories: dict[str, list[EffectEntry]] = {}
    for view in scene.views:
        for call in view.calls:
            entry = effect_entry(call, view)
            if entry is not None:
                for key in (entry.effect_key, *entry.histories):
                    histories.setdefault(key, []).append(entry)
    for key, history in histories.items():
        ordered = sorted(history, key=lambda e: (e.start_time_unix_nano, e.anchor))
        yield from evaluate_effects([rule], ordered, trouble=trouble, kind=history_kind(key))


def _tools_of(rule: Rule, scene: Scene, trouble: Trouble) -> Iterator[Finding]:
    """What a rule finds in the histories of tools, as the ledger would."""
    if "tool" not in rule.check.functions:
        return
    histories: dict[str, list[ToolVersion]] = {}
    for view in scene.views:
        for version in tool_versions(view.timeline):
            histories.setdefault(version.tool_key, []).append(version)
    catalogue = scene.views[0].catalogue if scene.views else None
    for history in histories.values():
        yield from evaluate_tools([rule], with_approved(history, catalogue), trouble=trouble)


def _located(findings: Sequence[Finding], scene: Scene) -> dict[int, Severity]:
    """The highest severity by the position of the event that findings point at."""
    fired: dict[int, Severity] = {}
    for finding in findings:
        position = scene.positions[finding.span_ids[0]]
        before = fired.get(position, finding.severity)
        fired[position] = max(before, finding.severity, key=level)
    return fired
