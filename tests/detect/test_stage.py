"""The detect stage on a real spool: what is killed at any point goes on from what is durable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from otelmon.bus.protocol import Bus, Consumer, Delivered, Outgoing
from otelmon.detect.ledger_stage import LedgerStage
from otelmon.detect.snapshot import decode_snapshot
from otelmon.detect.stage import JUDGE_EVERY, DetectStage
from otelmon.vocabulary.messages import (
    DEAD,
    LEDGER,
    MEMORY,
    READINGS,
    RECORDS,
    EffectBatch,
    Handover,
    ReadingBatch,
    TraceRecord,
    Verdict,
    decode_ledger,
)
from tests.assemble.builders import Spans
from tests.bus.places import PARTITIONS, SpoolPlace
from tests.detect.build import SETTLE, batch, invented, judged, laws, refunded, stories
from tests.detect.bus import Wall, config, everything, final, places, publish, records, run_until


def detect(bus: Bus, wall: Wall, **limits: float) -> DetectStage:
    return DetectStage(bus, laws(), config(**limits), wall)


def snapshots(bus: Bus) -> dict[str, set[str]]:
    """What memory holds now: {conversation: trace ids}."""
    found: dict[str, set[str]] = {}
    for partition in range(PARTITIONS):
        for value in bus.latest(MEMORY, partition).values():
            snapshot = decode_snapshot(value)
            found.setdefault(snapshot.conversation_id, set()).add(snapshot.trace_id)
    return found


def through(stage: DetectStage, wall: Wall) -> None:
    """All messages taken and judged, all runs over."""
    stage.step(0.01)
    run_until(stage, lambda: not stage.stats()["lag"])
    stage.step(0)
    wall.pass_seconds(SETTLE + 300)
    run_until(stage, lambda: not stage.stats()["runs_open"])
    wall.pass_seconds(2)
    stage.step(0)


def ledger_through(ledger: LedgerStage) -> None:
    """All effects judged."""
    ledger.step(0.01)
    run_until(ledger, lambda: not ledger.stats()["lag"])


def test_live_judgement_is_that_of_the_table(place: SpoolPlace) -> None:
    bus, wall = place.open(), Wall()
    publish(bus, stories())
    stage, ledger = detect(bus, wall), LedgerStage(bus, laws(), config(), wall)
    through(stage, wall)
    ledger_through(ledger)
    assert final(bus) == judged(stories()).findings()
    assert {trace for traces in snapshots(bus).values() for trace in traces} == {s.trace_id for s in stories()}
    stage.close()
    ledger.close()


def test_effects_lie_under_their_key_in_its_partition(place: SpoolPlace) -> None:
    bus, wall = place.open(), Wall()
    publish(bus, stories())
    stage = detect(bus, wall)
    through(stage, wall)
    for message in everything(bus, LEDGER):
        effects = decode_ledger(message.value)
        assert isinstance(effects, EffectBatch)
        assert message.key == f"{effects.effect_key}\x1f{effects.trace_id}"
        assert message.partition == bus.partition_of(LEDGER, effects.effect_key)
        assert message.time_unix_nano // 10**6 == max(e.end_time_unix_nano for e in effects.entries) // 10**6


class KilledError(Exception):
    """The process is gone."""


def run_and_age(stage: DetectStage, wall: Wall) -> None:
    """Until something raises, or all that was published has been said long ago."""
    for _ in range(100):
        stage.step(0.01)
        wall.pass_seconds(7)


class DyingBus:
    """A real bus whose process is killed before or after the publish number `at`."""

    def __init__(self, bus: Bus, at: int, after: bool) -> None:
        self._bus, self._at, self._after, self.published = bus, at, after, 0

    def publish(self, topic: str, messages: Sequence[Outgoing]) -> None:
        self.published += 1
        if self.published == self._at and not self._after:
            raise KilledError
        self._bus.publish(topic, messages)
        if self.published == self._at:
            raise KilledError

    def __getattr__(self, name: str) -> object:
        return getattr(self._bus, name)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(1, 6))
def test_a_kill_around_any_publish_changes_no_final_finding(place: SpoolPlace, at: int, after: bool) -> None:
    bus, wall = place.open(), Wall()
    publish(bus, stories())
    dying = DyingBus(bus, at, after)
    stage = DetectStage(dying, laws(), config(), wall)  # type: ignore[arg-type]
    with pytest.raises(KilledError):
        run_and_age(stage, wall)
    bus = place.open()  # the folder as the kill left it; the spool gives its partitions to the next
    stage, ledger = detect(bus, wall), LedgerStage(bus, laws(), config(), wall)
    through(stage, wall)
    ledger_through(ledger)
    assert final(bus) == judged(stories()).findings()
    stage.close()
    ledger.close()


def test_nothing_is_committed_that_no_snapshot_covers(place: SpoolPlace) -> None:
    bus, wall = place.open(), Wall()
    span = invented()
    message = batch(span.readings)
    partition = bus.partition_of(READINGS, message.conversation_id)
    publish(bus, [message])
    stage = detect(bus, wall)
    for _ in range(5):
        stage.step(0.01)
    assert records(bus)  # judged and said, but the run is not over
    assert bus.committed("otelmon-detect", (READINGS, partition)) in (None, 0)
    through(stage, wall)
    assert bus.committed("otelmon-detect", (READINGS, partition)) == 1
    assert snapshots(bus) == {"conv": {span.trace_id}}


def test_after_a_restart_only_news_are_judged(place: SpoolPlace) -> None:
    bus, wall = place.open(), Wall()
    publish(bus, stories())
    stage = detect(bus, wall)
    through(stage, wall)
    stage.close()
    bus = place.open()
    before = places(bus)
    stage = detect(bus, wall)
    through(stage, wall)
    assert places(bus) == before
    assert stage.stats()["conversations"] == 5
    more = refunded("more", times=2, start=500)
    publish(bus, [batch(more.readings, "conv-c")])
    through(stage, wall)
    new = records(bus, before)
    assert {record.owner for record in new if isinstance(record, Verdict) and record.findings} >= {
        f"trace:{more.trace_id}"
    }


class OneByOne:
    """A real consumer whose polls bring one message, as those of a long backlog bring a part of it."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    def poll(self, timeout_s: float) -> Sequence[Delivered]:
        return self._consumer.poll(timeout_s, 1)

    def __getattr__(self, name: str) -> object:
        return getattr(self._consumer, name)


