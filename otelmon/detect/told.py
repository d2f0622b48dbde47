"""Which histories of the ledger have news, and what was last said of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from otelmon.detect.emission import digest
from otelmon.vocabulary.finding import Finding
from otelmon.vocabulary.messages import Verdict

Where = tuple[int, str]  # partition, key of the history
Judged = tuple[Sequence[Finding], int]  # findings, and the time of the newest entry


class Told:
    """Says a verdict when it changed, and after a restart in any case: the news that came again may be
    those whose verdict was never sent."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._said: dict[Where, bytes] = {}
        self._dirty: dict[Where, None] = {}
        self._to_say: set[Where] = set()  # whether or not it looks changed
        self._restored: set[Where] = set()

    def restored(self, where: Where) -> None:
        """A history came back from the topic."""
        self._restored.add(where)
        self._dirty[where] = None

    def news(self, where: Where, withdrawn: bool = False) -> None:
        """A history has news."""
        if where in self._restored or withdrawn:
            self._restored.discard(where)
            self._to_say.add(where)
        self._dirty[where] = None

    def verdicts(self, judge: Callable[[Where], Judged]) -> list[Verdict]:
        """Verdicts of the histories with news, when they changed."""
        verdicts = []
        for where in self._dirty:
            found, observed = judge(where)
            findings = tuple(found)
            said = digest(findings)
            if where in self._to_say or self._said.get(where, digest(())) != said:
                self._said[where] = said
                owner = f"{self._prefix}:{where[1]}"
                verdicts.append(Verdict(owner=owner, epoch=1, findings=findings, observed_unix_nano=observed))
        self._dirty.clear()
        self._to_say.clear()
        return verdicts

    def forget(self, where: Where) -> None:
        """The history is gone: nothing more is said of it, and nothing taken back."""
        self._said.pop(where, None)
        self._restored.discard(where)

    def drop(self, where: Where) -> None:
        """Another ledger owns the history now."""
        self.forget(where)
        self._dirty.pop(where, None)
        self._to_say.discard(where)
