"""otelmon bench: figures, measured and written to docs/measurements.md."""

from __future__ import annotations

import click

from otelmon.app.bench.measurements import FILE, write_section
from otelmon.app.bench.throughput import MIXES, measure, table
from otelmon.vocabulary.errors import OK


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
