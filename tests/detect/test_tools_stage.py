"""A tool that changes, from what runs show to the finding, on a real spool: over conversations, kills and restarts."""

from __future__ import annotations

import pytest

from otelmon.detect.ledger_stage import SWEEP_EVERY, LedgerStage
from otelmon.detect.stage import DetectStage
from otelmon.vocabulary.messages import LEDGER, ReadingBatch, ToolVersion, decode_ledger
from tests.assemble.builders import Spans, assistant, definition, user
from tests.bus.places import PARTITIONS, SpoolPlace
from tests.detect.build import batch, judged, laws
from tests.detect.bus import Wall, config, everything, final, publish
from tests.detect.test_stage import DyingBus, KilledError, detect, ledger_through, run_and_age, through


def shown(trace: str, start: float, text: str, **properties: str) -> ReadingBatch:
    """A run that shows the tools of a depot; its conversation has the trace's name."""
    span = Spans(trace)
    root = span.agent(start, start + 2)
    tools = [
        definition("move_stock", text, "depot", **properties),
        definition("get_stock", "Reads stock.", "depot", sku="string"),
    ]
    span.model([user("Hello.")], [assistant("Hello.")], start, start + 1, parent=root, tools=tools)
    return batch(span.readings, f"conv-{trace}")


def release() -> list[ReadingBatch]:
    """Before, during (two replicas) and after a release that takes an argument away."""
    old, new = {"sku": "string", "bin": "string"}, {"sku": "string"}
    return [
        shown("one", 0, "Moves stock.", **old),
        shown("two", 60, "Moves stock.", **new),
        shown("three", 70, "Moves stock.", **old),
        shown("four", 80, "Moves stock.", **new),
    ]


def rules(found: dict[str, tuple[object, ...]]) -> list[tuple[str, str, str]]:
    return [(f.rule_id, f.trace_id, f.severity) for findings in found.values() for f in findings]  # type: ignore[attr-defined]


def test_a_release_is_told_of_once_whatever_comes_first(place: SpoolPlace) -> None:
    bus, wall = place.open(), Wall()
    publish(bus, reversed(release()))
    stage, ledger = detect(bus, wall), LedgerStage(bus, laws(), config(), wall)
    through(stage, wall)
    ledger_through(ledger)
    expected = judged(release()).findings()
    assert final(bus) == expected
    [finding] = rules(expected)  # type: ignore[arg-type]
    assert finding == ("tool_drift", release()[1].trace_id, "high")
    stage.close()
    ledger.close()


def test_what_is_told_lies_under_its_tool_and_the_rest_leaves_the_topic(place: SpoolPlace) -> None:
    bus, wall = place.open(), Wall()
    publish(bus, reversed(release()))
    stage, ledger = detect(bus, wall), LedgerStage(bus, laws(), config(), wall)
    through(stage, wall)
    for message in everything(bus, LEDGER):
        version = decode_ledger(message.value)
        assert isinstance(version, ToolVersion)
        assert message.partition == bus.partition_of(LEDGER, version.tool_key)
        assert message.key == "\x1f".join((version.tool_key, version.version, version.trace_id))
    ledger_through(ledger)
    wall.pass_seconds(SWEEP_EVERY / 10**9 + 1)
    ledger.step(0.01)
    held = [value for p in range(PARTITIONS) for value in bus.latest(LEDGER, p).values() if value]
    assert len(held) == 3  # two versions of one tool, one of the other
    stage.close()
    ledger.close()


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(1, 5))
def test_a_kill_around_any_publish_changes_no_final_finding(place: SpoolPlace, at: int, after: bool) -> None:
    bus, wall = place.open(), Wall()
    publish(bus, release())
    stage = DetectStage(DyingBus(bus, at, after), laws(), config(), wall)  # type: ignore[arg-type]
    with pytest.raises(KilledError):
        run_and_age(stage, wall)
    bus = place.open()
    stage, ledger = detect(bus, wall), LedgerStage(bus, laws(), config(), wall)
    through(stage, wall)
    ledger_through(ledger)
    assert final(bus) == judged(release()).findings()
    stage.close()
    ledger.close()


def test_a_new_ledger_knows_what_the_topic_holds(place: SpoolPlace) -> None:
    bus, wall = place.open(), Wall()
    publish(bus, release()[:1])
    stage, ledger = detect(bus, wall), LedgerStage(bus, laws(), config(), wall)
    through(stage, wall)
    ledger_through(ledger)
    ledger.close()
    publish(bus, release()[1:])
    through(stage, wall)
    ledger = LedgerStage(bus, laws(), config(), wall)
    ledger_through(ledger)
    assert final(bus) == judged(release()).findings()
    stage.close()
    ledger.close()