class SlowBus(DyingBus):
    def consumer(self, *arguments: Any) -> OneByOne:
        return OneByOne(self._bus.consumer(*arguments))


def test_a_restart_does_not_take_runs_that_are_still_read_again_for_over(place: SpoolPlace) -> None:
    """Memory has seen later times than the messages that come again: by those times the run would look
    over after its first message, without what the others show."""
    bus, wall = place.open(), Wall()
    same = bus.partition_of(READINGS, "conv")
    other = next(f"other-{n}" for n in range(100) if bus.partition_of(READINGS, f"other-{n}") == same)
    span, quick = Spans("slow"), Spans("quick")
    root = span.agent(0, 1)
    for n in (9, 18, 22):
        span.tool("get_order", n - 1, n, parent=root, order=f"OR-{n}", result={"n": n})
    quick.agent(10, 11)
    first, second, *rest = ([reading] for reading in span.readings)
    publish(bus, [batch(first), batch(second), batch(quick.readings, other), *map(batch, rest)])
    stage = DetectStage(SlowBus(bus, 0, False), laws(), config(), wall)  # type: ignore[arg-type]
    for _ in range(7):
        stage.step(0.01)
        wall.pass_seconds(1.1)
    assert snapshots(bus) == {other: {quick.trace_id}}
    bus = place.open()
    before = places(bus)
    stage = DetectStage(SlowBus(bus, 0, False), laws(), config(), wall)  # type: ignore[arg-type]
    for _ in range(5):
        stage.step(0.01)
        wall.pass_seconds(1.1)
    new = [record for record in records(bus, before) if isinstance(record, TraceRecord)]
    assert len(new) >= 3
    assert {run.closed for record in new for run in record.runs if run.trace_id == span.trace_id} == {None}


