"""Findings that the operator knows and accepts for a while."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime

import msgspec

from otelmon.vocabulary.config import Suppression
from otelmon.vocabulary.finding import Finding

FIELDS = {"agent": "agent_name", "tool": "tool_name", "environment": "environment", "service": "service_name"}


class Suppressed(msgspec.Struct, frozen=True):
    """A finding that is not reported, and why."""

    finding: Finding
    by: Suppression

    @property
    def reason(self) -> str:
        """Why the operator accepts it."""
        return self.by.reason


def split(findings: Iterable[Finding], suppress: Sequence[Suppression]) -> tuple[list[Finding], list[Suppressed]]:
    """Findings to report, and those that a suppression covers.

    Whether a suppression still holds is decided by the time of the event, never by a clock, so a
    replay gives the same answer."""
    kept: list[Finding] = []
    gone: list[Suppressed] = []
    for finding in findings:
        by = next((s for s in suppress if covers(s, finding)), None)
        if by is None:
            kept.append(finding)
        else:
            gone.append(Suppressed(finding, by))
    return kept, gone


def covers(suppression: Suppression, finding: Finding) -> bool:
    """True when the suppression names this finding and its last day is not before the event."""
    if suppression.rule not in ("*", finding.rule_id):
        return False
    if any(getattr(finding, FIELDS[field]) != value for field, value in suppression.where.items()):
        return False
    happened = datetime.fromtimestamp(finding.event_time_unix_nano // 1_000_000_000, UTC).date()
    return happened <= date.fromisoformat(suppression.expires)


def name_of(suppression: Suppression) -> str:
    """What tells one suppression from another."""
    return msgspec.json.encode(suppression, order="sorted").decode()
