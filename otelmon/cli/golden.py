"""otelmon golden: incidents as regression cases."""

from __future__ import annotations

import time
from pathlib import Path

import click

from otelmon.app.reader import open_reader
from otelmon.cli.common import Context, plain, print_json, print_table
from otelmon.cli.incidents import resolve_id
from otelmon.golden.model import GoldenTask
from otelmon.golden.tasks import write_tasks
from otelmon.vocabulary.errors import OK, Problem, UserError


@click.group()
def command() -> None:
    """Incidents frozen as cases that fail until the agent is fixed."""


@command.command()
@click.argument("incident_id")
@click.option("--out", type=click.Path(path_type=Path), help="Add the task to this file of JSON lines.")
@click.pass_obj
def mine(context: Context, incident_id: str, out: Path | None) -> int:
    """Write a golden task from an incident; personal data is replaced, equal values stay equal."""
    with open_reader(context.config, time.time_ns()) as reader:
        task = reader.mine(resolve_id(reader, "incident", incident_id))
    if out is None:
        print_json(task)
    else:
        write_tasks(out, [task])
        click.echo(f"{task.id} written to {out}")
    return OK


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_(context: Context, as_json: bool) -> int:
    """All tasks mined so far."""
    tasks = _stored(context)
    if as_json:
        print_json(tasks)
    else:
        print_table(
            ("task", "agent", "rules", "title"), [(t.id, t.agent, ", ".join(t.rules), plain(t.title)) for t in tasks]
        )
    return OK


@command.command()
@click.argument("task_id")
@click.pass_obj
def show(context: Context, task_id: str) -> int:
    """One task, as JSON."""
    found = [task for task in _stored(context) if task.id.startswith(task_id)]
    if len(found) != 1:
        raise UserError(
            Problem(task_id, f"{len(found)} tasks have an id that starts so", "one", "see `otelmon golden list`")
        )
    print_json(found[0])
    return OK


def _stored(context: Context) -> list[GoldenTask]:
    with open_reader(context.config, time.time_ns()) as reader:
        tasks: list[GoldenTask] = reader.read("golden_tasks")
    return tasks