def test_a_handover_between_partitions_keeps_the_finding(place: SpoolPlace) -> None:
    bus, wall = place.open(), Wall()
    span = refunded(times=2)
    old = f"trace:{span.trace_id}"
    publish(bus, [batch(span.readings, old, epoch=0)])
    stage = detect(bus, wall)
    through(stage, wall)
    assert snapshots(bus) == {old: {span.trace_id}}
    publish(bus, [Handover(conversation_id=old, trace_id=span.trace_id, to="conv"), batch(span.readings, "conv")])
    through(stage, wall)
    assert snapshots(bus) == {"conv": {span.trace_id}}
    [finding] = [finding for found in final(bus).values() for finding in found]
    assert (finding.rule_id, finding.conversation_id) == ("duplicate_write", "conv")
    assert stage.counters["handovers",] == 1


def test_a_message_that_can_not_be_read_is_kept_and_its_neighbours_judged(place: SpoolPlace) -> None:
    bus, wall = place.open(), Wall()
    good = batch(refunded(times=2).readings)
    publish(bus, [b"\xc1 not a message", good, b"\x80"], key="conv")
    stage = detect(bus, wall)
    through(stage, wall)
    assert stage.counters["dead_letters", READINGS] == 2
    dead = everything(bus, DEAD)
    assert [(m.key, m.value, dict(m.headers)["topic"]) for m in dead] == [
        ("conv", b"\xc1 not a message", READINGS.encode()),
        ("conv", b"\x80", READINGS.encode()),
    ]
    assert [f.rule_id for found in final(bus).values() for f in found] == ["duplicate_write"]
    assert bus.committed("otelmon-detect", (READINGS, bus.partition_of(READINGS, "conv"))) == 3


def test_a_snapshot_that_can_not_be_read_is_counted(place: SpoolPlace) -> None:
    bus, wall = place.open(), Wall()
    bus.publish(MEMORY, [Outgoing("conv\x1ft\x1f0", b"\xc1", 1, partition=0)])
    stage = detect(bus, wall)
    publish(bus, [batch(refunded(times=2).readings)])
    through(stage, wall)
    assert stage.counters["dead_letters", MEMORY] == 1
    assert len(final(bus)) == 1


def test_a_burst_is_judged_once(place: SpoolPlace) -> None:
    bus, wall = place.open(), Wall()
    span = refunded()
    stage = detect(bus, wall)
    stage.step(0)
    publish(bus, [batch(span.readings[:1])])
    stage.step(0)
    first = len(records(bus))
    assert first == 2  # a record and a verdict
    publish(bus, [batch([reading]) for reading in span.readings[1:]])
    stage.step(0)
    assert len(records(bus)) == first
    wall.now += JUDGE_EVERY
    publish(bus, [batch(span.readings[:1])])
    stage.step(0)
    assert len(records(bus)) == first + 1  # the verdict did not change


def test_two_members_share_the_partitions_and_one_takes_over(place: SpoolPlace) -> None:
    bus, wall = place.open(), Wall()
    publish(bus, stories())
    one, two = detect(bus, wall), detect(bus, wall)
    for _ in range(20):
        one.step(0.01)
        two.step(0.01)
    assert one.stats()["conversations"] + two.stats()["conversations"] == 5
    two.close()
    through(one, wall)
    assert one.stats()["conversations"] == 5
    ledger = LedgerStage(bus, laws(), config(), wall)
    ledger_through(ledger)
    assert final(bus) == judged(stories()).findings()


