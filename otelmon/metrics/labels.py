"""Label values are bounded: data must never decide how many series there are."""

from __future__ import annotations

OVERFLOW = "overflow"
OTHER = "other"
LIMITS = {"agent": (50, OVERFLOW), "tool": (200, OTHER), "dialect": (60, OTHER), "reason": (60, OTHER)}


class Labels:
    """Remembers the first values of each open label; later ones share one name."""

    def __init__(self) -> None:
        self._seen: dict[str, set[str]] = {name: set() for name in LIMITS}

    def bound(self, name: str, value: str) -> str:
        """The value to show for this label."""
        if name not in LIMITS:
            return value
        limit, rest = LIMITS[name]
        seen = self._seen[name]
        if value in seen:
            return value
        if len(seen) >= limit or not value.isprintable() or len(value) > 100:
            return rest
        seen.add(value)
        return value
