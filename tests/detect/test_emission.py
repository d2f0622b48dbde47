"""What is said after a judgement: what changed, and nothing twice."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from otelmon.assemble.timeline import build
from otelmon.detect.emission import TraceEmission, digest, emit
from otelmon.detect.engine import judge
from otelmon.detect.snapshot import Snapshot, decode_snapshot, encode_snapshot
from otelmon.vocabulary.messages import TraceRecord, Verdict
from otelmon.vocabulary.reading import Reading
from tests.assemble.builders import Spans
from tests.detect.build import invented, laws, refunded


def said(readings: list[Reading], emission: TraceEmission, epoch: int = 1) -> tuple[list[Verdict | TraceRecord], int]:
    judgement = judge(build("conv", readings), laws())
    records, effects = emit(judgement, {readings[0].trace_id: (epoch, emission)})
    return records, len(effects)


def test_only_calls_that_changed_are_sent_and_all_are_named() -> None:
    span, emission = refunded(times=2), TraceEmission()
    records, effects = said(span.readings[:4], emission)
    [record] = [record for record in records if isinstance(record, TraceRecord)]
    assert (len(record.calls), len(record.call_keys), len(record.messages), effects) == (2, 2, 2, 2)
    span.tool("get_order", 5, 6, parent=span.readings[0], call_id="x", result={"id": "OR-771"}, order="OR-771")
    [record] = [record for record in said(span.readings, emission)[0] if isinstance(record, TraceRecord)]
    assert [call.tool_name for call in record.calls] == ["get_order"]
    assert len(record.call_keys) == 3
    assert set(record.effects) == set(record.call_keys)
    assert [m.text for m in record.messages if hasattr(m, "text")][-1] == "Refunded 18.50 on OR-771."
    assert said(span.readings, emission) == ([], 0)


def test_messages_that_did_not_change_are_not_repeated() -> None:
    span, emission = refunded(), TraceEmission()
    said(span.readings, emission)
    changed = msgspec.structs.replace(span.readings[2], principal="u-1", digest="f" * 16)
    readings = [*span.readings[:2], changed, *span.readings[3:]]
    [record] = [record for record in said(readings, emission)[0] if isinstance(record, TraceRecord)]
    assert [call.principal for call in record.calls] == ["u-1"]
    assert record.messages == ()


def test_another_epoch_is_said_though_the_findings_are_the_same() -> None:
    span, emission = refunded(times=2), TraceEmission()
    said(span.readings, emission, epoch=0)
    [verdict] = [record for record in said(span.readings, emission, epoch=1)[0] if isinstance(record, Verdict)]
    assert (verdict.epoch, len(verdict.findings)) == (1, 1)


def test_a_trace_without_findings_says_so_once() -> None:
    emission = TraceEmission()
    records, _ = said(refunded().readings, emission)
    assert [record.findings for record in records if isinstance(record, Verdict)] == [()]
    assert said(refunded().readings, emission) == ([], 0)


def test_a_trace_that_says_nothing_at_all_is_told() -> None:
    span = Spans("silent")
    span.other("step", 0, 1)
    records, effects = said(span.readings, TraceEmission())
    assert effects == 0
    assert {type(record) for record in records} == {Verdict, TraceRecord}


@given(st.permutations(invented().readings))
@settings(max_examples=20, deadline=None)
def test_records_do_not_depend_on_the_order_of_readings(readings: list[Reading]) -> None:
    assert said(readings, TraceEmission()) == said(invented().readings, TraceEmission())


@given(
    st.recursive(
        st.none() | st.integers(-(2**63), 2**63) | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3)
    )
)
def test_a_digest_tells_values_apart(value: object) -> None:
    assert len(digest(value)) == 8
    assert digest(value) != digest([value])


def test_a_snapshot_comes_back_as_it_was() -> None:
    readings = tuple(refunded().readings)
    whole = Snapshot("c", "t", 1, readings, ("k",), {"r": "root"}, 2, True, (1, "s", "d"), (), ("x",))
    assert decode_snapshot(encode_snapshot(whole)) == whole


def test_a_snapshot_of_an_older_version_is_still_read() -> None:
    old = {"conversation_id": "c", "trace_id": "t", "epoch": 1, "readings": [], "effect_keys": [], "closed": {}}
    snapshot = decode_snapshot(msgspec.msgpack.encode(old))
    assert (snapshot.forgotten, snapshot.floor, snapshot.kept, snapshot.left) == (False, None, (), False)
