"""What evaluate does with evidence: needs, closing, severity, precedence, errors, suppressions, fields."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest

from otelmon.checks.view import View
from otelmon.rules.evaluate import Trouble, evaluate, evaluate_effects
from otelmon.rules.model import Need, RuleSet
from otelmon.vocabulary.config import Suppression
from otelmon.vocabulary.event import AssistantMessage, Run, ToolCall, ToolDefinition
from otelmon.vocabulary.finding import Evidence, Severity, finding_id
from otelmon.vocabulary.messages import EffectEntry
from tests.rules.helpers import entry, every_call, rule, view

PAY = {"tool": "pay", "args": {"amount": 1}}
TOOLS = {
    "tools": [
        {"name": "pay", "effect": "write"},
        {"name": "get", "effect": "read"},
        {"name": "drop", "effect": "destructive"},
    ]
}


def at_final(message: AssistantMessage, view: View, params: Any) -> Iterator[Evidence]:
    yield Evidence(summary="final", anchor=message.span_id)


def at_run(run: Run, view: View, params: Any) -> Iterator[Evidence]:
    yield Evidence(summary="run", anchor=run.run_id)


def at_definition(definition: ToolDefinition, view: View, params: Any) -> Iterator[Evidence]:
    yield Evidence(summary="tool", anchor=f"tool:{definition.name}")


def test_a_finding_carries_the_facts_of_its_run_and_call() -> None:
    def check(call: ToolCall, view: View, params: Any) -> Iterator[Evidence]:
        yield Evidence(summary="seen", anchor=call.key, key="k", span_ids=("other", call.span_id), details={"a": 1})

    seen = view({"agent": "till", "environment": "prod", "service": "shop", "id": "c1", **PAY})
    (found,) = evaluate([rule(check)], seen).findings
    call = seen.calls[0]
    assert found.finding_id == finding_id("example", call.key, "k")
    assert (found.rule_id, found.rule_version, found.family, found.status) == ("example", "v1", "policy", "open")
    assert (found.trace_id, found.run_id, found.conversation_id) == (call.trace_id, call.run_id, "conversation-main")
    assert found.span_ids == (call.span_id, "other")
    assert (found.tool_call_id, found.tool_name) == ("c1", "pay")
    assert (found.agent_name, found.environment, found.service_name) == ("till", "prod", "shop")
    assert (found.summary, found.evidence) == ("seen", {"a": 1})
    assert found.event_time_unix_nano == call.start_time_unix_nano


def test_findings_at_a_final_message_a_run_and_a_tool() -> None:
    seen = view({"define": {"name": "pay"}}, PAY, {"assistant": "done"})
    functions: dict[Any, Any] = {"final": at_final, "run": at_run, "definition": at_definition}
    by_summary = {f.summary: f for f in evaluate([rule(functions=functions)], seen).findings}
    assert set(by_summary) == {"final", "run", "tool"}
    final, run, tool = by_summary["final"], by_summary["run"], by_summary["tool"]
    assert (final.tool_call_id, final.tool_name, final.span_ids) == (None, None, (seen.events[2].span_id,))
    assert (run.tool_name, run.span_ids) == (None, (seen.runs[0].run_id.split(":")[1],))
    assert (tool.tool_call_id, tool.tool_name, tool.span_ids) == (None, "pay", (seen.events[0].span_id,))


def test_a_tool_finding_points_at_the_definition_that_was_looked_at() -> None:
    def each(definition: ToolDefinition, view: View, params: Any) -> Iterator[Evidence]:
        yield Evidence(summary="", anchor=f"tool:{definition.name}", key=definition.run_id)

    define = {"define": {"name": "pay"}}
    seen = view(define, {"define": {"name": "other"}}, {**define, "run": "new"})
    found = evaluate([rule(each, on="definition")], seen).findings
    spans = [e.span_id for e in seen.events if isinstance(e, ToolDefinition)]
    assert [(f.tool_name, f.span_ids[0]) for f in found] == list(zip(("pay", "other", "pay"), spans, strict=True))


def test_a_tool_finding_of_a_call_points_at_the_definition_in_its_run() -> None:
    def its_tool(call: ToolCall, view: View, params: Any) -> Iterator[Evidence]:
        yield Evidence(summary="", anchor=f"tool:{call.tool_name}")

    seen = view({"define": {"name": "other"}}, {"define": {"name": "pay"}}, PAY)
    (found,) = evaluate([rule(its_tool)], seen).findings
    assert (found.tool_name, found.tool_call_id, found.span_ids) == ("pay", None, (seen.events[1].span_id,))


@pytest.mark.parametrize(
    ("need", "event", "more", "reason"),
    [
        ("arguments", {"fidelity": "absent"}, {}, "content_off"),
        ("arguments", {"fidelity": "hashed"}, {}, "hashed"),
        ("arguments", {"fidelity": "truncated"}, {}, "truncated"),
        ("arguments", {"fidelity": "redacted"}, {}, None),
        ("result", {"result_fidelity": "absent"}, {}, "content_off"),
        ("result", {"result_fidelity": "truncated"}, {}, "truncated"),
        ("result", {"fidelity": "absent"}, {}, None),
        ("catalogue", {}, {}, "no_catalogue"),
        ("catalogue", {}, {"catalogue": TOOLS}, None),
        ("user_text", {}, {}, "content_off"),
        ("user_text", {}, {"gaps": ["sampled"]}, "sampled"),
        ("context_complete", {}, {"gaps": ["prior_turns_unseen"]}, "prior_turns_unseen"),
        ("context_complete", {}, {}, None),
        ("context_complete", {}, {"gaps": ["incomplete_run"]}, "incomplete_run"),
        ("past_complete", {}, {"gaps": ["incomplete_run"]}, None),
        ("past_complete", {}, {"gaps": ["incomplete_run", "truncated"]}, "truncated"),
        ("final_message", {}, {}, "incomplete_run"),
        ("run_end", {}, {"gaps": ["sampled"]}, None),
    ],
)
def test_a_need_that_is_not_met_makes_the_rule_not_evaluable(
    need: Need, event: dict[str, Any], more: dict[str, Any], reason: str | None
) -> None:
    seen = view({**PAY, **event}, **more)
    result = evaluate([rule(needs=(need,))], seen)
    expected = {} if reason is None else {seen.runs[0].run_id: {"example": reason}}
    assert result.not_evaluable == expected
    assert len(result.findings) == (1 if reason is None else 0)


def test_the_error_message_of_a_failed_call_is_its_result() -> None:
    hidden = {**PAY, "result_fidelity": "absent", "outcome": "failed"}
    told, silent = view({**hidden, "error": "card expired"}), view(hidden)
    assert evaluate([rule(needs=("result",))], told).not_evaluable == {}
    assert evaluate([rule(needs=("result",))], silent).not_evaluable != {}


def test_needs_count_only_where_the_rule_would_have_been_asked() -> None:
    assert evaluate([rule(needs=("catalogue",))], view({"user": "hello"})).not_evaluable == {}


def test_every_need_must_be_met() -> None:
    result = evaluate([rule(needs=("arguments", "catalogue"))], view(PAY))
    assert list(result.not_evaluable.values()) == [{"example": "no_catalogue"}]


def test_a_final_message_that_is_there_meets_the_need() -> None:
    seen = view(PAY, {"assistant": "paid"}, gaps=["sampled"])
    assert len(evaluate([rule(needs=("final_message",))], seen).findings) == 1


def test_needs_of_a_call_do_not_hold_back_a_rule_about_messages() -> None:
    seen = view(PAY, {"assistant": "paid"})
    result = evaluate([rule(at_final, on="final", needs=("arguments", "result"))], seen)
    assert (len(result.findings), result.not_evaluable, result.errors) == (1, {}, {})


def test_user_text_must_come_before_the_anchor() -> None:
    assert evaluate([rule(needs=("user_text",))], view(PAY, {"user": "pay"})).findings == []
    assert len(evaluate([rule(needs=("user_text",))], view({"user": "pay"}, PAY)).findings) == 1


def test_one_blind_call_hides_nothing_at_its_neighbours() -> None:
    seen = view({**PAY, "fidelity": "absent"}, PAY)
    result = evaluate([rule(needs=("arguments",))], seen)
    assert [f.span_ids[0] for f in result.findings] == [seen.calls[1].span_id]
    assert result.not_evaluable == {seen.runs[0].run_id: {"example": "content_off"}}


def test_rules_that_wait_are_asked_when_the_run_is_over() -> None:
    seen = view(PAY, {"assistant": "done"}, closed=False)
    waiting = [
        rule(rule_id="waits", needs=("run_end",)),
        rule(at_final, "final", on="final"),
        rule(at_run, "run", on="run"),
    ]
    assert evaluate([*waiting, rule(rule_id="now")], seen).findings[0].rule_id == "now"
    assert evaluate(waiting, seen).findings == []
    over = evaluate(waiting, seen, closed_runs={seen.runs[0].run_id}).findings
    assert sorted(f.rule_id for f in over) == ["final", "run", "waits"]


def test_only_closed_runs_are_asked_about_not_their_neighbours() -> None:
    seen = view(PAY, {**PAY, "trace": "new"}, closed=False)
    found = evaluate([rule(needs=("run_end",))], seen).findings
    assert [f.run_id for f in found] == [seen.runs[0].run_id]


@pytest.mark.parametrize(
    ("tool", "outcome", "severity", "own", "fixed", "expected"),
    [
        ("pay", "succeeded", "medium", None, False, "medium"),
        ("get", "succeeded", "critical", None, False, "medium"),
        ("get", "succeeded", "low", None, False, "low"),
        ("drop", "succeeded", "low", None, False, "high"),
        ("drop", "unknown", "low", None, False, "high"),
        ("drop", "failed", "low", None, False, "low"),
        ("drop", "denied", "low", None, False, "low"),
        ("drop", "succeeded", "critical", None, False, "critical"),
        ("get", "succeeded", "low", "critical", False, "critical"),
        ("drop", "succeeded", "high", "info", False, "info"),
        ("drop", "succeeded", "low", None, True, "low"),
        ("get", "succeeded", "critical", "low", True, "critical"),
    ],
)
def test_severity_weighs_the_effect(
    tool: str, outcome: str, severity: Severity, own: Severity | None, fixed: bool, expected: Severity
) -> None:
    def check(call: ToolCall, view: View, params: Any) -> Iterator[Evidence]:
        yield Evidence(summary="", anchor=call.key, severity=own)

    seen = view({"tool": tool, "outcome": outcome}, catalogue=TOOLS)
    (found,) = evaluate([rule(check, severity=severity, severity_fixed=fixed)], seen).findings
    assert found.severity == expected


def named(*arguments: str) -> Any:
    def check(call: ToolCall, view: View, params: Any) -> Iterator[Evidence]:
        for argument in arguments:
            yield Evidence(
                summary="", anchor=call.key, key=argument, details={"argument": argument} if argument else {}
            )

    return check


@pytest.mark.parametrize(
    ("better", "worse", "expected"),
    [
        (("",), ("",), ["better"]),
        (("id",), ("",), ["better"]),
        (("id",), ("id",), ["better"]),
        (("id",), ("amount",), ["better", "worse"]),
        (("id",), ("amount", "id"), ["better", "worse"]),
        ((), ("",), ["worse"]),
    ],
)
def test_the_better_explanation_of_one_fact_wins(
    better: Sequence[str], worse: Sequence[str], expected: list[str]
) -> None:
    rules = [rule(named(*worse), "worse"), rule(named(*better), "better", wins_over=("worse",))]
    assert [f.rule_id for f in evaluate(rules, view(PAY)).findings] == expected


def test_precedence_holds_at_one_anchor_only() -> None:
    def first(call: ToolCall, view: View, params: Any) -> Iterator[Evidence]:
        if call is view.calls[0]:
            yield Evidence(summary="", anchor=call.key)

    found = evaluate([rule(rule_id="worse"), rule(first, "better", wins_over=("worse",))], view(PAY, PAY)).findings
    assert [f.rule_id for f in found] == ["better", "worse"]


def test_a_check_that_raises_is_counted_and_stops_nothing() -> None:
    def breaks(call: ToolCall, view: View, params: Any) -> Iterator[Evidence]:
        yield Evidence(summary="", anchor=call.key)
        if call is view.calls[1]:
            raise ZeroDivisionError

    seen = view(PAY, PAY, PAY)
    result = evaluate([rule(breaks, "breaks"), rule(rule_id="works")], seen)
    assert result.errors == {"breaks": 1}
    spans = {r: [f.span_ids[0] for f in result.findings if f.rule_id == r] for r in ("breaks", "works")}
    assert spans == {"breaks": [seen.calls[0].span_id, seen.calls[2].span_id], "works": [c.span_id for c in seen.calls]}


def test_evidence_that_points_at_nothing_is_an_error_of_the_check() -> None:
    def lost(call: ToolCall, view: View, params: Any) -> Iterator[Evidence]:
        yield Evidence(summary="", anchor="nowhere")

    result = evaluate([rule(lost)], view(PAY))
    assert (result.findings, result.errors) == ([], {"example": 1})
    assert result.raised["example"].startswith(
        "LookupError: evidence points at nowhere, which is not in the conversation at evaluate.py:"
    )


def test_evidence_may_point_at_another_event_than_the_one_asked_about() -> None:
    def elsewhere(call: ToolCall, view: View, params: Any) -> Iterator[Evidence]:
        yield Evidence(summary="", anchor=view.events[0].span_id)

    seen = view({"user": "pay"}, {"tool": "pay", "id": "c1"}, {"assistant": "paid"})

    def the_call(message: AssistantMessage, view: View, params: Any) -> Iterator[Evidence]:
        yield Evidence(summary="", anchor=view.calls[0].key)

    (found,) = evaluate([rule(elsewhere)], seen).findings
    assert (found.span_ids, found.tool_name) == ((seen.events[0].span_id,), None)
    (found,) = evaluate([rule(the_call, on="final")], seen).findings
    assert (found.span_ids, found.tool_name, found.tool_call_id) == ((seen.calls[0].span_id,), "pay", "c1")


def test_a_finding_on_an_open_run_is_not_one_on_its_last_call() -> None:
    seen = view({"tool": "drop"}, catalogue=TOOLS, closed=False)
    (found,) = evaluate([rule(at_run, on="run", severity="low")], seen, closed_runs={seen.runs[0].run_id}).findings
    assert (found.tool_name, found.severity) == (None, "low")
    assert found.span_ids == (seen.runs[0].run_id.split(":")[1],)


def test_the_same_evidence_twice_is_one_finding() -> None:
    def twice(call: ToolCall, view: View, params: Any) -> Iterator[Evidence]:
        yield Evidence(summary="one", anchor=call.key)
        yield Evidence(summary="two", anchor=call.key)

    assert [f.summary for f in evaluate([rule(twice)], view(PAY)).findings] == ["one"]


@pytest.mark.parametrize(
    ("suppression", "kept"),
    [
        ({}, False),
        ({"rule": "*"}, False),
        ({"rule": "other"}, True),
        ({"where": {"agent": "till", "tool": "pay", "environment": "prod", "service": "shop"}}, False),
        ({"where": {"tool": "refund"}}, True),
        ({"expires": "2026-01-01"}, False),
        ({"expires": "2025-12-31"}, True),
    ],
)
def test_a_suppression_takes_what_it_names_until_its_last_day(suppression: dict[str, Any], kept: bool) -> None:
    accepted = Suppression(**{"rule": "example", "reason": "known", "expires": "2027-01-01", **suppression})
    seen = view({"agent": "till", "environment": "prod", "service": "shop", **PAY})
    result = evaluate([rule()], seen, suppress=[accepted])
    assert len(result.findings) == (1 if kept else 0)
    assert [s.reason for s in result.suppressed] == ([] if kept else ["known"])


def test_a_suppressed_finding_still_explains_a_worse_one() -> None:
    rules = [rule(rule_id="worse"), rule(rule_id="better", wins_over=("worse",))]
    accepted = Suppression(rule="better", reason="known", expires="2027-01-01")
    assert evaluate(rules, view(PAY), suppress=[accepted]).findings == []


def test_a_rule_set_is_evaluated_like_its_rules() -> None:
    one = rule()
    assert evaluate(RuleSet({"example": one}, "v"), view(PAY)) == evaluate([one], view(PAY))


def later(entries: Sequence[EffectEntry], params: Any) -> Iterator[Evidence]:
    for one, two in pairwise(entries):
        yield Evidence(summary="again", anchor=two.anchor, span_ids=(two.span_id, one.span_id))


def test_effect_histories_give_findings_with_the_facts_of_the_entry() -> None:
    history = [
        entry(),
        entry(anchor="u:2", trace_id="u", span_id="2", run_id="u:0", conversation_id="d", tool_call_id="c2"),
    ]
    (found,) = evaluate_effects([rule(later, on="effect", severity="high")], history)
    assert found.finding_id == finding_id("example", "u:2", "")
    assert (found.trace_id, found.run_id, found.conversation_id, found.span_ids) == ("u", "u:0", "d", ("2", "1"))
    assert (found.tool_call_id, found.tool_name, found.agent_name, found.severity) == ("c2", "pay", "a", "high")
    assert (found.environment, found.service_name, found.event_time_unix_nano) == ("prod", "s", 1)


def test_effect_evaluation_counts_errors_and_leaves_other_checks_alone() -> None:
    def breaks(entries: Sequence[EffectEntry], params: Any) -> Iterator[Evidence]:
        yield Evidence(summary="", anchor="of nothing")

    trouble = Trouble()
    rules = [rule(breaks, "breaks", on="effect"), rule(every_call, "call"), rule(later, "works", on="effect")]
    found = evaluate_effects(rules, [entry(), entry(anchor="u:2")], trouble=trouble)
    assert [f.rule_id for f in found] == ["works"]
    assert trouble.errors == {"breaks": 1}
    assert "LookupError" in trouble.raised["breaks"] or "KeyError" in trouble.raised["breaks"]
    assert [f.rule_id for f in evaluate_effects(rules, [entry(), entry(anchor="u:2")])] == ["works"]


def test_a_ledger_check_is_not_asked_about_conversations() -> None:
    result = evaluate([rule(later, on="effect")], view(PAY, PAY))
    assert (result.findings, result.errors) == ([], {})


def test_effect_findings_can_be_suppressed() -> None:
    accepted = Suppression(rule="*", reason="known", expires="2027-01-01")
    trouble = Trouble()
    assert evaluate_effects([rule(later, on="effect")], [entry(), entry(anchor="u:2")], [accepted], trouble) == []
    assert [one.by for one in trouble.suppressed] == [accepted]
