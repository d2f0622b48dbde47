"""One trace may carry several conversations (a batch job): each keeps its own findings and rows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from otelmon.app.offline import Checker, Report
from otelmon.detect.engine import Laws
from otelmon.rules.loader import load_rules
from otelmon.vocabulary.config import Config
from otelmon.vocabulary.span import Scope, Span

LAWS = Laws(load_rules())
TRACE = "ab" * 16


def span(number: int, parent: int | None, name: str, **attributes: object) -> Span:
    start = 1_767_603_600_000_000_000 + number * 1_000_000_000
    return Span(
        trace_id=TRACE, span_id=f"{number:016x}", parent_span_id="" if parent is None else f"{parent:016x}", name=name,
        kind=1, start_time_unix_nano=start, end_time_unix_nano=start + 1, status_code=0, status_message="",
        attributes={key.replace("__", "."): value for key, value in attributes.items()}, events=(),
        resource={"service.name": "batch"}, scope=Scope("test"), received_unix_nano=start, digest=f"d{number}",
    )  # fmt: skip


def handling(number: int, parent: int, conversation: str | None) -> list[Span]:
    """A run that sends the same notice twice."""
    known = {"gen_ai__conversation__id": conversation} if conversation else {}
    agent = span(number, parent, "invoke_agent a", gen_ai__operation__name="invoke_agent", **known)
    calls = [
        span(
            number + 1 + i, number, "execute_tool send_notice", gen_ai__operation__name="execute_tool",
            gen_ai__tool__name="send_notice", gen_ai__tool__call__id=f"c{number}{i}",
            gen_ai__tool__call__arguments='{"list": "ops", "body": "lift ' + str(number) + '"}',
            gen_ai__tool__call__result='{"message_id": "m-' + str(number + i) + '"}',
        )
        for i in range(2)
    ]  # fmt: skip
    return [agent, *calls]


SPANS = [span(1, None, "batch"), *handling(10, 1, "conv-a"), *handling(20, 1, "conv-b")]


def judged(batches: Sequence[Sequence[Span]]) -> Report:
    checker = Checker(LAWS, Config())
    for batch in batches:
        checker.add_spans(batch)
    return checker.finish()


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_both_conversations_keep_their_findings_in_any_order(order: tuple[int, ...]) -> None:
    pieces = [SPANS[:1], SPANS[1:4], SPANS[4:]]
    report = judged([pieces[i] for i in order])
    found = [(f.rule_id, f.conversation_id) for f in report.findings if f.rule_id == "duplicate_write"]
    assert sorted(found) == [("duplicate_write", "conv-a"), ("duplicate_write", "conv-b")]
    assert report.tool_calls == 4
    assert report.runs == 2


def test_span_by_span_gives_the_same_findings() -> None:
    whole = judged([SPANS])
    for order in (SPANS, SPANS[::-1]):
        single = judged([[s] for s in order])
        assert {f.finding_id for f in single.findings} == {f.finding_id for f in whole.findings}
        assert (single.runs, single.tool_calls) == (whole.runs, whole.tool_calls)
