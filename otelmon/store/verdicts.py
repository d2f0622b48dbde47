"""Findings from verdicts: a verdict replaces what was found for its owner.

Verdicts are folded one after the other in memory, so that a batch cut elsewhere gives the same rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from duckdb import DuckDBPyConnection

from otelmon.store.sqlfiles import sql
from otelmon.store.tables import Row, replace
from otelmon.vocabulary.finding import Finding
from otelmon.vocabulary.messages import Verdict

ChangeKind = Literal["new", "updated", "retracted", "restored"]


class Change(msgspec.Struct, frozen=True):
    """What a verdict changed in what people see of one finding. `observed_unix_nano` is the verdict's."""

    kind: ChangeKind
    finding: Finding
    observed_unix_nano: int


class FindingRow(msgspec.Struct):
    """A finding as one owner says it."""

    finding: Finding
    owner: str
    first_seen_unix_nano: int
    retracted_unix_nano: int | None = None
    shown: bool = True


def write_verdicts(connection: DuckDBPyConnection, verdicts: Sequence[Verdict]) -> list[Change]:
    """Bring the findings of the verdicts' owners up to date; returns what changed, in order."""
    fold = _Fold(_load(connection, verdicts))
    changes: list[Change] = []
    for verdict in verdicts:
        changes += fold.apply(verdict)
    rows = [_row(row) for finding_id in sorted(fold.touched) for _, row in sorted(fold.by_id[finding_id].items())]
    replace(connection, "findings", "finding_id", fold.touched, rows)
    return changes


class _Fold:
    def __init__(self, rows: list[FindingRow]) -> None:
        self.by_id: dict[str, dict[str, FindingRow]] = defaultdict(dict)
        self.by_owner: dict[str, set[str]] = defaultdict(set)
        self.touched: set[str] = set()
        for row in rows:
            self._put(row)

    def _put(self, row: FindingRow) -> None:
        self.by_id[row.finding.finding_id][row.owner] = row
        self.by_owner[row.owner].add(row.finding.finding_id)

    def apply(self, verdict: Verdict) -> list[Change]:
        listed = {finding.finding_id: finding for finding in verdict.findings}
        changes = []
        for finding_id in sorted(self.by_owner[verdict.owner] | listed.keys()):
            before = self._spoken(finding_id)
            if self._apply_one(verdict, finding_id, listed.get(finding_id)):
                self.touched.add(finding_id)
                change = _change(before, self._show(finding_id), verdict.observed_unix_nano)
                if change:
                    changes.append(change)
        return changes

    def _apply_one(self, verdict: Verdict, finding_id: str, listed: Finding | None) -> bool:
        """True when the row of this owner changed."""
        row = self.by_id[finding_id].get(verdict.owner)
        observed = verdict.observed_unix_nano
        if listed is None:
            if row is None or row.finding.status == "retracted":
                return False
            row.finding = msgspec.structs.replace(row.finding, status="retracted")
            row.retracted_unix_nano = observed
            return True
        if row is None:
            row = FindingRow(listed, verdict.owner, observed, observed if listed.status == "retracted" else None)
            self._put(row)
            return True
        if row.finding == listed:
            return False
        if listed.status == "open":
            row.retracted_unix_nano = None
        elif row.finding.status == "open":
            row.retracted_unix_nano = observed
        row.finding = listed
        return True

    def _spoken(self, finding_id: str) -> Finding | None:
        """What people see of the finding: an open row before a retracted one, then by owner."""
        rows = self.by_id[finding_id].values()
        return min(rows, key=_precedence).finding if rows else None

    def _show(self, finding_id: str) -> Finding:
        rows = sorted(self.by_id[finding_id].values(), key=_precedence)
        for row in rows:
            row.shown = row is rows[0]
        return rows[0].finding


def _precedence(row: FindingRow) -> tuple[bool, str]:
    return row.finding.status != "open", row.owner


def _change(before: Finding | None, after: Finding, observed: int) -> Change | None:
    is_open = after.status == "open"
    if before == after or (before is None and not is_open):
        return None
    kind: ChangeKind = "new"
    if before is not None:
        was_open = before.status == "open"
        kind = "updated" if was_open == is_open else "restored" if is_open else "retracted"
    return Change(kind, after, observed)


def _load(connection: DuckDBPyConnection, verdicts: Sequence[Verdict]) -> list[FindingRow]:
    if not verdicts:
        return []
    owners = sorted({verdict.owner for verdict in verdicts})
    listed = sorted({finding.finding_id for verdict in verdicts for finding in verdict.findings})
    rows = connection.execute(sql("writer.findings_of"), [owners, listed]).fetchall()
    return [finding_row(row) for row in rows]


def finding_row(row: Sequence[Any]) -> FindingRow:
    """A FindingRow from a row of the findings table, columns in order."""
    finding_id, owner, shown, *middle, evidence, event_time, first_seen, retracted = row
    return FindingRow(finding_from([finding_id, *middle, evidence, event_time]), owner, first_seen, retracted, shown)


def finding_from(row: Sequence[Any]) -> Finding:
    """A Finding from the columns of FINDING_COLUMNS."""
    values = dict(zip(FINDING_COLUMNS, row, strict=True))
    values["span_ids"] = tuple(values["span_ids"])
    values["evidence"] = msgspec.json.decode(values["evidence"])
    return Finding(**values)


FINDING_COLUMNS = Finding.__struct_fields__


def _row(row: FindingRow) -> Row:
    values = [getattr(row.finding, name) for name in FINDING_COLUMNS]
    evidence = FINDING_COLUMNS.index("evidence")
    values[evidence] = msgspec.json.encode(values[evidence]).decode()
    values[FINDING_COLUMNS.index("span_ids")] = list(row.finding.span_ids)
    return (values[0], row.owner, row.shown, *values[1:], row.first_seen_unix_nano, row.retracted_unix_nano)
