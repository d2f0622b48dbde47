"""otelmon sql: read-only questions to what is stored, apart from the writer."""

from __future__ import annotations

import time
from pathlib import Path

import click

from otelmon.app.reader import open_reader
from otelmon.cli.common import Context, print_json, print_table
from otelmon.store.snapshot import run_sql
from otelmon.vocabulary.errors import OK


@click.command()
@click.argument("query")
@click.option("--max-rows", type=click.IntRange(1), default=10_000, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON: one object a row.")
@click.pass_obj
def command(context: Context, query: str, max_rows: int, as_json: bool) -> int:
    """Run one SELECT on a snapshot of the database.

    The query runs in this process, on a copy at most ten seconds old: it can not slow the monitor,
    change anything, or read other files.
    """
    with open_reader(context.config, time.time_ns()) as reader:
        path = Path(reader.read("snapshot").path)
        result = run_sql(path, query, context.config.store.sql_seconds, max_rows=max_rows)
    if as_json:
        print_json([dict(zip(result.columns, row, strict=True)) for row in result.rows])
    else:
        print_table(result.columns, result.rows)
    if result.truncated:
        click.echo(f"more than {max_rows} rows; --max-rows shows more", err=True)
    return OK
