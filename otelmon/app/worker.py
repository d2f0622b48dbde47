"""Run stages in threads: one loop a stage, that outlives trouble and can be asked how it is."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from otelmon.detect.engine import Laws
from otelmon.detect.heard import Heard
from otelmon.vocabulary.errors import OtelmonError

log = logging.getLogger("otelmon")
POLL_SECONDS = 0.2
LONGEST_WAIT = 30.0


class Stage(Protocol):
    """What a worker runs. `step` takes what has arrived and returns; it may raise."""

    name: str

    @property
    def counters(self) -> Counter[tuple[str, ...]]: ...

    def step(self, timeout_s: float) -> None: ...

    def stats(self) -> dict[str, int]: ...

    def close(self) -> None: ...


@runtime_checkable
class Judges(Protocol):
    """A stage that judges by laws."""

    def heard(self) -> Heard: ...

    def change_laws(self, laws: Laws) -> None: ...


class Worker:
    """A stage in a thread of its own. When a step fails the stage is closed and made again from
    what is durable, after a wait that doubles up to half a minute: everything is at least once, so
    starting again loses nothing and counts nothing twice."""

    def __init__(self, name: str, make: Callable[[], Stage]) -> None:
        self.name = name
        self._make = make
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"otelmon-{name}", daemon=True)
        self._failures = 0
        self._restarts: Counter[tuple[str, ...]] = Counter()
        self._past: Counter[tuple[str, ...]] = Counter()
        self._laws: Laws | None = None  # those to judge by, and those the stage was given last
        self._given: Laws | None = None
        self._heard = Heard()
        self.stage: Stage | None = None
        self.error: str | None = None

    def start(self) -> None:
        """The first stage is made here, so that what is wrong from the start is said at once."""
        self.stage = self._make()
        self._thread.start()

    def stop(self, timeout_s: float = 20.0) -> None:
        """Finish the step in hand, publish, commit, leave."""
        self._stop.set()
        self._thread.join(timeout_s)

    def heard(self) -> Heard:
        """What the rules of the stage said beside their findings, over restarts of the stage."""
        stage = self.stage
        if stage is not None and isinstance(stage, Judges):
            said = stage.heard()
            self._heard.raised.update(said.raised)
            self._heard.matched.update(said.matched)
        return self._heard

    def change_laws(self, laws: Laws) -> None:
        """Let the stage judge by other laws from its next step on, if it judges. May be called by any
        thread: the stage's own one takes them between two steps, so that no step sees two sets."""
        self._laws = laws

    @property
    def healthy(self) -> bool:
        return self._thread.is_alive() and self.error is None

    def counters(self) -> Counter[tuple[str, ...]]:
        """All that was counted since the start, over restarts of the stage."""
        total = Counter(self._past)
        total.update(self._restarts)
        if self.stage is not None:
            total.update(self.stage.counters.copy())
        return total

    def stats(self) -> dict[str, int]:
        return self.stage.stats() if self.stage is not None else {}

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                if self.stage is None:
                    self.stage = self._make()
                self._take_laws(self.stage)
                self.stage.step(POLL_SECONDS)
                self._failures, self.error = 0, None
            except Exception as error:  # noqa: BLE001 - a stage must outlive whatever one step met
                self._recover(error)
        self._close()

    def _take_laws(self, stage: Stage) -> None:
        laws = self._laws
        if laws is not None and laws is not self._given and isinstance(stage, Judges):
            stage.change_laws(laws)
        self._given = laws

    def _recover(self, error: Exception) -> None:
        self._failures += 1
        wait = min(LONGEST_WAIT, 0.5 * 2 ** min(self._failures, 10))
        self.error = str(error) or type(error).__name__
        self._restarts["stage_restarts", self.name] += 1
        if isinstance(error, OtelmonError):
            log.warning("%s: %s; trying again in %.0f s", self.name, self.error, wait)
        else:
            log.exception("%s failed; this is a bug; starting it again in %.0f s", self.name, wait)
        self._close()
        self._stop.wait(wait)

    def _close(self) -> None:
        self.heard()  # what is not asked for now is gone with the stage
        stage, self.stage = self.stage, None
        if stage is None:
            return
        self._past.update(stage.counters)
        try:
            stage.close()
        except Exception as error:  # noqa: BLE001 - leaving is best effort: what is durable stays durable
            log.warning("%s did not close cleanly: %s", self.name, error)
