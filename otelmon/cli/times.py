"""Times for people: UTC, to the second."""

from __future__ import annotations

from datetime import UTC, datetime

from otelmon.vocabulary.errors import Problem, UserError


def when(unix_nano: int) -> str:
    """`2026-11-30 08:15:02Z`; "-" for no time."""
    if not unix_nano:
        return "-"
    return datetime.fromtimestamp(unix_nano // 1_000_000_000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def nanos(text: str) -> int:
    """Nanoseconds of an ISO time; without a zone it is UTC. Raises UserError."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UserError(Problem(f"time {text}", "is not an ISO time", "for example 2026-11-30T08:00:00Z")) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1e9)
