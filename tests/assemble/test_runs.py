"""Runs: the topmost agent span, what belongs to it, what is known of the whole."""

from __future__ import annotations

from otelmon.assemble.timeline import build
from otelmon.vocabulary.event import Timeline, ToolDefinition
from tests.assemble.builders import Spans, assistant, call, calls, definition, ns, response, said, user


def test_what_stands_above_the_topmost_agent_does_not_matter() -> None:
    span = Spans()
    server = span.other("POST /chat", 0, 9)
    root = span.agent(1, 8, parent=server)
    span.tool("read", 2, 3, parent=root)
    [run] = build("c", span.readings).runs
    assert run.run_id == f"{span.trace_id}:{root.span_id}"
    assert (run.start_time_unix_nano, run.end_time_unix_nano) == (ns(1), ns(8))
    assert run.root_seen


def test_a_parent_that_never_came_is_no_gap_above_the_root() -> None:
    span = Spans()
    root = span.agent(1, 8, parent="aaaaaaaaaaaaaaaa")
    span.tool("read", 2, 3, parent=root)
    [run] = build("c", span.readings).runs
    assert run.root_seen


def test_orphans_beside_an_orphan_agent_mean_that_the_root_is_missing() -> None:
    span = Spans()
    span.agent(3, 4, parent="aaaaaaaaaaaaaaaa", name="helper")
    span.tool("read", 1, 2, parent="bbbbbbbbbbbbbbbb")
    [run] = build("c", span.readings).runs
    assert not run.root_seen
    assert "incomplete_run" in run.gaps


def test_a_trace_without_agents_is_one_run() -> None:
    span = Spans()
    span.tool("read", 1, 2)
    span.tool("write", 2, 3)
    [run] = build("c", span.readings).runs
    assert run.run_id == f"{span.trace_id}:"
    assert run.root_seen  # a span without a parent came
    assert run.spans == 2


def test_orphans_without_agents_are_an_incomplete_run() -> None:
    span = Spans()
    for start in (4, 2, 6):
        span.tool("read", start, start + 1, parent="aaaaaaaaaaaaaaaa")
    timeline = build("c", span.readings)
    assert [run.root_seen for run in timeline.runs] == [False]
    assert [c.start_time_unix_nano for c in calls(timeline)] == [ns(2), ns(4), ns(6)]


def test_two_top_agents_in_one_trace_are_two_runs_in_order_of_start() -> None:
    span = Spans()
    later = span.agent(5, 9, name="second")
    first = span.agent(0, 4, name="first")
    span.tool("write", 6, 7, parent=later)
    span.tool("read", 1, 2, parent=first)
    timeline = build("c", span.readings)
    assert [run.agent_name for run in timeline.runs] == ["first", "second"]
    assert [(c.tool_name, c.agent_name) for c in calls(timeline)] == [("read", "first"), ("write", "second")]


def test_a_sub_agent_belongs_to_the_run_and_its_calls_carry_its_name() -> None:
    span = Spans()
    root = span.agent(0, 9, name="boss")
    outer = span.tool("delegate", 1, 8, parent=root, task="look")
    helper = span.agent(2, 7, parent=outer, name="helper")
    span.tool("search", 3, 4, parent=helper, q="x")
    timeline = build("c", span.readings)
    [run] = timeline.runs
    assert run.agent_name == "boss"
    assert [(c.tool_name, c.agent_name, c.nested_calls) for c in calls(timeline)] == [
        ("delegate", "boss", 1),
        ("search", "helper", None),
    ]


def test_a_sub_agent_that_called_nothing_is_counted_as_zero() -> None:
    span = Spans()
    root = span.agent(0, 9)
    outer = span.tool("delegate", 1, 8, parent=root, task="look")
    span.agent(2, 7, parent=outer, name="helper")
    [only] = calls(build("c", span.readings))
    assert only.nested_calls == 0


