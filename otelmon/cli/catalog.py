"""otelmon catalog: what tools are known, from the operator's file and from traffic."""

from __future__ import annotations

import time

import click

from otelmon.app.reader import open_reader
from otelmon.cli.common import Context, print_json, print_table
from otelmon.cli.times import when
from otelmon.vocabulary.errors import OK, UnreachableError


@click.group()
def command() -> None:
    """The tools agents have, and what they do."""


@command.command()
@click.option("--catalog", type=click.Path(), help="The operator's catalogue (YAML or JSON).")
@click.option("--tool", help="Only this tool.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def show(context: Context, catalog: str | None, tool: str | None, as_json: bool) -> int:
    """Tools of the operator's file, and definitions seen in traffic with their versions."""
    context.override("catalogue", catalog)
    laws = context.laws()
    told = [t for t in (laws.catalogue.tools if laws.catalogue else ()) if tool in (None, t.name)]
    try:
        with open_reader(context.config, time.time_ns()) as reader:
            seen = reader.read("tools", tool=tool)
    except UnreachableError:
        seen = ()  # nothing was stored yet: the operator's file alone is still an answer
    if as_json:
        print_json({"operator": told, "traffic": seen})
        return OK
    rows = [(t.name, t.server, "operator", t.effect or "", t.repeat or "", "", "") for t in told]
    rows += [
        (
            v.tool_name,
            v.server,
            f"traffic ({v.service_name})",
            "",
            "",
            v.definition_hash[7:19],
            when(v.last_seen_unix_nano),
        )
        for v in seen
    ]
    print_table(("tool", "server", "source", "effect", "repeat", "version", "last seen"), rows)
    return OK
