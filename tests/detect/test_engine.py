"""Judging is pure: the same timeline under the same laws gives the same judgement."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from otelmon.assemble.timeline import build
from otelmon.checks.view import View
from otelmon.detect.engine import Laws, judge, judge_effects
from otelmon.rules.model import RuleSet
from otelmon.vocabulary.config import Suppression
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import Evidence
from otelmon.vocabulary.messages import EffectEntry
from tests.detect.build import invented, laws, refunded
from tests.rules.helpers import entry, rule


def test_every_call_has_an_effect_and_every_write_an_entry() -> None:
    span = refunded(times=2)
    span.tool("get_order", 5, 6, parent=span.readings[0], result={"id": "OR-771"}, order="OR-771")
    judgement = judge(build("conv", span.readings), laws())
    assert sorted(judgement.call_effects.values()) == [
        ("destructive", "additive"), ("destructive", "additive"), ("read", "absolute"),
    ]  # fmt: skip
    assert [one.tool_name for one in judgement.effects] == ["issue_refund", "issue_refund"]
    assert len({one.effect_key for one in judgement.effects}) == 1


def test_rules_that_wait_are_asked_only_about_runs_that_are_over() -> None:
    readings = invented().readings
    [run] = build("conv", readings).runs
    assert judge(build("conv", readings), laws()).findings == ()
    over = judge(build("conv", readings, {run.run_id: "root"}), laws())
    assert [finding.rule_id for finding in over.findings] == ["ungrounded_argument"]


def test_what_could_not_be_decided_is_said_by_run_and_rule() -> None:
    readings = invented().readings[:3]
    [run] = build("conv", readings).runs
    judgement = judge(build("conv", readings, {run.run_id: "idle"}), laws())
    assert judgement.not_evaluable[run.run_id]["false_success"] == "incomplete_run"
    assert "ungrounded_argument" not in judgement.not_evaluable[run.run_id]  # what came before its calls was seen


def broken(call: ToolCall, view: View, params: Any) -> Iterator[Evidence]:
    """A check with a bug."""
    raise RuntimeError("a bug")


def test_a_check_that_raises_is_counted_and_stops_no_other() -> None:
    rules = {**laws().rules.rules, "broken": rule(broken, "broken")}
    judgement = judge(build("conv", refunded(times=2).readings), Laws(msgspec.structs.replace(laws().rules, rules=rules)))  # fmt: skip
    assert judgement.check_errors == {"broken": 2}
    assert [finding.rule_id for finding in judgement.findings] == ["duplicate_write"]


def test_what_the_operator_accepted_is_not_found() -> None:
    accepted = Suppression(rule="duplicate_write", where={"tool": "issue_refund"}, reason="known", expires="2999-01-01")
    judged = msgspec.structs.replace(laws(), suppress=(accepted,))
    assert judge(build("conv", refunded(times=2).readings), judged).findings == ()
    assert judge_effects(pair(), judged) == ()


def pair() -> list[EffectEntry]:
    second = 1_000_000_000
    return [
        entry(anchor=f"{t}:1", trace_id=t, run_id=f"{t}:0", conversation_id=f"c{t}", tool_name="issue_refund",
              effect="destructive", start_time_unix_nano=n * second, end_time_unix_nano=n * second + 1)
        for n, t in enumerate("abc", 1)
    ]  # fmt: skip


@given(st.permutations(pair()))
@settings(max_examples=20, deadline=None)
def test_the_order_of_effects_changes_nothing(entries: list[EffectEntry]) -> None:
    found = judge_effects(entries, laws())
    assert found == judge_effects(pair(), laws())
    assert [finding.rule_id for finding in found] == ["duplicate_write", "duplicate_write"]


def test_no_rules_find_nothing() -> None:
    none = Laws(RuleSet({}, "0"))
    judgement = judge(build("conv", refunded(times=2).readings), none)
    assert (judgement.findings, judgement.not_evaluable, judgement.check_errors) == ((), {}, {})
    assert judge_effects(pair(), none) == ()
