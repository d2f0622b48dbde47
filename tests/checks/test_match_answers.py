"""The policy language beyond one call: answers, later calls, computed values, approvals, and what loading refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from otelmon.checks.lib.conditions import compile_value
from otelmon.checks.lib.expressions import expression_mistakes
from otelmon.checks.lib.patterns import sentences
from otelmon.rules.evaluate import evaluate
from otelmon.rules.loader import load_rule
from otelmon.vocabulary.errors import UserError
from tests.checks.test_match import CLOSE, CLOSED, HELLO, LOOK, holds, verdicts, write
from tests.rules.helpers import view

REFUSES = {"says": ["(?i)can ?not be (?P<what>closed|opened)"], "unless": ["(?i)yet"]}


def said(text: str) -> dict[str, Any]:
    return {"assistant": text}


def test_a_sentence_of_an_answer(tmp_path: Path) -> None:
    params = {"answer": REFUSES, "when": "true"}
    fires = [HELLO, said("I looked. It cannot be closed! Sorry.")]
    assert verdicts(write(tmp_path, params, (fires, [2]), ([HELLO, said("It is closed.")], []))) == []
    assert verdicts(write(tmp_path, params, (fires, [2]), ([HELLO, said("It cannot be closed yet.")], []))) == []


def test_another_sentence_excuses_nothing(tmp_path: Path) -> None:
    holds(
        tmp_path,
        {"answer": REFUSES, "when": "true"},
        [HELLO, said("Not yet. It cannot be closed.")],
        [HELLO, said("It cannot be closed yet.")],
    )


def test_what_was_found_in_the_sentence_may_be_asked(tmp_path: Path) -> None:
    params = {
        "answer": REFUSES,
        "when": "answer.what == 'closed' && answer.text.contains('It') && answer.message.contains('Hi')",
    }
    holds(tmp_path, params, [HELLO, said("Hi. It cannot be closed.")], [HELLO, said("Hi. It cannot be opened.")])
    holds(tmp_path, params, [HELLO, said("Hi. It cannot be closed.")], [HELLO, said("It cannot be closed.")])


def test_an_answer_is_held_against_what_was_read(tmp_path: Path) -> None:
    let = {"plan": {"tools": ["get_*"], "where": "answer.text.contains(result.id)"}}
    params = {"answer": REFUSES, "let": let, "when": "plan.open"}
    refusal = said("Plan P-1 cannot be closed.")
    holds(tmp_path, params, [HELLO, LOOK, refusal], [HELLO, CLOSED, refusal])
    holds(tmp_path, params, [HELLO, LOOK, refusal], [HELLO, LOOK, said("Plan P-2 cannot be closed.")])


def test_a_rule_on_answers_waits_for_the_end_of_the_run(tmp_path: Path) -> None:
    path = write(tmp_path, {"answer": REFUSES, "when": "true"})
    seen = view(HELLO, said("It cannot be closed."))
    assert [f.tool_call_id for f in evaluate([load_rule(path)], seen).findings] == [None]
    assert evaluate([load_rule(path)], seen, closed_runs=set()).findings == []


def test_what_happens_later_can_excuse(tmp_path: Path) -> None:
    let = {"later": {"tools": ["close_*"], "time": "later"}}
    params = {"answer": REFUSES, "let": let, "when": "!known.later"}
    refusal = said("It cannot be closed.")
    again = {"user": "Try.", "run": "new"}
    path = write(tmp_path, params, ([HELLO, CLOSE, refusal], [3]), ([HELLO, refusal, again, CLOSE, said("Done.")], []))
    assert verdicts(path) == []


def test_what_was_sent_and_all_of_it_together(tmp_path: Path) -> None:
    let = {
        "paid": {"tools": ["pay"], "take": "arguments", "pick": "all"},
        "total": {"value": "sum(paid.map(p, p.amount))"},
    }
    params = {"calls": {"tools": ["pay"]}, "let": let, "when": "total + double(call.arguments.amount) > 10.0"}
    pays = [{"tool": "pay", "args": {"amount": amount}, "result": {"ok": True}} for amount in (4, 5, 2)]
    holds(tmp_path, params, [HELLO, *pays], [HELLO, *pays[:2]])


def test_later_ones_come_oldest_first(tmp_path: Path) -> None:
    let = {"next": {"tools": ["get_*"], "time": "later", "pick": "all"}}
    params = {"calls": {"tools": ["close_*"]}, "let": let, "when": "next[0].open"}
    assert (
        verdicts(write(tmp_path, params, ([HELLO, CLOSE, LOOK, CLOSED], [2]), ([HELLO, CLOSE, CLOSED, LOOK], []))) == []
    )


@pytest.mark.parametrize(
    ("text", "holds_for"),
    [
        ("sum([1, 2.5]) == 3.5", True),
        ("least([3, 1, 2]) == 1 && greatest([3, 1, 2]) == 3", True),
        ("lower('AbC') == 'abc'", True),
        ("least([]) == 1", False),
        ("lower(1) == '1'", False),
    ],
)
def test_functions_over_lists_and_texts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, holds_for: bool
) -> None:
    path = write(tmp_path, {"calls": {"tools": ["close_*"]}, "when": text})
    found = evaluate([load_rule(path)], view(HELLO, CLOSE))
    assert (len(found.findings) == 1, found.errors) == (holds_for, {})
    assert caplog.records == []


def test_only_an_approval_that_counts_is_one(tmp_path: Path) -> None:
    path = write(tmp_path, {"calls": {"tools": ["close_*"]}, "when": "!approved"})
    call = {**CLOSE, "approval": "approved", "service": "desk"}
    assert len(evaluate([load_rule(path)], view(HELLO, call)).findings) == 1
    assert evaluate([load_rule(path)], view(HELLO, call, trusted=frozenset(("desk",)))).findings == []


def test_what_the_agent_said_and_asked_for_beside_a_call(tmp_path: Path) -> None:
    asks = {
        "assistant": "Closing two.",
        "calls": [{"tool": "close_plan", "id": "a"}, {"tool": "close_plan", "id": "b"}],
    }
    two: list[dict[str, Any]] = [{**CLOSE, "id": "a"}, {**CLOSE, "id": "b", "args": {"id": "P-2"}, "parallel": True}]
    params = {"calls": {"tools": ["close_*"]}, "when": "call.beside == 1 && call.message == 'Closing two.'"}
    assert verdicts(write(tmp_path, params, ([HELLO, asks, *two], [3, 4]), ([HELLO, CLOSE], []))) == []
    params = {"calls": {"tools": ["close_*"]}, "when": "said.assistant.contains('P-1')"}
    holds(tmp_path, params, [HELLO, said("I close P-1."), {**CLOSE, "run": "new"}], [HELLO, CLOSE])


def test_a_rule_may_set_the_severity_of_a_destructive_call(tmp_path: Path) -> None:
    calls = {"calls": {"tools": ["delete_*"]}, "when": "true"}
    gone = {"tool": "delete_plan", "args": {"id": "P-1"}, "result": {"ok": True}}
    assert verdicts(write(tmp_path, {**calls, "severity": "low"}, ([HELLO, gone], [{2: "low"}]), ([HELLO], []))) == []
    assert verdicts(write(tmp_path, calls, ([HELLO, gone], [{2: "high"}]), ([HELLO], []))) == []


@pytest.mark.parametrize(
    ("params", "wrong"),
    [
        ({"when": "true"}, "give `calls` or `answer`"),
        ({"calls": {}, "answer": REFUSES, "when": "true"}, "give `calls` or `answer`"),
        ({"answer": REFUSES, "when": "call.name == 'x'"}, "unknown variable call; known: answer, known, said"),
        ({"answer": REFUSES, "when": "answer.wat == 'closed'"}, "answer has no field wat; did you mean what?"),
        ({"answer": {"says": []}, "when": "true"}, "says nothing"),
        ({"answer": {"says": ["("]}, "when": "true"}, "no regular expression"),
        ({"answer": {"says": ["x"], "unless": ["("]}, "when": "true"}, "no regular expression"),
        ({"calls": {}, "when": "!known.plan"}, "known has no field plan"),
        ({"calls": {}, "when": "said.lst == 'x'"}, "said has no field lst; did you mean last?"),
        ({"calls": {}, "let": {"now": {"said_by": "user", "pattern": "(?P<day>.)"}}, "when": "now.dya == ''"}, "did you mean day?"),
        (
            {
                "calls": {},
                "let": {"now": {"said_by": "user", "pattern": "(?P<day>.)"}, "a": {"tools": ["x"], "where": "result.d == now.dya"}},
                "when": "true",
            },
            "did you mean day?",
        ),
        ({"calls": {}, "let": {"a": {"value": "b + 1"}}, "when": "true"}, "unknown variable b"),
        ({"calls": {}, "let": {"a": {"value": "1", "time": "later"}}, "when": "true"}, "give `tools`"),
        ({"calls": {}, "when": "summ([1]) == 1"}, "unknown function summ; did you mean sum?"),
    ],
)  # fmt: skip
def test_what_can_not_be_meant_is_refused_on_load(tmp_path: Path, params: dict[str, Any], wrong: str) -> None:
    with pytest.raises(UserError) as refused:
        load_rule(write(tmp_path, params))
    assert wrong in str(refused.value)


def test_a_name_of_a_loop_hides_what_it_is_called_after() -> None:
    fields = {"now": ("day",)}
    assert expression_mistakes("[{'x': 1}].exists(now, now.x == 1)", {"now"}, fields=fields) == []
    assert expression_mistakes("now.x == '1'", {"now"}, fields=fields) != []


def test_lines_and_sentences_are_told_apart() -> None:
    assert sentences("One. Two!\nThree\\nFour (five.) Six") == ["One.", "Two!", "Three", "Four (five.", "Six"]


def test_a_look_back_has_an_end(tmp_path: Path) -> None:
    let = {"plan": {"tools": ["get_*"], "where": "result.nothing_has_this_one == 1"}}
    rule = load_rule(write(tmp_path, {"calls": {"tools": ["close_*"]}, "let": let, "when": "known.plan"}))
    evaluate([rule], view(HELLO, {**LOOK, "repeat": 300}, CLOSE))
    assert compile_value("result.nothing_has_this_one == 1").failures.total() == 200
