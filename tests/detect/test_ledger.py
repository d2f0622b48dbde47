"""The ledger: a verdict is a function of the entries held; what is withdrawn, moved or old is let go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from otelmon.detect.engine import Laws
from otelmon.detect.ledger import LedgerTable
from otelmon.rules.suppress import name_of
from otelmon.vocabulary.config import DetectConfig, Suppression
from otelmon.vocabulary.finding import Evidence
from otelmon.vocabulary.messages import EffectBatch, EffectEntry, Verdict
from tests.detect.build import laws
from tests.rules.helpers import entry

SECOND = 1_000_000_000
FAR = 10**15 * SECOND


def ledger(**settings: float) -> LedgerTable:
    return LedgerTable(laws(), DetectConfig(**settings))  # type: ignore[arg-type]


def effects(trace: str, seconds: int = 100, epoch: int = 1, key: str = "k", times: int = 1) -> EffectBatch:
    """The writes of one trace, a conversation of its own."""
    entries = tuple(
        entry(
            effect_key=key, anchor=f"{trace}:{n}", trace_id=trace, span_id=str(n), run_id=f"{trace}:0",
            conversation_id=f"conv-{trace}", tool_name="issue_refund", effect="destructive",
            start_time_unix_nano=(seconds + n) * SECOND, end_time_unix_nano=(seconds + n) * SECOND + 1,
        )
        for n in range(times)
    )  # fmt: skip
    return EffectBatch(effect_key=key, trace_id=trace, epoch=epoch, entries=entries)


def nothing(trace: str, epoch: int = 1, key: str = "k") -> EffectBatch:
    return EffectBatch(effect_key=key, trace_id=trace, epoch=epoch, entries=())


def last(verdicts: list[Verdict]) -> dict[str, tuple[str, ...]]:
    """The last findings of each owner, by trace."""
    found = {verdict.owner: tuple(f.trace_id for f in verdict.findings) for verdict in verdicts}
    return {owner: traces for owner, traces in found.items() if traces}


def test_a_write_alone_is_no_finding_and_is_not_spoken_of() -> None:
    held = ledger()
    held.feed(effects("a"), 0)
    assert held.judge_dirty() == []
    held.feed(effects("b", 200), 0)
    [verdict] = held.judge_dirty()
    assert (verdict.owner, [f.rule_id for f in verdict.findings]) == ("effect:k", ["duplicate_write"])
    assert verdict.findings[0].trace_id == "b"
    held.feed(effects("b", 200), 0)
    assert held.judge_dirty() == []


EVENTS = [
    effects("a", 100),
    effects("b", 200),
    effects("c", 300),
    effects("b", 200, epoch=2),
    effects("x", 100, key="k2"),
]


@given(st.permutations(EVENTS), st.sets(st.integers(0, len(EVENTS) - 1)))
@settings(max_examples=40, deadline=None)
def test_the_order_of_batches_changes_nothing(batches: list[EffectBatch], judged_after: set[int]) -> None:
    held, sent = ledger(), []
    for index, one in enumerate(batches):
        held.feed(one, 0)
        if index in judged_after:
            sent.extend(held.judge_dirty())
    sent.extend(held.judge_dirty())
    assert last(sent) == {"effect:k": ("b", "c")}


def test_a_withdrawal_takes_the_finding_back() -> None:
    held = ledger()
    held.feed(effects("a"), 0)
    held.feed(effects("b", 200), 0)
    held.judge_dirty()
    held.feed(nothing("b"), 0)
    [verdict] = held.judge_dirty()
    assert verdict.findings == ()


def test_an_older_owner_changes_nothing() -> None:
    held = ledger()
    held.feed(effects("a"), 0)
    held.feed(effects("b", 200, epoch=1), 0)
    held.judge_dirty()
    held.feed(nothing("b", epoch=0), 0)
    held.feed(effects("b", 200 + 100_000, epoch=0), 0)
    assert all(len(verdict.findings) == 1 for verdict in held.judge_dirty())
    held.feed(effects("b", 300, epoch=1), 0)
    assert all(len(verdict.findings) == 1 for verdict in held.judge_dirty())
    held.feed(nothing("b", epoch=1), 0)
    assert [verdict.findings for verdict in held.judge_dirty()] == [()]


def test_news_that_came_again_after_a_restart_are_said_in_any_case() -> None:
    """The topic remembered a withdrawal by replacement, the process was killed before its verdict."""
    held = ledger()
    for one in (effects("a"), effects("b", 200 + 100_000)):  # too far apart: no finding any more
        held.restore(one, 0)
    assert held.judge_dirty() == []
    held.feed(effects("b", 200 + 100_000), 0)
    [verdict] = held.judge_dirty()
    assert verdict.findings == ()
    held.feed(effects("b", 200 + 100_000), 0)
    assert held.judge_dirty() == []


def test_what_is_restored_is_judged_again() -> None:
    held = ledger()
    held.restore(effects("a"), 0)
    held.restore(effects("b", 200), 0)
    assert last(held.judge_dirty()) == {"effect:k": ("b",)}


def test_old_effects_are_forgotten_and_named_for_the_topic() -> None:
    held = ledger(effect_seconds=1000)
    held.feed(effects("a", 100), 0)
    held.feed(effects("b", 900), 0)
    held.feed(effects("z", 1500, key="other"), 1)
    held.judge_dirty()
    assert held.forget_old(FAR) == [(0, "k", "a")]
    assert held.stats()["effect_keys"] == 2
    held.feed(effects("c", 2000, key="other"), 1)
    assert held.forget_old(FAR) == [(0, "k", "b")]
    assert held.stats()["effect_keys"] == 1
    assert held.counters["effects_forgotten",] == 2


def test_a_wrong_clock_does_not_empty_the_ledger() -> None:
    held = ledger(effect_seconds=1000)
    held.feed(effects("a", 100), 0)
    held.feed(effects("mad", 10**9), 0)
    assert held.forget_old(500 * SECOND) == []
    held.feed(effects("b", 200), 0)
    assert last(held.judge_dirty()) == {"effect:k": ("b",)}


def test_what_was_withdrawn_leaves_the_topic_in_time() -> None:
    held = ledger(effect_seconds=1000)
    held.feed(effects("a", 100), 0)
    held.feed(nothing("a"), 0)
    held.judge_dirty()
    assert held.forget_old(FAR) == []
    held.feed(effects("b", 1101, key="other"), 0)
    assert held.forget_old(FAR) == [(0, "k", "a")]
    assert held.forget_old(FAR) == []
    assert held._gone == {}


def test_what_was_withdrawn_and_came_back_stays() -> None:
    held = ledger(effect_seconds=1000)
    held.feed(effects("a", 100), 0)
    held.feed(nothing("a"), 0)
    held.feed(effects("a", 5000), 0)
    held.feed(effects("b", 5500, key="other"), 0)
    assert held.forget_old(FAR) == []


def test_a_partition_that_goes_takes_its_keys() -> None:
    held = ledger()
    held.feed(effects("a"), 0)
    held.feed(nothing("w"), 0)
    held.feed(effects("b", 200, key="other"), 1)
    held.drop_partition(0)
    assert held.stats()["effect_keys"] == 1
    assert held.judge_dirty() == []
    held.drop_partition(1)
    assert (held.stats()["effect_keys"], held.forget_old(FAR)) == (0, [])


def broken(entries: Sequence[EffectEntry], params: Any) -> Iterator[Evidence]:
    """A check with a bug."""
    raise RuntimeError("a bug")


def test_a_check_that_raises_is_counted_and_stops_no_other() -> None:
    """For the alert on failing checks: those of the ledger count too."""
    known = laws().rules.rules["duplicate_write"]
    check = msgspec.structs.replace(known.check, functions={"effect": broken})
    rules = {**laws().rules.rules, "broken": msgspec.structs.replace(known, id="broken", check=check)}
    table = LedgerTable(Laws(msgspec.structs.replace(laws().rules, rules=rules)), DetectConfig())
    table.feed(effects("one", 100), 0)
    table.feed(effects("two", 110), 0)
    [verdict] = table.judge_dirty()
    assert [finding.rule_id for finding in verdict.findings] == ["duplicate_write"]
    assert table.counters["check_errors", "broken"] == 1


def test_what_is_accepted_across_runs_is_counted_once_and_remembered_as_matched() -> None:
    accepted = Suppression(rule="duplicate_write", reason="known", expires="2999-01-01")
    other = Suppression(rule="duplicate_write", where={"tool": "elsewhere"}, reason="never", expires="2999-01-01")
    held = LedgerTable(msgspec.structs.replace(laws(), suppress=(other, accepted)), DetectConfig())
    held.feed(effects("a"), 0)
    held.feed(effects("b", 200), 0)
    assert held.judge_dirty() == []
    held.feed(effects("b", 200), 0)
    held.judge_dirty()
    assert held.counters["findings_suppressed", "duplicate_write"] == 1
    assert held.heard.matched == {name_of(accepted)}
    held.feed(effects("c", 300), 0)
    held.judge_dirty()
    assert held.counters["findings_suppressed", "duplicate_write"] == 2
    held.drop_partition(0)
    assert held._accepted == {}
