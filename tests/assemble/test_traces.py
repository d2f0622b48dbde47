"""The trace table: whose conversation a span is, hand-overs, ends, limits."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from otelmon.assemble.traces import Output, TraceTable
from otelmon.vocabulary.config import AssembleConfig
from otelmon.vocabulary.messages import Handover, ReadingBatch
from otelmon.vocabulary.reading import Reading
from tests.assemble.builders import SECOND, Spans, assistant, ns, user


def table(**changes: float) -> TraceTable:
    return TraceTable(AssembleConfig(**changes))  # type: ignore[arg-type]


def held(outputs: list[Output]) -> dict[str, dict[str, set[str]]]:
    """What a detector holds after these outputs: {conversation: {trace: span ids}}."""
    state: dict[str, dict[str, set[str]]] = {}
    for output in outputs:
        for message in output:
            if isinstance(message, Handover):
                state.get(message.conversation_id, {}).pop(message.trace_id, None)
            else:
                spans = state.setdefault(message.conversation_id, {}).setdefault(message.trace_id, set())
                spans |= {reading.span_id for reading in message.readings}
    return {conversation: traces for conversation, traces in state.items() if traces}


def feed_each(target: TraceTable, readings: list[Reading]) -> list[Output]:
    return [target.feed([reading], offset, ns(offset)) for offset, reading in enumerate(readings)]


def test_a_trace_without_an_id_is_its_own_conversation() -> None:
    span = Spans()
    span.tool("read", 0, 1)
    [batch] = table().feed(span.readings, 0, ns(1))
    assert isinstance(batch, ReadingBatch)
    assert (batch.conversation_id, batch.epoch) == (f"trace:{span.trace_id}", 0)


def test_an_id_on_any_span_of_the_trace_is_the_traces() -> None:
    span = Spans()
    root = span.agent(0, 9, conversation_id="conv")
    span.tool("read", 1, 2, parent=root)
    [batch] = table().feed(span.readings, 0, ns(1))
    assert isinstance(batch, ReadingBatch)
    assert (batch.conversation_id, batch.epoch, len(batch.readings)) == ("conv", 1, 2)


def test_an_id_that_comes_late_moves_everything_held() -> None:
    span = Spans()
    span.tool("read", 1, 2, parent="00000000000000ff")
    span.tool("write", 3, 4, parent="00000000000000ff")
    root = span.agent(0, 9, conversation_id="conv", span_id="00000000000000ff")
    target = table()
    early = target.feed(span.readings[:2], 0, ns(1))
    late = target.feed([root], 1, ns(2))
    old = f"trace:{span.trace_id}"
    assert late[0] == Handover(conversation_id=old, trace_id=span.trace_id, to="conv")
    [batch] = [m for m in late[1:] if isinstance(m, ReadingBatch)]
    assert (batch.conversation_id, batch.epoch) == ("conv", 1)
    assert {r.span_id for r in batch.readings} == {r.span_id for r in span.readings}
    assert held([early, late]) == {"conv": {span.trace_id: {r.span_id for r in span.readings}}}
    assert target.counters["traces_moved",] == 1


def test_a_trace_with_two_conversations_is_split_by_subtree() -> None:
    span = Spans()
    session = span.other("session", 0, 99)
    one = span.agent(1, 9, parent=session, conversation_id="conv-1")
    two = span.agent(11, 19, parent=session, conversation_id="conv-2")
    a, b = span.tool("read", 2, 3, parent=one), span.tool("read", 12, 13, parent=two)
    found = held(feed_each(table(), [a, b, session, two, one]))
    assert found == {
        "conv-1": {span.trace_id: {session.span_id, one.span_id, a.span_id}},
        "conv-2": {span.trace_id: {two.span_id, b.span_id}},
    }


@given(st.permutations(list(range(8))))
@settings(max_examples=60, deadline=None)
def test_the_order_of_arrival_does_not_change_where_spans_end(order: list[int]) -> None:
    span = Spans()
    session = span.other("session", 0, 99)
    one = span.agent(1, 9, parent=session, conversation_id="conv-1")
    two = span.agent(11, 19, parent=session, conversation_id="conv-2")
    step = span.other("step", 1.5, 8, parent=one)
    span.tool("read", 2, 3, parent=step)
    inner = span.agent(4, 5, parent=step, conversation_id="conv-3")
    span.tool("read", 4.2, 4.5, parent=inner)
    span.tool("read", 12, 13, parent=two)
    shuffled = [span.readings[index] for index in order]
    assert held(feed_each(table(), shuffled)) == held([table().feed(span.readings, 0, ns(0))])


def test_an_exact_duplicate_is_dropped_and_a_conflict_is_kept() -> None:
    span = Spans()
    first = span.tool("read", 0, 1)
    other = span.tool("read", 0, 2, more={"span_id": first.span_id})
    target = table()
    target.feed([first], 0, ns(1))
    assert target.feed([first], 1, ns(1)) == []
    [batch] = target.feed([other], 2, ns(1))
    assert isinstance(batch, ReadingBatch)
    assert batch.readings == (other,)
    assert (target.counters["span_duplicates",], target.counters["span_conflicts",]) == (1, 1)


def test_conflicting_contents_move_the_trace_the_same_way_in_any_order() -> None:
    span = Spans()
    first = span.tool("read", 0, 1, more={"conversation_id": "conv"})
    other = span.tool("read", 0, 2, more={"span_id": first.span_id})
    child = span.tool("read", 0, 1, parent=first)
    for order in ([first, other, child], [other, child, first], [child, other, first]):
        assert set(held(feed_each(table(), order))) == {"conv"}


def test_a_trace_settles_after_its_root_and_goes_idle_without_one() -> None:
    rooted, rootless = Spans("rooted"), Spans("rootless")
    rooted.tool("read", 0, 1)
    rootless.tool("read", 0, 1, parent="aaaaaaaaaaaaaaaa")
    target = table(settle_seconds=10, idle_seconds=300)
    target.feed(rooted.readings + rootless.readings, 0, ns(0))
    target.tick(ns(9))
    assert target.open_traces == 2
    target.tick(ns(10))
    assert target.open_traces == 1
    target.tick(ns(300))
    closed = {key[1]: n for key, n in target.counters.items() if key[0] == "traces_closed"}
    assert closed == {"root": 1, "idle": 1}
    assert target.bytes == 0


def test_news_keep_a_trace_open() -> None:
    span = Spans()
    root = span.agent(0, 9)
    span.tool("read", 1, 2, parent=root)
    target = table(settle_seconds=10)
    target.feed([root], 0, ns(0))
    target.feed(span.readings[1:], 1, ns(8))
    target.tick(ns(12))
    assert target.open_traces == 1


def test_the_offset_still_needed_is_that_of_the_oldest_open_trace() -> None:
    target = table(settle_seconds=10, idle_seconds=300)
    assert target.needed_offset() is None
    for index in range(3):
        span = Spans(f"t{index}")
        span.tool("read", 0, 1, parent="" if index != 1 else "aaaaaaaaaaaaaaaa")
        target.feed(span.readings, 10 + index, ns(index))
    assert target.needed_offset() == 10
    target.tick(ns(20))  # the one without a root stays
    assert target.needed_offset() == 11
    target.tick(ns(400))
    assert target.needed_offset() is None


def test_a_span_that_comes_after_the_end_goes_where_its_trace_went() -> None:
    span = Spans()
    root = span.agent(0, 9, conversation_id="conv")
    span.tool("read", 1, 2, parent=root)
    target = table(settle_seconds=10)
    target.feed([root], 0, ns(0))
    target.tick(ns(10))
    [batch] = target.feed(span.readings[1:], 1, ns(60))
    assert isinstance(batch, ReadingBatch)
    assert (batch.conversation_id, batch.epoch) == ("conv", 1)
    assert target.counters["spans_late",] == 1
    assert target.open_traces == 0


def test_too_many_traces_close_the_oldest() -> None:
    target = table(max_open_traces=2)
    spans = [Spans(f"t{index}") for index in range(3)]
    for offset, span in enumerate(spans):
        span.tool("read", 0, 1)
        target.feed(span.readings, offset, ns(offset))
    assert target.open_traces == 2
    assert target.counters["traces_closed", "evicted"] == 1
    assert target.needed_offset() == 1


def test_too_many_bytes_close_the_oldest() -> None:
    target = table(max_bytes=5_000)
    for offset in range(4):
        span = Spans(f"t{offset}")
        span.tool("read", 0, 1, result="x" * 1_000)
        target.feed(span.readings, offset, ns(offset))
    assert target.bytes <= 5_000
    assert target.counters["traces_closed", "evicted"] > 0


def test_a_trace_with_too_many_spans_is_closed_and_later_ones_still_get_through() -> None:
    target = table(max_trace_spans=3)
    span = Spans()
    for start in range(6):
        span.tool("read", start, start + 1, more={"conversation_id": "conv"})
    outputs = feed_each(target, span.readings)
    assert target.counters["traces_closed", "span_limit"] == 1
    assert held(outputs) == {"conv": {span.trace_id: {r.span_id for r in span.readings}}}


def test_what_is_remembered_of_closed_traces_is_bounded() -> None:
    target = table(max_open_traces=1, settle_seconds=0)
    for offset in range(20):
        span = Spans(f"t{offset}")
        span.tool("read", 0, 1)
        target.history(span.trace_id)
        target.feed(span.readings, offset, ns(offset))
        target.tick(ns(offset))
    assert len(target._closed) <= 4
    assert len(target._histories) == 0


def test_a_history_lives_as_long_as_its_trace() -> None:
    span = Spans()
    span.model([user("hi")], [assistant("Hello.")], 0, 1)
    target = table(settle_seconds=10)
    history = target.history(span.trace_id)
    target.feed(span.readings, 0, ns(0))
    assert target.history(span.trace_id) is history
    target.tick(ns(0) + 10 * SECOND)
    assert target.history(span.trace_id) is not history
