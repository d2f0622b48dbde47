"""How well changes of tools are seen: labelled changes one by one, and releases through the whole product.

A file holds changes (`before`, `after`, `labels`) or the tools of releases (`tag`, `date`, `tools`).
"""

from __future__ import annotations

import gzip
import tempfile
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from otelmon.app.bench.quality_table import Table, rate
from otelmon.app.laws import load_laws
from otelmon.app.offline import Checker
from otelmon.bus.protocol import Delivered
from otelmon.checks.lib.drift import Changes, compare
from otelmon.detect.engine import Laws
from otelmon.incidents.grouping import Grouping
from otelmon.receive.files import World
from otelmon.rules.model import RuleSet
from otelmon.store import queries
from otelmon.store.database import Database
from otelmon.store.writer import StoreWriter
from otelmon.vocabulary.canonical import canonical
from otelmon.vocabulary.catalogue import Tool
from otelmon.vocabulary.config import Config
from otelmon.vocabulary.finding import Finding
from otelmon.vocabulary.messages import RECORDS, Verdict, encode

RULE = "tool_drift"
CHANGES, RELEASES = "Changes of tools", "Releases of a server with changed tools"
FORM = "format_only"
ANNOTATIONS = frozenset(("annotations_changed", "readonly_hint_changed"))
ROOM = frozenset(("tool_added", "tool_removed", "param_added_optional", "required_relaxed"))
EITHER = frozenset(("param_enum_changed", "param_other_changed"))
SECOND = 1_000_000_000


def drift_tables(paths: Sequence[Path]) -> list[Table]:
    """Tables over files of labelled changes and of releases, in their order. Deterministic."""
    changes, releases = [], []
    for path in paths:
        records = list(_records(path))
        if records and "tools" in records[0]:
            releases.append((path.name.split(".")[0], records))
        elif records:
            changes.append((path.name.split(".")[0], records))
    made = [_changes(changes), _labels(changes), _releases(releases)]
    return [table for table in made if table.rows]


def _records(path: Path) -> Iterator[dict[str, Any]]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as lines:
        for line in lines:
            yield msgspec.json.decode(line)


# -- changes, one by one ------------------------------------------------------------------------
def _changes(sets: Sequence[tuple[str, list[dict[str, Any]]]]) -> Table:
    rows: list[tuple[str, ...]] = []
    for name, records in sets:
        for group in ("breaking", "text only", "annotations only", "more room or other bounds", "form only"):
            found = [_compared(record) for record in records if _group(record["labels"]) == group]
            told = sum(bool(one) for one in found)
            classes = [
                sum(one.worst == of for one in found) for of in ("breaking", "text", "annotations", "compatible")
            ]
            rows.append((name, group, str(len(found)), str(told), rate(told, len(found)), *map(str, classes)))
    columns = ("data set", "changes by label", "number", "told of", "share", "as breaking", "as text", "as annotations", "as more room")  # fmt: skip
    return Table(CHANGES, columns, tuple(rows))


def _labels(sets: Sequence[tuple[str, list[dict[str, Any]]]]) -> Table:
    rows: list[tuple[str, ...]] = []
    for name, records in sets:
        for label in sorted({label for record in records for label in record["labels"]["changes"]}):
            found = [_compared(record) for record in records if label in record["labels"]["changes"]]
            told = sum(bool(one) for one in found)
            rows.append((name, label.replace("_", " "), str(len(found)), str(told), str(len(found) - told)))
    columns = ("data set", "label", "number", "told of", "not told of")
    return Table("Changes of tools by each label", columns, tuple(rows), folded=True)


def _group(labels: dict[str, Any]) -> str:
    kinds = set(labels["changes"])
    if kinds == {FORM}:
        return "form only"
    if labels["breaking"]:
        return "breaking"
    if kinds <= ANNOTATIONS:
        return "annotations only"
    return "text only" if labels["text_only"] else "more room or other bounds"


