"""Inline tests: pass, FAIL and ERROR, and what each one says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from otelmon.checks.view import View
from otelmon.rules.examples import run_rule_test, run_rule_tests
from otelmon.vocabulary.event import AssistantMessage, Run, ToolCall, ToolDefinition
from otelmon.vocabulary.finding import Evidence
from otelmon.vocabulary.messages import EffectEntry
from tests.rules.helpers import case, every_call, rule, too_dear

DEAR = {"tool": "pay", "args": {"amount": 101}}
LINE = str(too_dear.__code__.co_firstlineno + 2)
CHEAP = {"tool": "pay", "args": {"amount": 100}}


@pytest.mark.parametrize(
    ("events", "fires", "more", "expected"),
    [
        ([CHEAP, DEAR], [2], {}, "pass example: a test"),
        ([CHEAP, DEAR], [{2: "high"}], {}, "pass example: a test"),
        ([CHEAP], [], {}, "pass example: a test"),
        ([{**CHEAP, "repeat": 3}, DEAR], [4], {}, "pass example: a test"),
        ([DEAR], [], {}, "FAIL example: a test: expected no finding, got findings at 1"),
        ([CHEAP, DEAR], [1], {}, "FAIL example: a test: expected findings at 1, got findings at 2"),
        ([DEAR, DEAR], [1], {}, "FAIL example: a test: expected findings at 1, got findings at 1, 2"),
        ([CHEAP], [1], {}, "FAIL example: a test: expected findings at 1, got no finding"),
        ([DEAR], [{1: "low"}], {}, "FAIL example: a test: expected severity low at 1, got high"),
        ([DEAR], [], {"params": {"limit": 200}}, "pass example: a test"),
        ([DEAR], [], {"params": {"limit": "x"}}, 'ERROR example: a test: UserError: example.params: limit is "x"; expected a whole number'),
        ([{"tool": "pay", "args": "{"}], [], {}, "ERROR example: a test: the check raised AttributeError: 'NoneType' object has no attribute 'get' at helpers.py:{line}"),
        ([DEAR], [], {"content": "off", "not_evaluable": "content_off"}, "pass example: a test"),
        ([CHEAP], [], {"not_evaluable": "content_off"}, "FAIL example: a test: expected not_evaluable content_off, got none"),
        ([DEAR], [], {"content": "off", "not_evaluable": "hashed"}, "FAIL example: a test: expected not_evaluable hashed, got content_off"),
    ],
)  # fmt: skip
def test_how_a_test_goes_and_what_it_says(
    events: list[dict[str, Any]], fires: list[Any], more: dict[str, Any], expected: str
) -> None:
    fires = [{str(k): v for k, v in f.items()} if isinstance(f, dict) else f for f in fires]
    assert str(run_rule_test(rule(too_dear, needs=("arguments",)), case(events, fires, **more))) == expected.replace(
        "{line}", LINE
    )


def test_the_catalogue_of_a_test_is_in_force() -> None:
    catalogue = {"tools": [{"name": "pay", "effect": "read"}]}
    subject = rule(every_call, severity="high")
    assert run_rule_test(subject, case([DEAR], [{"1": "medium"}], catalogue=catalogue)).verdict == "pass"
    assert run_rule_test(subject, case([DEAR], [{"1": "high"}])).verdict == "pass"


def test_findings_at_messages_tools_and_runs_count_at_their_place() -> None:
    def final(message: AssistantMessage, view: View, params: Any) -> Iterator[Evidence]:
        yield Evidence(summary="", anchor=message.span_id)

    def run(run: Run, view: View, params: Any) -> Iterator[Evidence]:
        yield Evidence(summary="", anchor=run.run_id)

    def definition(definition: ToolDefinition, view: View, params: Any) -> Iterator[Evidence]:
        yield Evidence(summary="", anchor=f"tool:{definition.name}")

    events = [{"user": "x"}, {"define": {"name": "pay"}}, {"assistant": "y"}, DEAR, {"assistant": "z"}]
    for on, function, fires in (("final", final, [5]), ("run", run, [5]), ("definition", definition, [2])):
        result = run_rule_test(rule(function, on=on), case(events, fires))  # type: ignore[arg-type]
        assert str(result) == "pass example: a test"


def test_the_last_run_can_be_left_open() -> None:
    subject = rule(every_call, needs=("run_end",))
    assert run_rule_test(subject, case([DEAR, {**DEAR, "trace": "new"}], [1], closed=False)).verdict == "pass"
    assert run_rule_test(subject, case([DEAR, {**DEAR, "trace": "new"}], [1, 2])).verdict == "pass"


def test_all_conversations_of_a_test_feed_one_ledger() -> None:
    def again(entries: Sequence[EffectEntry], params: Any) -> Iterator[Evidence]:
        for entry in entries[1:]:
            yield Evidence(summary="", anchor=entry.anchor)

    write = {"tool": "pay", "args": {"order_id": "A-1", "amount": 5}}
    events = [write, {**write, "conversation": "other"}, {"tool": "pay", "args": {"order_id": "A-2", "amount": 5}}]
    catalogue = {"tools": [{"name": "pay", "effect": "write"}]}
    subject = rule(again, on="effect")
    assert str(run_rule_test(subject, case(events, [2], catalogue=catalogue))) == "pass example: a test"


def test_an_error_in_a_ledger_check_is_an_error_of_the_test() -> None:
    def breaks(entries: Sequence[EffectEntry], params: Any) -> Iterator[Evidence]:
        yield Evidence(summary="", anchor=f"{1 // 0}")

    catalogue = {"tools": [{"name": "pay", "effect": "write"}]}
    result = run_rule_test(rule(breaks, on="effect"), case([DEAR], [], catalogue=catalogue))
    assert result.verdict == "ERROR"
    assert result.message.startswith(
        "the check raised ZeroDivisionError: integer division or modulo by zero at test_examples.py:"
    )


def test_the_highest_severity_at_a_position_counts() -> None:
    def two(call: ToolCall, view: View, params: Any) -> Iterator[Evidence]:
        yield Evidence(summary="", anchor=call.key, key="1", severity="high")
        yield Evidence(summary="", anchor=call.key, key="2", severity="low")

    assert run_rule_test(rule(two), case([DEAR], [{"1": "high"}])).verdict == "pass"


def test_all_tests_of_a_rule_run_in_order() -> None:
    tests = (case([DEAR], [1]), case([DEAR], []))
    assert [r.verdict for r in run_rule_tests(rule(too_dear, tests=tests))] == ["pass", "FAIL"]
