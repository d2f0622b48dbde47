"""Times for people: UTC, to the second."""

from __future__ import annotations

from datetime import UTC, datetime


def when(unix_nano: int) -> str:
    """`2026-11-30 08:15:02Z`; "-" for no time."""
    if not unix_nano:
        return "-"
    return datetime.fromtimestamp(unix_nano // 1_000_000_000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
