"""What a stage heard from rules beside their findings, since it started: for doctor and the pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from otelmon.rules.suppress import Suppressed, name_of


class Heard:
    """`raised`: {rule id: what its check raised last, and where}. `matched`: names of the suppressions
    that kept something back. Bounded by the rules and suppressions. Used by one thread; read by others."""

    def __init__(self) -> None:
        self.raised: dict[str, str] = {}
        self.matched: set[str] = set()

    def hear(self, raised: Mapping[str, str], suppressed: Iterable[Suppressed]) -> None:
        """Remember what one judgement said."""
        self.raised.update(raised)
        self.matched.update(name_of(one.by) for one in suppressed)
