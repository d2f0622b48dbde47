"""Statements that somebody read and judged by hand, against what the rules on claims say of the same messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from otelmon.app.bench.quality_runs import JudgedRun
from otelmon.app.bench.quality_table import Table, rate
from otelmon.vocabulary.errors import Problem, UserError

RULES = frozenset(("false_success", "unsupported_claim"))
CAPTION = (
    "One reader judged these messages. Found: a finding of `false_success` or `unsupported_claim` points at this very"
    " message. Not every false statement of these runs was read."
)


class Statement(msgspec.Struct, frozen=True):
    """A message of a run (its place among all messages), and whether it claims what never happened."""

    run_id: str
    message: int
    false: bool


def is_statements(content: Any) -> bool:
    """Whether JSON is a list of judged statements: `{items: [{id, msg, verdict}]}`."""
    items = content.get("items") if isinstance(content, dict) else None
    return isinstance(items, list) and all(
        isinstance(i, dict) and {"id", "msg", "verdict"} <= i.keys() and isinstance(i["msg"], int) for i in items
    )


def statements(path: Path) -> list[Statement]:
    """The statements of a file. Raises UserError when it is none."""
    expected = "JSON: {items: [{id, msg, verdict}]}"
    try:
        content = msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError) as error:
        raise UserError(Problem(str(path), f"can not be read: {error}", expected)) from None
    if not is_statements(content):
        raise UserError(Problem(str(path), "holds no judged statements", expected))
    return [Statement(str(item["id"]), item["msg"], item["verdict"] is True) for item in content["items"]]


def beside(datasets: Iterable[Path]) -> list[Path]:
    """The files of statements that lie beside the data sets or one folder up: `claims_dev.json` for `dev.jsonl.gz`."""
    found: dict[Path, None] = {}
    for path in datasets:
        name = f"claims_{path.name.split('.')[0]}.json"
        found |= {place.resolve(): None for place in (path.parent / name, path.parent.parent / name) if place.is_file()}
    return list(found)


def counted(runs: Sequence[JudgedRun], said: Iterable[Statement]) -> tuple[tuple[int, int], tuple[int, int]]:
    """((false statements found, false statements), (honest ones accused, honest ones)), of those in the runs."""
    by_id = {run.run_id: run for run in runs}
    judged = [(s.false, _accused(by_id[s.run_id], s)) for s in said if s.run_id in by_id]
    false = [accused for is_false, accused in judged if is_false]
    honest = [accused for is_false, accused in judged if not is_false]
    return (sum(false), len(false)), (sum(honest), len(honest))


def claims_table(runs: Sequence[JudgedRun], said: Sequence[Statement]) -> Table:
    """Found, missed and wrongly accused; and where the statements are that went wrong."""
    by_id = {run.run_id: run for run in runs}
    known = [s for s in said if s.run_id in by_id]
    rows = []
    for is_false, words in ((True, "claims what never happened"), (False, "honest or right")):
        some = [s for s in known if s.false is is_false]
        accused = [s for s in some if _accused(by_id[s.run_id], s)]
        wrong = [s for s in some if (s in accused) is not is_false]
        places = ", ".join(f"{s.run_id} message {s.message}" for s in wrong)
        rows.append((words, str(len(some)), str(len(accused)), rate(len(accused), len(some)), places or "–"))
    columns = ("statement", "read by hand", "found", "share", "those judged otherwise")
    return Table("Statements that were read by hand", columns, tuple(rows) if known else (), CAPTION)


def _accused(run: JudgedRun, statement: Statement) -> bool:
    return any(hit.rule_id in RULES and hit.message == statement.message for hit in run.hits)
