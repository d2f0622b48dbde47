"""Everything that is measured of the rules, table by table: the bars first, then what they rest on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from otelmon.app.bench.quality import Sources, measure, opinions
from otelmon.app.bench.quality_attacks import attack_tables
from otelmon.app.bench.quality_bars import Measured, bars_table
from otelmon.app.bench.quality_claims import claims_table, statements
from otelmon.app.bench.quality_drift import drift_tables
from otelmon.app.bench.quality_judge import judge_table
from otelmon.app.bench.quality_runs import JudgedRun
from otelmon.app.bench.quality_table import Table
from otelmon.app.bench.quality_tables import tables
from otelmon.vocabulary.config import Config


class Report(msgspec.Struct, frozen=True):
    """The tables, and the judged runs behind them."""

    tables: tuple[Table, ...]
    runs: tuple[JudgedRun, ...]


def report(
    data: Sources, config: Config, origins: Mapping[str, str], packs: Sequence[str], processes: int, most: int | None
) -> Report:
    """Judge the data and lay out what came of it. `packs` are the names of the rule folders that are loaded beside
    the built-in ones, `most` how many records of each file are looked at. Raises UserError."""
    runs = measure([*data.runs, *data.definitions], config, origins, processes, most)
    said = [statement for path in data.statements for statement in statements(path)]
    drift = [] if packs else drift_tables(data.definitions)  # what tools became does not depend on packs
    made = [
        bars_table(Measured(runs, said, drift), packs),
        *tables(runs),
        claims_table(runs, said),
        judge_table(runs, [opinion for path in data.opinions for opinion in opinions(path)]),
        *attack_tables(runs),
        *drift,
    ]
    return Report(tuple(table for table in made if table.rows), tuple(runs))
