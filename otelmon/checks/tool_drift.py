"""A tool that is not what it was: its definition changed between two runs, or within one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from otelmon.checks.lib.drift import compare
from otelmon.checks.registry import check
from otelmon.vocabulary.finding import Evidence, Severity
from otelmon.vocabulary.messages import ToolVersion

DAY = 86_400_000_000_000


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`versions_a_day`: a tool with more new versions than this within a day has no fixed definition (it is made
    anew for each run, with a date or a user's own values in it), which is said once."""

    versions_a_day: int = 6


@check(on="tool")
def tool_drift(versions: tuple[ToolVersion, ...], params: Params) -> Iterator[Evidence]:
    """A tool of one server (or, where no server is known, of one agent) is defined otherwise than before:
    its description, its schema or its annotations. Versions are compared in the order in which they were
    first seen, so that two versions served side by side during a release are one change. What the operator's
    catalogue says is no change; where nobody serves that, what is served is one.

    Why it matters: calls that were right are refused or do something else; and a description that changes
    after it was reviewed is how a server takes over the agents that trusted it.
    """
    made_anew = _made_anew(versions, params.versions_a_day)
    if made_anew:
        first = versions[min(made_anew)]
        yield _evidence(first, f"{first.name} has no fixed definition: it changes more than {params.versions_a_day} times a day", "low", {})  # fmt: skip
    known: ToolVersion | None = None
    for number, version in enumerate(versions):
        before, known = known, _laid_over(known, version)
        if before is None or version.approved or number in made_anew:
            continue
        changes = compare(before, version, partial=True)
        if changes:
            details = {
                "server": version.server,
                "class": changes.worst,
                "changes": changes.facts(),
                "before": {"version": before.version, "first_seen_unix_nano": before.start_time_unix_nano, "trace_id": before.trace_id},
                "after": {"version": version.version, "first_seen_unix_nano": version.start_time_unix_nano, "agent_version": version.agent_version},
            }  # fmt: skip
            said = "changed" if before.trace_id else "is not what the catalogue says"
            yield _evidence(version, f"{version.name} {said}: {changes.words()}", changes.severity, details)


def _evidence(version: ToolVersion, summary: str, severity: Severity, details: dict[str, Any]) -> Evidence:
    return Evidence(
        summary=summary,
        anchor=f"tool:{version.name}",
        key=version.key,
        span_ids=(version.span_id,),
        severity=severity,
        details=details,
    )


def _laid_over(known: ToolVersion | None, version: ToolVersion) -> ToolVersion:
    """What is known of the tool now: parts that this version does not show are those of the one before."""
    if known is None:
        return version
    return msgspec.structs.replace(
        version,
        description=version.description or known.description,
        input_schema=known.input_schema if version.input_schema is None else version.input_schema,
        annotations=version.annotations or known.annotations,
    )


def _made_anew(versions: Sequence[ToolVersion], most: int) -> set[int]:
    """Places of the versions that came among more than `most` new ones within a day. The first is not new."""
    found: set[int] = set()
    times = [version.start_time_unix_nano for version in versions]
    for start in range(1, len(times) - most):
        if times[start + most] - times[start] <= DAY:
            found.update(range(start, start + most + 1))
    return found
