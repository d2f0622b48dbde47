"""A worker outlives what its stage meets, and says how it is."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable

import pytest

from otelmon.app.worker import Worker
from otelmon.detect.engine import Laws
from otelmon.detect.heard import Heard
from otelmon.rules.model import RuleSet
from otelmon.vocabulary.errors import Problem, UnreachableError

PATIENCE_S = 20.0


class Counting:
    """A real stage that counts its steps and raises in those it is told to."""

    name = "counting"

    def __init__(self, trouble: Callable[[int], None], seen: list[str]) -> None:
        self.counters: Counter[tuple[str, ...]] = Counter()
        self._trouble, self._seen = trouble, seen
        seen.append("made")

    def step(self, timeout_s: float) -> None:
        self.counters["steps",] += 1
        self._seen.append("step")
        self._trouble(self._seen.count("step"))
        threading.Event().wait(0.002)

    def stats(self) -> dict[str, int]:
        return {"lag": 3}

    def close(self) -> None:
        self._seen.append("closed")


def until(true: Callable[[], bool]) -> None:
    waiting = threading.Event()
    for _ in range(int(PATIENCE_S / 0.005)):
        if true():
            return
        waiting.wait(0.005)
    raise AssertionError("did not happen")


def well(worker: Worker) -> bool:
    return worker.healthy


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits between restarts, not waited for."""
    found: list[float] = []

    class Quick(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            if timeout and timeout >= 1:
                found.append(timeout)
            return super().wait(0.001)

    monkeypatch.setattr("otelmon.app.worker.threading.Event", Quick)
    return found


def test_a_stage_that_raises_is_made_again_and_its_counters_survive(waits: list[float]) -> None:
    seen: list[str] = []

    def trouble(step: int) -> None:
        if step in (2, 3):
            raise ValueError("bad luck")

    worker = Worker("counting", lambda: Counting(trouble, seen))
    worker.start()
    until(lambda: seen.count("step") >= 6)
    assert well(worker)
    worker.stop()
    assert seen.count("made") == 3
    assert seen.count("closed") == 3
    counted = worker.counters()
    assert counted["stage_restarts", "counting"] == 2
    assert counted["steps",] == seen.count("step")
    assert waits[:2] == [1.0, 2.0]
    assert not well(worker)
    assert worker.stats() == {}


def test_trouble_that_stays_is_waited_for_longer_and_said(waits: list[float], caplog: pytest.LogCaptureFixture) -> None:
    def always(step: int) -> None:
        raise UnreachableError(Problem("broker", "is gone", "one that answers", "start it"))

    worker = Worker("counting", lambda: Counting(always, []))
    with caplog.at_level(logging.WARNING, "otelmon"):
        worker.start()
        until(lambda: len(waits) >= 8)
        assert not well(worker)
        assert worker.error == "broker: is gone; one that answers; start it"
        worker.stop()
    assert waits[:8] == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]
    assert "Traceback" not in caplog.text


def test_days_of_trouble_do_not_end_the_worker(waits: list[float]) -> None:
    def always(step: int) -> None:
        raise UnreachableError(Problem("broker", "is gone"))

    worker = Worker("counting", lambda: Counting(always, []))
    worker._failures = 5000
    worker.start()
    until(lambda: len(waits) >= 2)
    worker.stop()
    assert waits[:2] == [30.0, 30.0]


def test_a_bug_is_logged_as_one(waits: list[float], caplog: pytest.LogCaptureFixture) -> None:
    def once(step: int) -> None:
        if step == 1:
            raise KeyError

    seen: list[str] = []
    worker = Worker("counting", lambda: Counting(once, seen))
    with caplog.at_level(logging.WARNING, "otelmon"):
        worker.start()
        until(lambda: bool(waits) and worker.healthy)
        worker.stop()
    assert "this is a bug" in caplog.text
    assert "Traceback" in caplog.text


def test_a_stage_that_can_not_be_made_again_is_tried_again(waits: list[float]) -> None:
    made: list[int] = []
    seen: list[str] = []

    def fails_at_first(step: int) -> None:
        if step == 1:
            raise ValueError("bad luck")

    def make() -> Counting:
        made.append(1)
        if len(made) in (2, 3):
            raise UnreachableError(Problem("broker", "is gone"))
        return Counting(fails_at_first, seen)

    worker = Worker("counting", make)
    worker.start()
    until(lambda: len(made) >= 4 and worker.healthy)
    worker.stop()
    assert worker.counters()["stage_restarts", "counting"] == 3


def test_what_is_wrong_from_the_start_is_raised_by_the_start() -> None:
    def make() -> Counting:
        raise UnreachableError(Problem("broker", "is gone"))

    with pytest.raises(UnreachableError, match="is gone"):
        Worker("counting", make).start()


def test_stopping_finishes_the_step_in_hand() -> None:
    seen: list[str] = []
    inside, go_on = threading.Event(), threading.Event()

    def slow(step: int) -> None:
        inside.set()
        go_on.wait(PATIENCE_S)
        seen.append("finished")

    worker = Worker("counting", lambda: Counting(slow, seen))
    worker.start()
    assert worker.stats() == {"lag": 3}
    assert inside.wait(PATIENCE_S)
    stopping = threading.Thread(target=worker.stop)
    stopping.start()
    go_on.set()
    stopping.join(PATIENCE_S)
    assert seen[-2:] == ["finished", "closed"]


class Judging(Counting):
    """A stage that judges: it notes under which laws each step ran."""

    def __init__(self, trouble: Callable[[int], None], seen: list[str], ran: list[Laws | None]) -> None:
        super().__init__(trouble, seen)
        self._ran, self._heard = ran, Heard()
        self._laws: Laws | None = None

    def change_laws(self, laws: Laws) -> None:
        self._laws = laws

    def heard(self) -> Heard:
        return self._heard

    def step(self, timeout_s: float) -> None:
        laws = self._laws
        self._heard.raised[f"rule {self._seen.count('made')}"] = "ValueError: no"
        super().step(timeout_s)
        assert self._laws is laws, "the laws changed inside a step"
        self._ran.append(laws)


def test_laws_change_between_two_steps_and_the_last_ones_count(waits: list[float]) -> None:
    seen: list[str] = []
    ran: list[Laws | None] = []
    sets = [Laws(RuleSet({}, str(n))) for n in range(200)]
    worker = Worker("judging", lambda: Judging(lambda _: None, seen, ran))
    worker.start()
    for laws in sets:
        worker.change_laws(laws)
    until(lambda: bool(ran) and ran[-1] is sets[-1])
    worker.stop()
    assert worker.error is None
    order = [int(laws.rules.version) for laws in ran if laws is not None]
    assert order == sorted(order)


def test_what_a_stage_heard_outlives_it_and_one_that_does_not_judge_hears_nothing(waits: list[float]) -> None:
    seen: list[str] = []

    def trouble(step: int) -> None:
        if step == 2:
            raise ValueError("bad luck")

    worker = Worker("judging", lambda: Judging(trouble, seen, []))
    worker.start()
    until(lambda: set(worker.heard().raised) == {"rule 1", "rule 2"})
    worker.stop()
    assert set(worker.heard().raised) == {"rule 1", "rule 2"}
    other = Worker("counting", lambda: Counting(lambda _: None, []))
    other.start()
    other.change_laws(Laws(RuleSet({}, "x")))
    assert other.heard().raised == {}
    until(lambda: well(other))
    other.stop()
