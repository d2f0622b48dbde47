"""Whether a tool is taken for what it is: our word for its effect, against what its calls did and its makers say.

Truth by tool: a tool of which some call changed something by the replay is a write; one that never did, and
whose makers describe it as giving something back, is a read; of others nothing is known. A call that changed
something although its tool gives something back (opening mail marks it as read) is a read that the environment
counts: it is shown apart, and is in no share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from otelmon.app.bench.quality_runs import CallEffect, JudgedRun
from otelmon.app.bench.quality_table import Table, by_set, rate

Counts = tuple[int, int]
OF_CALLS = (
    "Our word for the effect of a call that changed something by the replay. Reads that the environment counts: calls"
    " that changed something, of tools whose makers describe them as giving something back; they are in no share."
)
OF_TOOLS = (
    "A tool is a write when one of its calls changed something, or its makers say so; a read when its makers say so, or"
    " none of its calls changed anything and its description gives something back. Every write called a read is"
    " counted, destructive or not."
)


def word_of(effect: str) -> str:
    """`read`, `unknown`, or `write` for everything that changes something."""
    return effect if effect in ("read", "unknown") else "write"


def effect_tables(runs: Sequence[JudgedRun]) -> list[Table]:
    """The tables by call and by tool."""
    return [_by_call(runs), _by_tool(runs)]


def calls_right(runs: Iterable[JudgedRun]) -> Counts:
    """(calls that changed something and are called a write, calls that changed something)."""
    words = Counter(word_of(c.word) for run in runs for c in run.effects if c.changed and not c.counted_read)
    return words["write"], words.total()


def tools_right(runs: Iterable[JudgedRun]) -> Counts:
    """(tools called what they are, tools of which it is known what they are)."""
    kinds = _kinds(runs)
    return sum(word == ("write" if writes else "read") for _, writes, word in kinds), len(kinds)


def writes_called_read(runs: Iterable[JudgedRun]) -> list[str]:
    """The writing tools that are called reads."""
    return sorted({tool for tool, writes, word in _kinds(runs) if writes and word == "read"})


def _by_call(runs: Sequence[JudgedRun]) -> Table:
    rows: list[tuple[str, ...]] = []
    for name, mine in by_set(runs):
        calls = [call for run in mine for call in run.effects]
        if not calls:
            continue
        words = Counter(word_of(c.word) for c in calls if c.changed and not c.counted_read)
        counted = sum(c.changed and c.counted_read for c in calls)
        plain = Counter(word_of(c.word) for c in calls if not c.changed and not c.error and c.gives)
        rows.append((
            name, *map(str, (words.total(), words["write"], words["read"], words["unknown"])),
            rate(*calls_right(mine)), str(counted), f"{plain['read']} of {plain.total()}",
        ))  # fmt: skip
    columns = ("data set", "calls that changed something", "called a write", "called a read", "unknown", "share",
               "reads that the environment counts", "calls that only gave something, called a read")  # fmt: skip
    return Table("Calls, and our word for their effect", columns, tuple(rows), OF_CALLS)


def _by_tool(runs: Sequence[JudgedRun]) -> Table:
    rows: list[tuple[str, ...]] = []
    for name, mine in by_set(runs):
        kinds = _kinds(mine)
        if not kinds:
            continue
        seen = Counter((writes, word) for _, writes, word in kinds)
        reads, writes = (sum(n for (kind, _), n in seen.items() if kind is wanted) for wanted in (False, True))
        unsure = ", ".join(sorted({tool for tool, writes, word in kinds if word != ("write" if writes else "read")}))
        rows.append((name, *map(str, (reads, seen[False, "read"], seen[False, "write"], seen[False, "unknown"], writes,
                     seen[True, "write"], seen[True, "read"], seen[True, "unknown"])), rate(*tools_right(mine)),
                     unsure or "–"))  # fmt: skip
    columns = ("data set", "reads", "called read", "called write", "unknown", "writes", "called write", "called read",
               "unknown", "right", "the others")  # fmt: skip
    return Table("Tools, and our word from the name alone", columns, tuple(rows), OF_TOOLS)


def _kinds(runs: Iterable[JudgedRun]) -> list[tuple[str, bool, str]]:
    """(tool, writes, our word), once a domain and tool. What makers declare stands above what calls did."""
    runs = list(runs)
    declared = {(run.domain, tool): (writes, word_of(word)) for run in runs for tool, writes, word in run.declared}
    seen = {key: found for key, found in _by_calls(runs) if key not in declared}
    return [(tool, writes, word) for (_, tool), (writes, word) in sorted((declared | seen).items())]


def _by_calls(runs: Iterable[JudgedRun]) -> Iterator[tuple[tuple[str, str], tuple[bool, str]]]:
    calls: dict[str, list[CallEffect]] = {}
    for run in runs:
        for call in run.effects:
            calls.setdefault(call.tool, []).append(call)
    for tool, some in calls.items():
        changed = any(call.changed and not call.counted_read for call in some)
        gives = any(call.gives for call in some)
        if changed or (gives and any(not call.error for call in some)):
            yield ("", tool), (changed, word_of(some[0].by_name))
