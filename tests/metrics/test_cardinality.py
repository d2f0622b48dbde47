"""Names from hostile agents through the whole monitor: what counts stays bounded, what is shown is readable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from otelmon.vocabulary.labels import LIMITS
from tests.services.monitor import Call, LiveMonitor, Talk, until

TALKS, TOOLS = 70, 8  # more agents than 50, more tools than 200
NASTY = ("\x00", "\u202e", 'quo"te\\', "line\nbreak", "\x1b[2J", "x" * 5_000, "", "注文")


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveMonitor]:
    started = LiveMonitor(tmp_path)
    yield started
    started.stop()


def _talk(number: int) -> Talk:
    calls = tuple(Call(f"tool{number}-{place}{NASTY[place % len(NASTY)]}") for place in range(TOOLS))
    return Talk(number=number, user="Go.", calls=calls, answer="Gone.", agent=f"agent{number}{NASTY[number % 8]}")


def test_names_that_agents_invent_do_not_decide_how_many_series_there_are(live: LiveMonitor) -> None:
    live.judged(*map(_talk, range(1, TALKS + 1)))
    until(lambda: sum(_counted(live, "runs").values()) == TALKS)
    text = live.client.get("/metrics").text
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    for label, (limit, rest) in LIMITS.items():
        values = {sample.labels[label] for sample in samples if label in sample.labels}
        assert len(values - {rest}) <= limit
        assert all(value.isprintable() and len(value) <= 100 for value in values)
    calls = [sample for sample in samples if sample.name == "otelmon_tool_calls_total"]
    assert sum(sample.value for sample in calls) == TALKS * TOOLS
    assert "other" in {sample.labels["tool"] for sample in calls}
    assert "overflow" in {sample.labels["agent"] for sample in calls}
    # Not only what is shown: what the stages keep is bounded as well.
    assert len({key[1] for key in _counted(live, "tool_calls")}) <= LIMITS["tool"][0] + 1
    assert len(_counted(live, "runs")) <= LIMITS["agent"][0] + 1


def _counted(live: LiveMonitor, metric: str) -> Counter[tuple[str, ...]]:
    total: Counter[tuple[str, ...]] = Counter()
    for worker in live.monitor.workers:
        total.update({key: n for key, n in worker.counters().items() if key[0] == metric})
    return total