def test_what_a_sub_agent_says_never_ends_the_run() -> None:
    span = Spans()
    root = span.agent(0, 9)
    hi, ask = user("look"), assistant(call("delegate", "c1", task="look"))
    span.model([hi], [ask], 0, 1, parent=root)
    outer = span.tool("delegate", 1, 8, parent=root, call_id="c1", task="look")
    helper = span.agent(2, 7, parent=outer, name="helper")
    span.model([user("please look")], [assistant("I looked.")], 3, 4, parent=helper)
    timeline = build("c", span.readings)
    assert [(m.text, m.final) for m in said(timeline)] == [("", False), ("I looked.", False)]
    span.model([hi, ask, response("I looked.", "c1")], [assistant("All done.")], 8, 9, parent=root)
    timeline = build("c", span.readings)
    assert [(m.text, m.final) for m in said(timeline)] == [("", False), ("I looked.", False), ("All done.", True)]


def test_agents_handed_over_to_inside_the_run_may_end_it() -> None:
    span = Spans()
    root = span.agent(0, 9, name="desk")
    expert = span.agent(2, 8, parent=root, name="expert")
    span.model([user("hi")], [assistant("Solved.")], 3, 4, parent=expert)
    [message] = said(build("c", span.readings))
    assert message.final
    assert message.agent_name == "expert"


def test_facts_are_inherited_from_the_agent_then_from_the_run() -> None:
    span = Spans()
    root = span.agent(0, 9, name="desk", principal="ann", agent_version="7", trigger="job-1")
    span.model([user("hi")], [assistant(call("read", "c1", id="A"))], 0, 1, parent=root, model="big")
    span.tool("read", 1, 2, parent=root, call_id="c1", id="A", more={"host": "h1"})
    [only] = calls(build("c", span.readings))
    assert (only.agent_name, only.principal, only.agent_version, only.model, only.trigger) == (
        "desk", "ann", "7", "big", "job-1",
    )  # fmt: skip
    assert only.host == "h1"


def test_a_trace_torn_off_by_broken_propagation_joins_the_run_that_was_open() -> None:
    main, torn = Spans("main"), Spans("torn")
    root = main.agent(0, 9)
    torn.tool("read", 2, 3)
    timeline = build("c", main.readings + torn.readings)
    assert [run.run_id for run in timeline.runs] == [f"{main.trace_id}:{root.span_id}"]
    [only] = calls(timeline)
    assert only.trace_id == torn.trace_id
    assert only.run_id == timeline.runs[0].run_id


def test_a_trace_outside_any_open_run_stays_a_run() -> None:
    main, other = Spans("main"), Spans("other")
    main.agent(0, 5)
    other.tool("read", 7, 8)
    assert len(build("c", main.readings + other.readings).runs) == 2


def test_parents_in_a_circle_end_nowhere() -> None:
    span = Spans()
    span.tool("a", 1, 2, parent="0000000000000002")
    span.tool("b", 1, 2, parent="0000000000000001")
    assert len(calls(build("c", span.readings))) == 2


def test_a_trace_that_only_sets_up_is_no_run() -> None:
    span = Spans()
    listed = span.setup("tools/list", 0, 1, definitions=(definition("read", path="string"),))
    span.other("GET /tools", 0, 1, parent=listed)
    assert build("c", span.readings) == Timeline("c", (), ())


def test_what_was_set_up_belongs_to_the_run_that_follows() -> None:
    before, first, second = Spans("1"), Spans("2"), Spans("3")
    before.setup("tools/list", 4, 5, definitions=(definition("read", path="string"),))
    first.agent(0, 2)
    second.agent(6, 9)
    timeline = build("c", [*before.readings, *first.readings, *second.readings])
    assert [run.trace_id for run in timeline.runs] == [first.trace_id, second.trace_id]
    assert timeline.runs[1].start_time_unix_nano == ns(6)
    assert [(e.run_id, e.name) for e in timeline.events if isinstance(e, ToolDefinition)] == [
        (timeline.runs[1].run_id, "read")
    ]


def test_setting_up_inside_a_run_is_part_of_it() -> None:
    span = Spans()
    root = span.agent(0, 9)
    span.setup("initialize", 1, 2, parent=root)
    span.tool("read", 2, 3, parent=root)
    [run] = build("c", span.readings).runs
    assert run.spans == 3