def _compared(record: dict[str, Any]) -> Changes:
    return compare(_tool(record["before"]), _tool(record["after"]))


def _tool(data: dict[str, Any] | None) -> Tool | None:
    return None if data is None else msgspec.convert(data, Tool)


# -- releases, through the product --------------------------------------------------------------
def _releases(sets: Sequence[tuple[str, list[dict[str, Any]]]]) -> Table:
    rows: list[tuple[str, ...]] = []
    for name, records in sets:
        amounts = _incidents_by_release(records)
        groups = _release_groups(records)
        for group in dict.fromkeys(GROUPS):
            mine = [amount for amount, its in zip(amounts, groups, strict=True) if its == group]
            counts = (sum(n == 1 for n in mine), sum(n > 1 for n in mine), sum(n == 0 for n in mine))
            rows.append((name, group, str(len(mine)), *map(str, counts)))
    columns = ("data set", "what a release does", "releases", "one incident", "several", "none")
    return Table(RELEASES, columns, tuple(rows))


GROUPS = (
    "breaks calls, changes texts or annotations",
    "the same, back to definitions seen before",
    "changes other bounds",
    "adds or removes",
    "nothing, or form only",
)


def _release_groups(records: Sequence[dict[str, Any]]) -> list[str]:
    seen: set[bytes] = set()
    groups = []
    for record in records:
        now = {canonical(tool) for tool in record["tools"]}
        kinds = {kind for kind in record["diff_to_prev"] if kind not in (FORM, "tools_changed")}
        grave = kinds - ROOM - EITHER
        known = {msgspec.json.decode(one)["name"] for one in seen}
        fresh = any(msgspec.json.decode(one)["name"] in known for one in now - seen)
        seen |= now
        groups.append(GROUPS[(0 if fresh else 1) if grave else 2 if kinds & EITHER else 3 if kinds else 4])
    return groups


def _incidents_by_release(records: Sequence[dict[str, Any]]) -> list[int]:
    """How many incidents opened after each release and before the next one."""
    times = [_time(record) for record in records]
    amounts = [0] * len(records)
    for opened in _opened(_findings(records)):
        amounts[bisect_right(times, opened) - 1] += 1
    return amounts


def _time(record: dict[str, Any]) -> int:
    return int(datetime.fromisoformat(record["date"]).timestamp()) * SECOND


def _findings(records: Sequence[dict[str, Any]]) -> list[Finding]:
    """What the rule finds when one run shows the tools of each release, in no order."""
    laws = load_laws(Config())
    rule = laws.rules.rules[RULE]
    checker = Checker(Laws(RuleSet({RULE: rule}, rule.version)), Config())
    for record in reversed(records):
        checker.add(World(record["tag"], transcript=_conversation(record)))
    return checker.finish().findings


def _conversation(record: dict[str, Any]) -> dict[str, Any]:
    """One run of an agent that is shown the tools of a release."""
    said = {"content": "Hello.", "timestamp": record["date"]}
    return {
        "id": record["tag"],
        "service": "agent",
        "tools": [{**tool, "server": "server"} for tool in record["tools"]],
        "messages": [{"role": "user", **said}, {"role": "assistant", **said}],
    }


def _opened(findings: Sequence[Finding]) -> list[int]:
    """When incidents opened that the store makes of the findings."""
    config = Config()
    verdict = Verdict(owner="tool:bench", epoch=1, findings=tuple(findings), observed_unix_nano=1)
    message = Delivered(RECORDS, 0, 0, verdict.owner, encode(verdict), 1)
    with tempfile.TemporaryDirectory() as folder, Database.open(Path(folder) / "bench.duckdb") as database:
        StoreWriter(database, Grouping(config.incidents)).write([message])
        with database.read() as cursor:
            return sorted(incident.opened_unix_nano for incident in queries.incidents(cursor).incidents)
