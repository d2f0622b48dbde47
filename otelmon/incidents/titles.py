"""The title of an incident: what a person reads first, at three in the morning."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

LONGEST = 160
NAMED = 3


class Member(msgspec.Struct, frozen=True):
    """Findings of one rule and severity in an incident; `summary` and `first_unix_nano` of the earliest."""

    rule_id: str
    level: int
    amount: int
    summary: str
    first_unix_nano: int


def title(members: Sequence[Member], tool: str, agent: str) -> str:
    """What happened (the summary of the gravest finding), to which tool, by which agent, how often."""
    lead = _lead(members)
    text = _one_line(lead.summary) or lead.rule_id
    where = [
        name for name in (tool, f"agent {agent}" if not agent.startswith("unknown ") else agent) if name not in text
    ]
    more = sum(member.amount for member in members) - 1
    tail = (": " + ", ".join(where) if where else "") + (f" (and {more} more)" if more else "")
    return _cut(text, LONGEST - len(tail)) + tail


def release_title(members: Sequence[Member], tools: Sequence[str], owner: str) -> str:
    """What happened to the gravest tool, whose it is, and which others it happened with."""
    lead = _lead(members)
    text = _one_line(lead.summary) or lead.rule_id
    others = [tool for tool in tools if tool not in text.split()]
    tail = "" if owner in text else f": {owner}"
    if others:
        more = f" (and {', '.join(others[:NAMED])}"
        tail += more + (f" and {len(others) - NAMED} more tools)" if len(others) > NAMED else ")")
    tail = _cut(tail, LONGEST - 40)
    return _cut(text, LONGEST - len(tail)) + tail


def _lead(members: Sequence[Member]) -> Member:
    """The gravest finding, the earliest of these."""
    return min(members, key=lambda member: (-member.level, member.first_unix_nano, member.rule_id, member.summary))


def _one_line(text: str) -> str:
    return " ".join(text.split()).rstrip(".:")


def _cut(text: str, limit: int) -> str:
    # A very long tool name must not leave nothing of what happened.
    limit = max(limit, 40)
    return text if len(text) <= limit else text[: limit - 1] + "…"
