"""The table of conversations: judging is a function of the readings held; runs end by recorded time; state is bounded."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otelmon.assemble import timeline
from otelmon.assemble.traces import estimated_bytes
from otelmon.detect import state
from otelmon.detect.conversations import ConversationTable
from otelmon.detect.emission import Output
from otelmon.detect.snapshot import Snapshot
from otelmon.vocabulary.messages import EffectBatch, Handover, ReadingBatch, TraceRecord, Verdict
from tests.assemble.builders import Spans, ns
from tests.detect.build import (
    IDLE,
    SETTLE,
    Said,
    at,
    batch,
    invented,
    judged,
    laws,
    refunded,
    retried,
    seconds,
    stories,
    table,
)

LATE = 10_000.0  # seconds: after everything has ended, before it is forgotten


def batches(output: Output) -> list[EffectBatch]:
    """What was told of effects; these conversations show no tools."""
    return [told for told in output.effects if isinstance(told, EffectBatch)]


def verdicts(output: Output) -> list[Verdict]:
    return [record for record in output.records if isinstance(record, Verdict)]


def gaps(output: Output) -> set[str]:
    return {gap for record in output.records if isinstance(record, TraceRecord) for run in record.runs for gap in run.gaps}  # fmt: skip


def size(span: Spans) -> int:
    return sum(map(estimated_bytes, span.readings))


# -- the law ---------------------------------------------------------------------------------------
def deliveries(chance: Random) -> list[ReadingBatch | None]:
    """All stories in any order and cut, some of it twice; None: what came so far is judged."""
    pieces: list[ReadingBatch | None] = []
    for story in stories():
        readings = chance.sample(story.readings, len(story.readings))
        cuts = sorted(chance.sample(range(1, len(readings)), chance.randrange(3)))
        for start, end in zip([0, *cuts], [*cuts, len(readings)], strict=True):
            pieces.append(msgspec.structs.replace(story, readings=tuple(readings[start:end])))
    pieces += chance.sample(pieces, chance.randrange(4)) + [None] * chance.randrange(6)
    return chance.sample(pieces, len(pieces))


@given(st.randoms(use_true_random=False), st.integers(0, 400))
@settings(max_examples=40, deadline=None)
def test_any_cut_order_and_repetition_ends_in_the_same_verdicts(chance: Random, moment: int) -> None:
    delivered = deliveries(chance)
    held, said = table(), Said()
    for offset, piece in enumerate(delivered):
        if piece is None:
            said.take(held.judge_dirty(at(moment)))
            said.take(held.tick(at(moment)))
        else:
            held.feed(piece, 0, offset)
    said.take(held.judge_dirty(at(LATE)))
    said.take(held.tick(at(LATE)))
    assert said.findings() == judged(stories()).findings()
    assert said.rules() == ["duplicate_write", "duplicate_write", "ungrounded_argument", "unsafe_retry"]


@given(st.integers(1, 3), st.integers(0, 6), st.data())
@settings(max_examples=25, deadline=None)
def test_a_new_table_goes_on_from_the_snapshots(parts: int, stop: int, data: st.DataObject) -> None:
    """A table is lost after any message; another restores the snapshots and reads again from the
    needed offset."""
    messages = data.draw(st.permutations(stories()))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("otelmon.assemble.traces.PART_BYTES", 1)
        patched.setattr("otelmon.detect.conversations.in_parts", lambda readings: _cut(readings, parts))
        first, said = table(), Said()
        for offset, message in enumerate(messages[:stop]):
            first.feed(message, 0, offset)
            said.take(first.judge_dirty(at(data.draw(st.sampled_from([0, LATE])))))
        needed = first.needed_offset(0)
        second = table()
        for snapshot in sorted(said.memory.values(), key=lambda s: (s.trace_id, s.part)):
            second.restore(snapshot, 0)
        for offset, message in enumerate(messages[stop if needed is None else needed :], stop):
            second.feed(message, 0, offset)
            said.take(second.judge_dirty(at(LATE)))
        said.take(second.tick(at(LATE)))
    assert said.findings() == judged(stories()).findings()
    assert second.needed_offset(0) is None


def _cut(readings: list[object], parts: int) -> list[tuple[object, ...]]:
    width = -(-len(readings) // parts)
    return [tuple(readings[start : start + width]) for start in range(0, len(readings), width)]


# -- what is said -----------------------------------------------------------------------------------
def test_a_verdict_is_sent_only_when_it_changed() -> None:
    held, said = table(), Said()
    whole = refunded(times=2)
    held.feed(batch(whole.readings), 0, 0)
    [first] = verdicts(said.take(held.judge_dirty(at(0))))
    assert [finding.rule_id for finding in first.findings] == ["duplicate_write"]
    held.feed(batch(whole.readings), 0, 1)
    assert held.judge_dirty(at(0)).records == []
    assert held.judge_dirty(at(0)).records == []
    ended = held.tick(at(LATE))
    assert verdicts(ended) == []  # the run is over, and nothing else is found
    assert [run.closed for record in ended.records if isinstance(record, TraceRecord) for run in record.runs] == ["root"]  # fmt: skip


def test_late_evidence_retracts() -> None:
    span = invented()
    held, said = table(), Said()
    held.feed(batch(span.readings), 0, 0)
    said.take(held.judge_dirty(at(LATE)))
    assert said.rules() == ["ungrounded_argument"]
    earlier = Spans("earlier")
    root = earlier.agent(-20, -15)
    known = {"orders": [{"id": "OR-9931", "total": 120}]}
    earlier.tool("list_orders", -19, -18, parent=root, result=known, customer="C-1")
    held.feed(batch(earlier.readings), 0, 1)
    said.take(held.judge_dirty(at(LATE)))
    assert said.rules() == []


def test_a_write_that_is_no_more_is_withdrawn_from_the_ledger() -> None:
    held, said = table(), Said()
    two = [refunded("e", order="OR-88"), refunded("f", start=100, order="OR-88")]
    for offset, span in enumerate(two):
        held.feed(batch(span.readings, f"conv-{offset}"), 0, offset)
    said.take(held.judge_dirty(at(LATE)))
    assert said.rules() == ["duplicate_write"]
    failed = Spans("f", service_name="svc")
    tool = two[1].readings[2]
    assert tool.tool is not None
    fields = msgspec.structs.replace(tool.tool, error_type="ValueError", signals=("status_error",), result=None, result_text=None)  # fmt: skip
    later = msgspec.structs.replace(tool, tool=fields, status_error=True, digest="f" * 16, end_time_unix_nano=ns(103))
    held.feed(ReadingBatch(conversation_id="conv-1", epoch=1, trace_id=failed.trace_id, readings=(later,)), 0, 2)
    output = said.take(held.judge_dirty(at(LATE)))
    assert [effects.entries for effects in batches(output)] == [(), ()]  # of its effect and of its request
    assert said.rules() == ["false_success"]


def test_a_handover_moves_a_trace_without_retracting() -> None:
    span = refunded(times=2)
    old = f"trace:{span.trace_id}"
    held, said = table(), Said()
    held.feed(batch(span.readings, old, epoch=0), 0, 0)
    said.take(held.judge_dirty(at(LATE)))
    assert list(said.memory) == [(old, span.trace_id, 0)]
    held.feed(Handover(conversation_id=old, trace_id=span.trace_id, to="conv"), 0, 1)
    assert held.dirty == 1
    output = said.take(held.judge_dirty(at(LATE)))
    assert (output.records, output.effects, said.memory) == ([], [], {})
    assert said.rules() == ["duplicate_write"]
    assert held.stats() == {"conversations": 0, "runs_open": 0, "detect_bytes": 0}
    held.feed(batch(span.readings, "conv", epoch=1), 0, 2)
    said.take(held.judge_dirty(at(LATE)))
    assert {verdict.epoch for verdict in said.sent} == {0, 1}
    [finding] = [finding for found in said.findings().values() for finding in found]
    assert finding.conversation_id == "conv"
    assert held.counters["handovers",] == 1


def test_a_handover_of_a_trace_that_is_not_held_does_nothing() -> None:
    held = table()
    held.feed(Handover(conversation_id="trace:x", trace_id="x", to="conv"), 0, 0)
    assert held.dirty == 0
    held.feed(batch(refunded().readings), 0, 1)
    held.feed(Handover(conversation_id="conv", trace_id="x", to="other"), 0, 2)
    assert held.stats()["conversations"] == 1
    assert held.counters["handovers",] == 0


def test_other_laws_are_asked_when_the_same_comes_again() -> None:
    held, said = table(), Said()
    message = batch(refunded(times=2).readings)
    held.feed(message, 0, 0)
    said.take(held.judge_dirty(at(0)))
    assert said.rules() == ["duplicate_write"]
    none = msgspec.structs.replace(laws().rules, rules={})
    held.laws = msgspec.structs.replace(laws(), rules=none)
    held.feed(message, 0, 1)
    said.take(held.judge_dirty(at(0)))
    assert said.rules() == []


# -- when a run is over -----------------------------------------------------------------------------
def test_absence_waits_until_the_run_has_settled() -> None:
    span = invented()
    held, said = table(), Said()
    held.feed(batch(span.readings), 0, 0)
    said.take(held.judge_dirty(at(seconds(span) + SETTLE - 0.1)))
    said.take(held.tick(at(seconds(span) + SETTLE - 0.1)))
    assert said.rules() == []
    assert held.stats()["runs_open"] == 1
    said.take(held.tick(at(seconds(span) + SETTLE)))
    assert said.rules() == ["ungrounded_argument"]
    assert held.stats()["runs_open"] == 0
    assert held.counters["runs_closed", "root"] == 1


def test_without_its_root_a_run_is_over_when_it_was_idle() -> None:
    span = invented()
    del span.readings[0]
    held, said = table(), Said()
    held.feed(batch(span.readings), 0, 0)
    said.take(held.judge_dirty(at(seconds(span) + SETTLE)))
    said.take(held.tick(at(seconds(span) + IDLE - 0.1)))
    assert held.stats()["runs_open"] == 1
    said.take(held.tick(at(seconds(span) + IDLE)))
    assert held.counters["runs_closed", "idle"] == 1


def test_news_of_a_run_that_is_over_count_it_no_second_time() -> None:
    span = invented()
    held = table()
    held.feed(batch(span.readings[:3]), 0, 0)
    held.judge_dirty(at(LATE))
    held.feed(batch(span.readings[3:]), 0, 1)
    held.judge_dirty(at(LATE))
    held.tick(at(LATE))
    assert {key: n for key, n in held.counters.items() if key[0] in ("runs", "runs_closed")} == {
        ("runs", "agent"): 1, ("runs_closed", "root"): 1,
    }  # fmt: skip


# -- offsets and memory -----------------------------------------------------------------------------
def test_the_needed_offset_is_the_oldest_that_no_snapshot_covers() -> None:
    first, second = refunded("a"), refunded("b", start=1000)
    held, said = table(), Said()
    assert held.needed_offset(0) is None
    held.feed(batch(first.readings, "a"), 0, 3)
    held.feed(batch(second.readings[:2], "b"), 0, 4)
    held.feed(batch(second.readings[2:], "b"), 0, 7)
    assert (held.needed_offset(0), held.needed_offset(1)) == (3, None)
    said.take(held.judge_dirty(at(seconds(first) + SETTLE)))
    assert {conversation for conversation, _, _ in said.memory} == {"a"}
    assert held.needed_offset(0) == 4
    said.take(held.tick(at(LATE)))
    assert {conversation for conversation, _, _ in said.memory} == {"a", "b"}
    assert held.needed_offset(0) is None
    held.feed(batch(second.readings[2:], "b"), 0, 9)
    assert held.needed_offset(0) is None  # nothing in it is new
    held.feed(batch(refunded("c", start=1000).readings, "b"), 0, 10)
    assert held.needed_offset(0) == 10


def restored(snapshots: dict[tuple[str, str, int], Snapshot], **limits: float) -> ConversationTable:
    held = table(**limits)
    for key in sorted(snapshots):
        held.restore(snapshots[key], 0)
    return held


def test_what_was_restored_is_judged_only_with_news_and_withdraws_what_it_said() -> None:
    span = refunded("e", order="OR-88")
    said = judged([batch(span.readings)])
    held = restored(said.memory)
    assert (held.dirty, held.needed_offset(0), held.stats()["runs_open"]) == (0, None, 0)
    assert held.tick(at(LATE)).records == []
    tool = span.readings[2]
    assert tool.tool is not None
    fields = msgspec.structs.replace(tool.tool, error_type="ValueError", signals=("status_error",), result=None, result_text=None)  # fmt: skip
    failed = msgspec.structs.replace(tool, tool=fields, status_error=True, digest="f" * 16, end_time_unix_nano=ns(9))
    held.feed(batch([failed]), 0, 0)
    assert [effects.entries for effects in batches(held.judge_dirty(at(LATE)))] == [(), ()]


def test_a_snapshot_that_shrinks_leaves_no_part_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otelmon.detect.conversations.in_parts", lambda readings: _cut(readings, len(readings)))
    span = refunded()
    held, said = table(), Said()
    held.feed(batch(span.readings), 0, 0)
    said.take(held.judge_dirty(at(LATE)))
    assert len(said.memory) == len(span.readings)
    monkeypatch.setattr("otelmon.detect.conversations.in_parts", lambda readings: _cut(readings, 1))
    held.feed(batch([msgspec.structs.replace(span.readings[2], digest="f" * 16)]), 0, 1)
    said.take(held.judge_dirty(at(LATE)))
    assert [part for _, _, part in said.memory] == [0]


def test_a_partition_that_goes_to_another_takes_its_conversations_with_it() -> None:
    held = table()
    held.feed(batch(refunded("a").readings, "a"), 0, 0)
    held.feed(batch(refunded("b").readings, "b"), 1, 0)
    held.drop_partition(0)
    assert (held.stats()["conversations"], held.needed_offset(0), held.needed_offset(1)) == (1, None, 0)
    held.drop_partition(1)
    assert held.stats() == {"conversations": 0, "runs_open": 0, "detect_bytes": 0}
    assert held.judge_dirty(at(0)).records == []


# -- limits -----------------------------------------------------------------------------------------
def test_the_oldest_conversation_that_is_over_leaves_first() -> None:
    held, said = table(max_conversations=2), Said()
    running = refunded("running", start=9000)
    held.feed(batch(running.readings[1:], "running"), 0, 0)
    held.feed(batch(refunded("over").readings, "over"), 0, 1)
    held.feed(batch(refunded("young", start=4000).readings, "young"), 0, 2)
    output = said.take(held.judge_dirty(at(4500)))
    assert held.counters["conversations_left", "max_conversations"] == 1
    assert held.stats()["conversations"] == 2
    assert held.counters["runs_closed", "evicted"] == 0
    assert ("over", "", 0) in said.memory  # that it was there is remembered
    assert not any(trace for conversation, trace, _ in said.memory if conversation == "over")
    assert len(verdicts(output)) == 3


def test_a_run_that_has_to_leave_is_judged_as_a_whole_and_counted() -> None:
    held, said = table(max_conversations=1), Said()
    held.feed(batch(invented().readings, "one"), 0, 0)
    said.take(held.judge_dirty(at(0)))
    assert said.rules() == []
    held.feed(batch(refunded(start=1).readings, "two"), 0, 1)
    output = said.take(held.judge_dirty(at(0)))
    assert said.rules() == ["ungrounded_argument"]
    assert held.counters["runs_closed", "evicted"] == 1
    assert [r.closed for record in output.records if isinstance(record, TraceRecord) for r in record.runs] == [None, "evicted"]  # fmt: skip


def test_memory_is_bounded_in_bytes() -> None:
    span = refunded("a")
    held = table(max_bytes=2.5 * size(span))
    for n in range(5):
        held.feed(batch(refunded(f"t{n}", start=n * 1000).readings, f"c{n}"), 0, n)
        held.judge_dirty(at(LATE))
    assert held.stats()["conversations"] == 2
    assert held.counters["conversations_left", "max_bytes"] == 3
    assert 0 < held.stats()["detect_bytes"] <= 2.5 * size(span)


def test_a_quiet_conversation_is_forgotten_in_time() -> None:
    held, said = table(memory_seconds=1000), Said()
    span = refunded()
    held.feed(batch(span.readings), 0, 0)
    said.take(held.judge_dirty(at(LATE)))
    said.take(held.tick(at(seconds(span) + 1000)))
    assert held.stats()["conversations"] == 1
    said.take(held.tick(at(seconds(span) + 1000.1)))
    assert held.stats() == {"conversations": 0, "runs_open": 0, "detect_bytes": 0}
    assert held.counters["conversations_left", "memory_seconds"] == 1


@pytest.mark.parametrize("restart", [False, True])
def test_what_comes_back_after_it_left_lacks_its_past(restart: bool) -> None:
    limits = {"memory_seconds": 1000.0}
    held, said = table(**limits), Said()
    held.feed(batch(refunded().readings), 0, 0)
    said.take(held.judge_dirty(at(LATE)))
    said.take(held.tick(at(LATE)))
    assert held.stats()["conversations"] == 0
    if restart:
        held = restored(said.memory, **limits)
    held.feed(batch(invented(start=20_000).readings), 0, 1)
    output = said.take(held.judge_dirty(at(20_200)))
    assert gaps(output) == {"prior_turns_unseen"}
    assert said.rules() == []
    reasons = [why for record in output.records if isinstance(record, TraceRecord) for found in record.not_evaluable.values() for why in found.values()]  # fmt: skip
    assert "prior_turns_unseen" in reasons


def test_what_is_remembered_of_those_that_left_is_bounded() -> None:
    held, said = table(max_conversations=1), Said()
    for n in range(12):
        held.feed(batch(refunded(f"t{n}", start=n * 1000).readings, f"c{n:02}"), 0, n)
        said.take(held.judge_dirty(at(LATE)))
    assert [conversation for conversation, trace, _ in said.memory if not trace] == ["c07", "c08", "c09", "c10"]
    assert held.counters["conversations_left", "max_conversations"] == 11


@pytest.mark.parametrize("restart", [False, True])
def test_a_long_conversation_loses_its_oldest_traces_and_keeps_what_they_said(restart: bool) -> None:
    wrong, fine, last = invented("one"), refunded("two", start=100), invented("three", start=200)
    limits = {"conversation_bytes": size(wrong) + size(fine) + 10.0}
    held, said = table(**limits), Said()
    for offset, span in enumerate((wrong, fine)):
        held.feed(batch(span.readings), 0, offset)
        said.take(held.judge_dirty(at(LATE)))
    held.feed(batch(last.readings), 0, 2)
    output = said.take(held.judge_dirty(at(LATE)))
    assert held.counters["traces_forgotten", "conversation_bytes"] == 1
    assert {trace for _, trace, _ in said.memory} == {fine.trace_id, last.trace_id}
    assert said.rules() == ["ungrounded_argument", "ungrounded_argument"]
    assert gaps(output) == set()  # judged while all of it was there
    if restart:
        held = restored(said.memory, **limits)
    more = invented("four", start=300)
    held.feed(batch(more.readings), 0, 3)
    output = said.take(held.judge_dirty(at(LATE)))
    assert gaps(output) == {"prior_turns_unseen"}
    assert {record.owner for record in verdicts(output)} == {f"trace:{more.trace_id}"}
    assert said.rules() == ["ungrounded_argument", "ungrounded_argument"]
    assert held.needed_offset(0) is None


def long_trace(steps: int) -> Spans:
    """A double refund, and then a long loop of reads."""
    span = refunded("long", times=2)
    for n in range(steps):
        span.tool("get_page", 20 + n, 20.5 + n, parent=span.readings[0], result={"page": n, "text": "x" * 500}, page=n)
    return span


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_one_long_trace_keeps_its_youngest_readings_whatever_the_order(data: st.DataObject) -> None:
    span = long_trace(12)
    limit = size(span) // 2
    shuffled = data.draw(st.permutations(span.readings))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(shuffled) - 1), max_size=6)))
    held, said = table(conversation_bytes=limit), Said()
    for offset, (start, end) in enumerate(zip([0, *cuts], [*cuts, len(shuffled)], strict=True)):
        held.feed(batch(shuffled[start:end]), 0, offset)
        said.take(held.judge_dirty(at(LATE)))
    youngest, total = [], 0
    for reading in sorted(span.readings, key=lambda r: (r.start_time_unix_nano, r.span_id), reverse=True):
        total += estimated_bytes(reading)
        if total > limit:
            break
        youngest.append(reading)
    kept = {reading.key for snapshot in said.memory.values() for reading in snapshot.readings}
    assert kept == {reading.key for reading in youngest}
    assert held.stats()["detect_bytes"] <= limit
    assert held.counters["traces_forgotten", "trace_bytes"] >= 1


@pytest.mark.parametrize("restart", [False, True])
def test_what_was_said_of_a_long_trace_stands(restart: bool) -> None:
    span = long_trace(12)
    limits = {"conversation_bytes": float(size(span) // 2)}
    held, said = table(**limits), Said()
    held.feed(batch(span.readings[:5]), 0, 0)
    said.take(held.judge_dirty(at(0)))
    keys = {effects.effect_key for effects in batches(held.judge_dirty(at(0)))}
    for offset, reading in enumerate(span.readings[5:], 1):
        if restart and offset == 10:
            said.take(held.tick(at(LATE)))
            held = restored(said.memory, **limits)
        held.feed(batch([reading]), 0, offset)
        output = said.take(held.judge_dirty(at(LATE if restart else 0)))
        assert all(effects.entries or effects.effect_key not in keys for effects in batches(output))
    output = said.take(held.tick(at(LATE))) if not restart else output
    assert said.rules() == ["duplicate_write"]
    [record] = [record for record in output.records if isinstance(record, TraceRecord)]
    assert len(record.call_keys) == 2 + 12  # rows of calls that went stay
    assert "prior_turns_unseen" in gaps(output)


def test_a_single_reading_beyond_the_limit_is_still_judged() -> None:
    held = table(conversation_bytes=10)
    held.feed(batch([refunded().readings[2]]), 0, 0)
    output = held.judge_dirty(at(LATE))
    assert len(verdicts(output)) == 1
    assert held.needed_offset(0) is None


def test_everything_ends_with_the_file() -> None:
    held, said = table(), Said()
    held.feed(batch(invented().readings), 0, 0)
    held.feed(batch(retried().readings, "other"), 0, 1)
    said.take(held.close_all("end_of_file"))
    assert said.rules() == ["ungrounded_argument", "unsafe_retry"]
    assert held.dirty == 0
    assert held.stats()["runs_open"] == 0


def test_a_conversation_that_can_not_be_judged_leaves_and_stops_no_other(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = timeline.build

    def fails_on_bad(conversation: str, *rest: Any) -> Any:
        if conversation == "bad":
            raise RuntimeError("a bug")
        return real(conversation, *rest)

    monkeypatch.setattr(state, "build", fails_on_bad)
    held, said = table(), Said()
    held.feed(batch(refunded("x").readings, "bad"), 0, 0)
    held.feed(batch(refunded("y", times=2).readings, "good"), 0, 1)
    said.take(held.judge_dirty(at(LATE)))
    assert said.rules() == ["duplicate_write"]
    assert held.counters["conversations_left", "failed"] == 1
    assert (held.needed_offset(0), held.stats()["conversations"]) == (None, 1)
    assert "bad" in caplog.text
