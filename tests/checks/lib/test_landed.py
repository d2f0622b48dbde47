"""Which earlier writes meant the same: what comparing each with each would say, without doing it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from otelmon.checks.lib.landed import Landed
from otelmon.vocabulary.messages import EffectEntry

SECOND = 1_000_000_000
WINDOW = 10.0
ENTRY = EffectEntry(
    effect_key="k", anchor="", trace_id="", span_id="", run_id="", conversation_id="", tool_name="pay",
    tool_call_id=None, effect="destructive", repeat="additive", outcome="succeeded", idempotency_key=None,
    arguments={}, arguments_hash="", result_digest="", request_digest="", turn=1, asked=1, identifying=True,
    state_changed=False, trigger=None, host="", agent_name=None, service_name="", environment="",
    start_time_unix_nano=0, end_time_unix_nano=0,
)  # fmt: skip

entries = st.lists(
    st.builds(
        lambda start, conversation, trigger, key, identifying, asked, host: msgspec.structs.replace(
            ENTRY,
            conversation_id=conversation,
            trigger=trigger,
            idempotency_key=key,
            identifying=identifying,
            asked=asked,
            host=host,
            start_time_unix_nano=start * SECOND,
        ),
        st.integers(0, 40),
        st.sampled_from("abc"),
        st.sampled_from([None, "t1", "t2"]),
        st.sampled_from([None, "k1", "k2"]),
        st.booleans(),
        st.integers(1, 2),
        st.sampled_from(["h1", "h2"]),
    ),
    max_size=30,
).map(lambda found: sorted(found, key=lambda entry: entry.start_time_unix_nano))


def one_by_one(earlier: Sequence[EffectEntry], entry: EffectEntry) -> list[EffectEntry]:
    def same(e: EffectEntry) -> bool:
        if e.conversation_id == entry.conversation_id:
            return False
        near = entry.start_time_unix_nano - e.start_time_unix_nano <= WINDOW * SECOND
        triggered = bool(e.trigger) and e.trigger == entry.trigger
        return triggered or (near and entry.identifying and entry.asked < 2)

    return [e for e in earlier if same(e)]


@given(entries)
def test_it_says_what_comparing_each_with_each_says(history: list[EffectEntry]) -> None:
    landed = Landed()
    for place, entry in enumerate(history):
        wanted = one_by_one(history[:place], entry)
        same = landed.of_same_intent(entry, WINDOW)
        if same is None:
            assert not wanted
        else:
            assert (same.first, same.last, same.times) == (wanted[0], wanted[-1], len(wanted))
            assert {e.host for e in same.some} == {e.host for e in wanted}
            keys = {e.idempotency_key for e in wanted if e.idempotency_key}
            assert landed.with_same_key(entry, same) is (entry.idempotency_key in keys)
        landed.add(entry)


def test_of_thousands_those_near_either_end_are_shown() -> None:
    landed = Landed()
    for number in range(1_000):
        landed.add(msgspec.structs.replace(ENTRY, conversation_id=f"c{number % 500}", host=f"h{number}"))
    same = landed.of_same_intent(msgspec.structs.replace(ENTRY, conversation_id="c0"), WINDOW)
    assert same is not None
    assert (same.times, same.first.host, same.last.host) == (998, "h1", "h999")
    shown = {entry.host for entry in same.some}
    assert {"h1", "h999"} <= shown
    assert "h0" not in shown
    assert len(shown) <= 100