def test_changed_laws_judge_what_comes_again(place: SpoolPlace) -> None:
    import msgspec

    bus, wall = place.open(), Wall()
    message = batch(refunded(times=2).readings)
    stage = detect(bus, wall)
    publish(bus, [message])
    through(stage, wall)
    assert len(final(bus)) == 1
    stage.change_laws(msgspec.structs.replace(laws(), rules=msgspec.structs.replace(laws().rules, rules={})))
    publish(bus, [message])
    through(stage, wall)
    assert final(bus) == {}


def test_closing_judges_and_says_what_it_has(place: SpoolPlace) -> None:
    bus, wall = place.open(), Wall()
    stage = detect(bus, wall)
    stage.step(0)
    publish(bus, [batch(refunded("first").readings, "x")])
    stage.step(0)
    publish(bus, [batch(refunded(times=2).readings)])
    stage.step(0)
    assert final(bus) == {}  # too soon after the last judgement
    stage.close()
    assert [f.rule_id for found in final(bus).values() for f in found] == ["duplicate_write"]


def _committed(bus: Bus) -> Mapping[int, int | None]:
    return {p: bus.committed("otelmon-ledger", (LEDGER, p)) for p in range(PARTITIONS)}  # type: ignore[attr-defined]


def ledger_of(bus: Bus, wall: Wall, **limits: float) -> LedgerStage:
    return LedgerStage(bus, laws(), config(**limits), wall)


def fill(bus: Bus, wall: Wall, batches: Sequence[ReadingBatch]) -> None:
    publish(bus, batches)
    stage = detect(bus, wall)
    through(stage, wall)
    stage.close()


def test_the_ledger_says_the_same_after_a_restart(place: SpoolPlace) -> None:
    bus, wall = place.open(), Wall()
    fill(bus, wall, stories())
    ledger = ledger_of(bus, wall)
    ledger_through(ledger)
    assert sum(offset or 0 for offset in _committed(bus).values()) == len(everything(bus, LEDGER))
    before = final(bus)
    ledger.close()
    bus = place.open()
    again = ledger_of(bus, wall)
    again.step(0.01)
    assert final(bus) == before
    assert again.stats()["effect_keys"] == 9  # five effects (two of six writes are the same) and four requests


def test_the_ledger_keeps_what_it_can_not_read_and_goes_on(place: SpoolPlace) -> None:
    bus, wall = place.open(), Wall()
    bus.publish(LEDGER, [Outgoing("k\x1ft", b"\xc1", 1, partition=0)])
    ledger = ledger_of(bus, wall)
    fill(bus, wall, stories())
    ledger_through(ledger)
    assert ledger.counters["dead_letters", LEDGER] >= 1
    assert {message.value for message in everything(bus, DEAD)} == {b"\xc1"}
    assert any(owner.startswith("effect:") for owner in final(bus))


def test_old_effects_leave_the_compacted_topic(place: SpoolPlace) -> None:
    bus, wall = place.open(), Wall()
    fill(
        bus,
        wall,
        [batch(refunded("old").readings, "a"), batch(refunded("new", start=90_000, order="OR-2").readings, "b")],
    )
    assert sum(len(bus.latest(LEDGER, p)) for p in range(PARTITIONS)) == 4  # of each the effect and the request
    ledger = ledger_of(bus, wall)
    ledger_through(ledger)
    wall.pass_seconds(61)
    ledger.step(0)
    assert sum(len(bus.latest(LEDGER, p)) for p in range(PARTITIONS)) == 2
    assert ledger.counters["effects_forgotten",] == 2
    ledger.close()


def test_records_name_their_owner(place: SpoolPlace) -> None:
    bus, wall = place.open(), Wall()
    fill(bus, wall, stories())
    keys = {message.key for message in everything(bus, RECORDS)}
    assert keys == {f"trace:{story.trace_id}" for story in stories()}
