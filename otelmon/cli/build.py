"""otelmon build: write what is generated, or say what has drifted."""

from __future__ import annotations

from pathlib import Path

import click

from otelmon.app.references import drift, leftovers, outputs
from otelmon.vocabulary.errors import ANSWER_NO, OK, Problem, UserError


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; say which files differ.")
@click.pass_context
def command(ctx: click.Context, check: bool) -> int:
    """Write references, dashboards, alerts and runbooks from the tables in the code (in the source tree)."""
    root = Path()
    if not (root / "otelmon" / "metrics" / "table.py").is_file():
        raise UserError(Problem("build", "this folder is not the source tree of otelmon", "", "change to it first"))
    made = outputs(_top(ctx))
    if check:
        wrong = drift(root, made)
        for path in wrong:
            click.echo(f"{path}: differs from what the code says; run `otelmon build`")
        return ANSWER_NO if wrong else OK
    for path in leftovers(root, made):
        (root / path).unlink()
    for path, text in made.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    click.echo(f"{len(made)} files written")
    return OK


def _top(ctx: click.Context) -> click.Group:
    top = ctx.find_root().command
    if not isinstance(top, click.Group):
        raise TypeError("the root command is a group")
    return top
