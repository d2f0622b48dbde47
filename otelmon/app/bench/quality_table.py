"""A table as it is printed, and the shares in its cells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from otelmon.app.bench.quality_runs import JudgedRun
from otelmon.score.intervals import wilson


class Table(msgspec.Struct, frozen=True):
    """A table with a heading and, if it needs one, a caption; cells are texts as they are printed. `folded`: a
    long table, shown when it is asked for."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    folded: bool = False

    def markdown(self) -> str:
        """The table as Markdown; numbers stand to the right."""
        rule = ["---", *("--:" for _ in self.columns[1:])]
        text = "\n".join(f"| {' | '.join(line)} |" for line in (self.columns, rule, *self.rows))
        if self.folded:
            text = f"<details><summary>{len(self.rows)} rows</summary>\n\n{text}\n\n</details>"
        return "\n\n".join(part for part in (f"### {self.title}", self.caption, text) if part)


def by_set(runs: Iterable[JudgedRun]) -> Iterator[tuple[str, list[JudgedRun]]]:
    """The runs of each data set, in the order in which the sets come."""
    sets: dict[str, list[JudgedRun]] = {}
    for run in runs:
        sets.setdefault(run.data_set, []).append(run)
    yield from sets.items()


def rate(part: int, whole: int) -> str:
    """A share with its 95 % interval, or a dash when there is nothing to share."""
    if not whole:
        return "–"
    low, high = wilson(part, whole)
    return f"{part / whole:.3f} ({low:.3f}–{high:.3f})"


def per_thousand(part: int, whole: int) -> str:
    """A rate per 1,000 with its 95 % interval, or a dash."""
    if not whole:
        return "–"
    low, high = wilson(part, whole)
    return f"{1000 * part / whole:.1f} ({1000 * low:.1f}–{1000 * high:.1f})"


def cell(text: str) -> str:
    """A text that can stand in a cell."""
    return text.replace("|", "/")
