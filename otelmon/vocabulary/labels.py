"""Label values of metrics are bounded: data must never decide how many series there are."""

from __future__ import annotations

from collections.abc import Sequence

OVERFLOW = "overflow"
OTHER = "other"
LIMITS = {"agent": (50, OVERFLOW), "tool": (200, OTHER), "dialect": (60, OTHER), "reason": (60, OTHER)}
"""Labels whose values come from data: how many are shown, and what the later ones are called."""
MAX_SERIES = 2_000
"""Series of one metric in which values of LIMITS are combined; later combinations share one."""
MAX_CHARACTERS = 100


class Labels:
    """Remembers the first values of each open label and their first combinations of each metric."""

    def __init__(self) -> None:
        self._seen: dict[str, set[str]] = {name: set() for name in LIMITS}
        self._known: dict[str, set[tuple[str, ...]]] = {}

    def bound(self, metric: str, names: Sequence[str], values: Sequence[str]) -> tuple[str, ...]:
        """The label values to count under; `names` are those of the labels, in the order of `values`."""
        shown = tuple(self._value(name, value) for name, value in zip(names, values, strict=True))
        if LIMITS.keys().isdisjoint(names):
            return shown
        known = self._known.setdefault(metric, set())
        if shown in known or len(known) < MAX_SERIES:
            known.add(shown)
            return shown
        return tuple(LIMITS[name][1] if name in LIMITS else value for name, value in zip(names, shown, strict=True))

    def _value(self, name: str, value: str) -> str:
        if name not in LIMITS:
            return value
        limit, rest = LIMITS[name]
        seen = self._seen[name]
        if value in seen:
            return value
        if len(seen) >= limit or len(value) > MAX_CHARACTERS or not value.isprintable():
            return rest
        seen.add(value)
        return value
