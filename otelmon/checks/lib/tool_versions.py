"""From the definitions a conversation shows to what the ledger keeps of a tool's history."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from otelmon.checks.lib.drift import compare, version_hash
from otelmon.vocabulary.canonical import short_hash
from otelmon.vocabulary.catalogue import Catalogue, Tool
from otelmon.vocabulary.event import Run, Timeline, ToolDefinition
from otelmon.vocabulary.messages import ToolVersion

Seen = dict[tuple[str, str], ToolVersion]
Hashes = dict[tuple[str, str | None, str, str], str]


def tool_versions(timeline: Timeline, hashes: Hashes | None = None) -> list[ToolVersion]:
    """Every version of a tool that the conversation shows, at its first sight. `hashes`, when given, keeps
    the version of definitions known by their hashes, so that they are not looked at again.

    A span that shows two tools of one name and says no server leaves open which is which: neither counts.
    """
    runs = {run.run_id: run for run in timeline.runs}
    found: Seen = {}
    at_span: dict[tuple[str, str, str], str] = {}
    torn: set[tuple[str, str]] = set()
    for event in timeline.events:
        if not isinstance(event, ToolDefinition) or not _says_anything(event):
            continue
        one = _version(event, runs[event.run_id], timeline.conversation_id, hashes)
        if at_span.setdefault((one.trace_id, one.span_id, one.tool_key), one.version) != one.version:
            torn.add((one.trace_id, one.tool_key))
        first = found.get((one.tool_key, one.version))
        if first is None or order(one) < order(first):
            found[one.tool_key, one.version] = one
    return [one for one in found.values() if (one.trace_id, one.tool_key) not in torn]


def order(one: ToolVersion) -> tuple[int, str, str]:
    """Sorts versions by first sight."""
    return (one.start_time_unix_nano, one.trace_id, one.span_id)


def in_order(versions: Iterable[ToolVersion]) -> tuple[ToolVersion, ...]:
    """Each version once, at its first sight, oldest first."""
    first: dict[str, ToolVersion] = {}
    for one in sorted(versions, key=order):
        first.setdefault(one.version, one)
    return tuple(first.values())


def with_approved(versions: Iterable[ToolVersion], catalogue: Catalogue | None) -> tuple[ToolVersion, ...]:
    """The versions of one tool in order, those marked that say what the operator's catalogue says. When nobody
    serves that, it stands first: what runs show is a change of what was committed."""
    ordered = in_order(versions)
    mine = _committed(ordered[0], catalogue) if ordered and catalogue else None
    if mine is None:
        return ordered
    marked = tuple(msgspec.structs.replace(one, approved=not compare(mine, one, partial=True)) for one in ordered)
    if any(one.approved for one in marked):
        return marked
    first = msgspec.structs.replace(
        ordered[0],
        version=version_hash(mine),
        description=mine.description,
        input_schema=mine.input_schema,
        annotations=mine.annotations,
        trace_id="",
        start_time_unix_nano=0,
        approved=True,
    )
    return (first, *marked)


def _committed(one: ToolVersion, catalogue: Catalogue) -> Tool | None:
    """The operator's entry of the tool, when it says more than its name."""
    same = (tool for tool in catalogue.tools if tool.name == one.name and tool.server in (None, one.server))
    return next((tool for tool in same if _says_anything(tool)), None)


def _says_anything(one: ToolDefinition | Tool) -> bool:
    return bool(one.description) or one.input_schema is not None or one.annotations is not None


def _version(event: ToolDefinition, run: Run, conversation_id: str, hashes: Hashes | None) -> ToolVersion:
    return ToolVersion(
        tool_key=_key(event, run),
        version=_hash(event, hashes),
        name=event.name,
        server=event.server,
        description=event.description,
        input_schema=event.input_schema,
        annotations=event.annotations,
        trace_id=event.trace_id,
        span_id=event.span_id,
        run_id=event.run_id,
        conversation_id=conversation_id,
        agent_name=event.agent_name or run.agent_name,
        agent_version=run.agent_version,
        service_name=run.service_name,
        service_namespace=run.service_namespace,
        environment=run.environment,
        start_time_unix_nano=event.start_time_unix_nano,
    )


def _key(event: ToolDefinition, run: Run) -> str:
    """One tool is one name of one server; where no server is known, of one agent. What single calls show of
    their own tool is often shorter than what the model is shown, and other instrumentations word the same
    definition otherwise: each is a history of its own."""
    owner = ("server", event.server) if event.server else ("agent", run.service_name, event.agent_name or run.agent_name or "")  # fmt: skip
    shown = "call" if event.of_call else "model"
    shown_by = (shown, *sorted(run.dialects))
    return short_hash("tool", run.environment, run.service_namespace, *owner, *shown_by, event.name)


def _hash(event: ToolDefinition, hashes: Hashes | None) -> str:
    if hashes is None or not event.definition_hash:
        return version_hash(event)
    mark = (event.name, event.server, event.definition_hash, event.schema_hash)
    found = hashes.get(mark)
    if found is None:
        found = hashes[mark] = version_hash(event)
    return found
