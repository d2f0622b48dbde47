"""The histories of tools: the first sight of each version counts, in whatever order it becomes known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otelmon.detect import tool_histories, tool_news
from otelmon.detect.engine import Laws
from otelmon.detect.ledger import LedgerTable
from otelmon.detect.tool_histories import topic_key
from otelmon.detect.tool_news import ToolNews
from otelmon.vocabulary.catalogue import Catalogue, Tool
from otelmon.vocabulary.config import DetectConfig
from otelmon.vocabulary.event import Run, Timeline, ToolDefinition
from otelmon.vocabulary.messages import ToolVersion, Verdict, decode_ledger, encode
from tests.detect.build import laws

SECOND = 1_000_000_000
DAY = 86_400
FAR = 10**15 * SECOND


def ledger(**settings: float) -> LedgerTable:
    return LedgerTable(laws(), DetectConfig(**settings))  # type: ignore[arg-type]


def seen(version: str, seconds: int, trace: str = "", tool: str = "move_stock") -> ToolVersion:
    trace = trace or f"trace-{version}-{seconds}"
    return ToolVersion(
        tool_key=f"key-{tool}", version=version, name=tool, server="depot", description=f"Says {version}.",
        input_schema=None, annotations=None, trace_id=trace, span_id="s1", run_id=f"{trace}:", conversation_id=trace,
        agent_name="clerk", agent_version=None, service_name="shop", service_namespace="", environment="prod",
        start_time_unix_nano=seconds * SECOND,
    )  # fmt: skip


def steps(verdicts: Sequence[Verdict]) -> list[tuple[str, str]]:
    """The last verdict of the one tool: (version before, version after) of each finding."""
    if not verdicts:
        return []
    return [(f.evidence["before"]["version"], f.evidence["after"]["version"]) for f in verdicts[-1].findings]


def test_a_new_version_is_one_finding_at_its_first_sight() -> None:
    held = ledger()
    held.feed(seen("a", 100), 0)
    assert held.judge_dirty() == []
    for at in (DAY, DAY + 5, DAY + 9):
        held.feed(seen("b", at), 0)
        held.feed(seen("a", at + 1), 0)
    [verdict] = held.judge_dirty()
    [finding] = verdict.findings
    assert (verdict.owner, steps([verdict])) == ("tool:key-move_stock", [("a", "b")])
    assert (finding.rule_id, finding.tool_name, finding.trace_id) == ("tool_drift", "move_stock", f"trace-b-{DAY}")
    assert finding.event_time_unix_nano == DAY * SECOND
    held.feed(seen("b", DAY + 60), 0)
    held.feed(seen("a", DAY + 61), 0)
    assert held.judge_dirty() == []


SIGHTS = [seen("a", 100), seen("a", 900), seen("b", 500), seen("b", 700), seen("c", 800), seen("c", 300, "late")]


@given(st.permutations(SIGHTS), st.sets(st.integers(0, len(SIGHTS) - 1)))
@settings(max_examples=60, deadline=None)
def test_the_order_in_which_sights_arrive_changes_nothing(sights: list[ToolVersion], judged_after: set[int]) -> None:
    held, sent = ledger(), []
    for number, one in enumerate(sights):
        held.feed(one, 0)
        if number in judged_after:
            sent += held.judge_dirty()
    sent += held.judge_dirty()
    assert steps(sent) == [("a", "c"), ("c", "b")]
    left = {rest for _, _, rest in held.forget_old(FAR)}
    assert left == {topic_key(one) for one in (seen("a", 900), seen("b", 700), seen("c", 800))}


@given(st.permutations(SIGHTS), st.integers(0, len(SIGHTS)))
@settings(max_examples=40, deadline=None)
def test_a_restart_in_between_changes_nothing(sights: list[ToolVersion], at: int) -> None:
    """The next ledger has what the compacted topic holds, and is told the rest."""
    first = ledger()
    topic: dict[str, ToolVersion] = {}
    for one in sights[:at]:
        first.feed(one, 0)
        topic[topic_key(one)] = one
    for _, _, rest in first.forget_old(FAR):
        del topic[rest]
    second = ledger()
    for one in topic.values():
        second.restore(one, 0)
    for one in sights[at:]:
        second.feed(one, 0)
    assert steps(second.judge_dirty()) == [("a", "c"), ("c", "b")]


def test_versions_replaced_long_ago_leave_and_the_newest_stays() -> None:
    held = ledger(tool_seconds=10 * DAY)
    for version, day in (("a", 1), ("b", 2), ("c", 20)):
        held.feed(seen(version, day * DAY), 0)
    held.judge_dirty()
    assert held.forget_old(FAR) == [(0, "key-move_stock", topic_key(seen("a", DAY)))]
    assert held.counters["tool_versions_forgotten", "age"] == 1
    held.feed(seen("x", 400 * DAY, tool="other"), 0)
    assert held.forget_old(FAR) == [(0, "key-move_stock", topic_key(seen("b", 2 * DAY)))]
    held.feed(seen("d", 500 * DAY), 0)
    assert steps(held.judge_dirty()) == [("c", "d")]


def test_a_wrong_clock_forgets_nothing() -> None:
    held = ledger(tool_seconds=DAY)
    for version, at in (("a", 100), ("b", 200), ("mad", 10**9)):
        held.feed(seen(version, at), 0)
    assert held.forget_old(300 * SECOND) == []


def test_a_tool_has_a_bounded_number_of_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_histories, "MAX_VERSIONS", 3)
    held = ledger()
    for number in range(5):
        held.feed(seen(str(number), number * DAY), 0)
    assert steps(held.judge_dirty()) == [("2", "3"), ("3", "4")]
    assert held.counters["tool_versions_forgotten", "max_versions"] == 2
    assert len(held.forget_old(FAR)) == 2


def test_the_tools_that_changed_least_recently_leave_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_histories, "MAX_TOOLS", 2)
    held = ledger()
    for number in (3, 1, 2):
        held.feed(seen("a", number, tool=f"t{number}"), 0)
    assert held.forget_old(FAR) == [(0, "key-t1", topic_key(seen("a", 1)))]
    assert (held.stats()["tools"], held.counters["tool_versions_forgotten", "max_tools"]) == (2, 1)


def test_a_partition_that_goes_takes_its_tools() -> None:
    held = ledger()
    held.feed(seen("a", 1), 0)
    held.feed(seen("a", 5), 0)
    held.feed(seen("b", 9), 1)
    held.drop_partition(0)
    assert (held.stats()["tools"], held.judge_dirty(), held.forget_old(FAR)) == (1, [], [])


def test_news_that_came_again_after_a_restart_are_said_in_any_case() -> None:
    held = ledger()
    held.restore(seen("a", 1), 0)
    assert held.judge_dirty() == []
    held.feed(seen("a", 1), 0)
    [verdict] = held.judge_dirty()
    assert (verdict.owner, verdict.findings) == ("tool:key-move_stock", ())


# -- what a detector tells --------------------------------------------------------------------------
def timeline(*definitions: dict[str, Any], **run: Any) -> Timeline:
    made = Run(run_id="t:r", trace_id="t", conversation_id="c", service_name="shop", **run)
    events = tuple(
        ToolDefinition(
            **{"name": "find", "span_id": f"s{number}", "start_time_unix_nano": number, **fields},
            position=number, trace_id="t", run_id="t:r", end_time_unix_nano=99,
        )
        for number, fields in enumerate(definitions)
    )  # fmt: skip
    return Timeline("c", (made,), events)


def news() -> ToolNews:
    return ToolNews(Counter())


def test_only_the_first_sight_is_news_and_an_earlier_one() -> None:
    told = news()
    later, earlier = timeline({"description": "x", "start_time_unix_nano": 50}), timeline({"description": "x"})
    assert [one.start_time_unix_nano for one in told.of(later)] == [50]
    assert told.of(later) == []
    assert [one.start_time_unix_nano for one in told.of(earlier)] == [0]
    assert told.of(later) == []
    assert [one.description for one in told.of(timeline({"description": "y"}))] == ["y"]


def test_form_is_no_news() -> None:
    told = news()
    told.of(timeline({"description": "x", "definition_hash": "1", "input_schema": {}}))
    assert told.of(timeline({"description": " x ", "definition_hash": "2", "input_schema": {"type": "object"}})) == []


def test_a_definition_without_content_says_nothing() -> None:
    assert news().of(timeline({"definition_hash": "sha256:1", "schema_hash": "sha256:2"})) == []


def test_two_tools_of_one_name_in_one_list_are_not_two_versions() -> None:
    both = [{"description": "of one server", "span_id": "s"}, {"description": "of another", "span_id": "s"}]
    assert news().of(timeline(*both)) == []
    named = [{**one, "server": str(number)} for number, one in enumerate(both)]
    assert len({one.tool_key for one in news().of(timeline(*named))}) == 2


def test_a_tool_is_that_of_its_server_else_of_its_agent() -> None:
    def key(definition: dict[str, Any], **run: Any) -> str:
        [one] = news().of(timeline({"description": "x", **definition}, **run))
        return one.tool_key

    assert key({"server": "s"}, agent_name="a") == key({"server": "s"}, agent_name="b")
    assert key({}, agent_name="a") != key({}, agent_name="b")
    assert key({"server": "s"}) != key({"server": "s"}, environment="prod")
    assert key({}) != key({"of_call": True})
    assert key({}, dialects=("one",)) != key({}, dialects=("other",))


def test_what_is_told_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_news, "MAX_TOLD", 2)
    monkeypatch.setattr(tool_news, "MAX_BYTES", 2000)
    counters: Counter[tuple[str, ...]] = Counter()
    told = ToolNews(counters)
    assert told.of(timeline({"description": "x" * 3000})) == []
    assert told.of(timeline({"description": "x" * 3000})) == []
    assert counters["tool_versions_forgotten", "too_large"] == 1
    for name in "abc":
        told.of(timeline({"name": name, "description": "x"}))
    assert len(told._told) == 2
    assert [one.name for one in told.of(timeline({"name": "a", "description": "x"}))] == ["a"]


def test_a_version_survives_the_wire() -> None:
    one = msgspec.structs.replace(seen("a", 1), input_schema={"type": "object"})
    assert decode_ledger(encode(one)) == one


# -- against what the operator committed -------------------------------------------------------------
def committed(text: str, **fields: Any) -> Laws:
    catalogue = Catalogue(version=1, tools=(Tool(name="move_stock", description=text, **fields),))
    return msgspec.structs.replace(laws(), catalogue=catalogue)


def said(catalogue: str, *versions: ToolVersion, **fields: Any) -> list[str]:
    held = LedgerTable(committed(catalogue, **fields), DetectConfig())
    for one in versions:
        held.feed(one, 0)
    return [finding.summary for verdict in held.judge_dirty() for finding in verdict.findings]


A, B, C = (seen(version, number * DAY) for number, version in enumerate("abc"))


def test_what_the_operator_committed_is_no_change() -> None:
    assert said("Says b.", A, B) == []
    assert said("Says a.", A, B) == ["move_stock changed: its description says something else"]
    assert said("Says b.", A, B, C) == ["move_stock changed: its description says something else"]


def test_what_nobody_serves_is_told_of_at_the_first_sight_of_what_is_served() -> None:
    assert said("Says x.", A) == ["move_stock is not what the catalogue says: its description says something else"]
    assert said("Says a.", A) == []


def test_an_entry_that_says_no_more_than_a_name_or_is_of_another_server_is_no_version() -> None:
    assert said("", A, effect="write") == []
    assert said("Says x.", A, server="shop") == []
    assert said("Says x.", A, server="depot") != []
