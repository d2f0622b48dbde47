"""otelmon bench: figures, measured and written to docs/measurements.md."""

from __future__ import annotations

from pathlib import Path

import click

from otelmon.app.bench.measurements import FILE, write_section
from otelmon.app.bench.quality import SHOWS, Show, chosen, label_of, sources
from otelmon.app.bench.quality_report import report
from otelmon.app.bench.quality_runs import JudgedRun
from otelmon.app.bench.quality_table import by_set
from otelmon.app.bench.quality_tables import failure_kinds
from otelmon.app.bench.throughput import MIXES, measure, table
from otelmon.cli.common import Context, plain, print_json
from otelmon.vocabulary.errors import OK
from otelmon.vocabulary.finding import SEVERITIES, Severity, level


@click.group()
def command() -> None:
    """Measure, and write the figures to docs/measurements.md."""


@command.command()
@click.option("--spans", type=click.IntRange(100), default=20_000, show_default=True, help="Tool spans; a tenth of it for whole histories.")  # fmt: skip
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True)
@click.option("--bus", type=click.Choice(("embedded", "kafka")), default="embedded", show_default=True)
@click.option("--dry-run", is_flag=True, help="Print only; leave docs/measurements.md as it is.")
def throughput(spans: int, rounds: int, bus: str, dry_run: bool) -> int:
    """Spans and bytes per second of CPU, every rule on, stored, over two mixes of traffic."""
    results = [measure(MIXES[0], spans, rounds, bus), measure(MIXES[1], max(100, spans // 10), rounds, bus)]
    text = table(results)
    click.echo(text)
    if not dry_run:
        write_section(
            FILE,
            f"Throughput, {bus} bus",
            f"otelmon bench throughput --spans {spans} --rounds {rounds} --bus {bus}",
            text,
        )
    return OK


@command.command()
@click.argument("datasets", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--rules", "rules_dirs", multiple=True, type=click.Path(), help="A folder with more rules (repeatable).")
@click.option("--catalog", type=click.Path(), help="The operator's catalogue: tools and policy (YAML or JSON).")
@click.option("--show", type=click.Choice(SHOWS), help="Also list the runs behind a cell.")
@click.option("--at", type=click.Choice(SEVERITIES), default="high", show_default=True, help="The severity --show looks at, and above.")  # fmt: skip
@click.option("--first", type=click.IntRange(1), help="Only so many records of each file. Writes nothing.")
@click.option("--processes", type=click.IntRange(1), default=2, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--dry-run", is_flag=True, help="Print only; leave docs/measurements.md as it is.")
@click.pass_obj
def quality(
    context: Context,
    datasets: tuple[Path, ...],
    rules_dirs: tuple[str, ...],
    catalog: str | None,
    show: Show | None,
    at: Severity,
    first: int | None,
    processes: int,
    as_json: bool,
    dry_run: bool,
) -> int:
    """How much of what is flagged is right, over labelled runs.

    DATASET: JSON lines of {id, domain, model, tools, messages, labels}, .gz too; or of tools, {tools} or {before,
    after}; or of what models said of runs, {simulation_id, judges}; or JSON of statements read by hand, {items: [{id, msg, verdict}]}, which is also found beside `NAME.jsonl`
    as claims_NAME.json. Labels that are read: success or utility, attacked, attack_succeeded, mutating_calls,
    gold_writes, extra_writes, failure_kinds, tool_types.
    """
    context.override("rules_dirs", list(rules_dirs) or None)
    context.override("catalogue", catalog)
    data = sources(datasets)
    packs = [Path(folder).name for folder in rules_dirs]
    made = report(data, context.config, context.settings.origin, packs, processes, first)
    listed = chosen(made.runs, show, at) if show else []
    text = "\n\n".join(table.markdown() for table in made.tables)
    if as_json:
        print_json({"tables": made.tables, "runs": listed})
    else:
        click.echo(text)
        for run in listed:
            _print_run(run, at)
        if show == "misses":
            _print_kinds(listed)
    if not dry_run and first is None:
        asked = " ".join(
            ["otelmon bench quality", *map(label_of, (*datasets, *data.statements)), *_options(rules_dirs, catalog)]
        )
        write_section(FILE, " ".join(["Quality", *(f"with {pack}" for pack in packs)]), asked, text)
    return OK


def _options(rules_dirs: tuple[str, ...], catalog: str | None) -> list[str]:
    return [f"--rules {folder}" for folder in rules_dirs] + ([f"--catalog {Path(catalog).name}"] if catalog else [])


def _print_kinds(runs: list[JudgedRun]) -> None:
    """How many of the missed runs failed in which way; a run may have failed in several."""
    click.echo("\nmissed runs by kind of failure:")
    for name, some in by_set(runs):
        for kind, number in failure_kinds(some):
            click.echo(f"  {plain(name)}  {plain(kind)}: {number}")


def _print_run(run: JudgedRun, at: Severity) -> None:
    click.echo(f"\n{plain(run.run_id)}  {plain(run.domain)}  {plain(run.model)}  passed={run.passed} {run.attack}")
    for hit in run.hits:
        if level(hit.severity) >= level(at):
            right = {True: "right", False: "wrong", None: "not labelled"}[hit.right]
            click.echo(f"  {hit.rule_id} {hit.severity} call={hit.call} ({right}): {plain(hit.summary)}")
