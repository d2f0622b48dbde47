"""otelmon config show: every value and where it came from."""

from __future__ import annotations

import click

from otelmon.cli.common import Context, print_json, print_table


@click.group()
def command() -> None:
    """The configuration in force."""


@command.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def show(context: Context, as_json: bool) -> None:
    """Print each value and where it came from."""
    rows = context.settings.describe()
    if as_json:
        print_json({key: {"value": value, "from": origin} for key, value, origin in rows})
    else:
        print_table(("key", "value", "from"), rows)
