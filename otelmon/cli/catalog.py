"""otelmon catalog: what tools are, what became of them, and files that say so."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from otelmon.app.catalogue_diff import ToolDiff, diff
from otelmon.app.catalogue_files import latest, read_catalogue
from otelmon.app.catalogue_guess import confidence, suggest
from otelmon.app.catalogue_pull import Asked, command_of, header_from, pull
from otelmon.app.catalogue_write import as_json, as_yaml, merged, write_file
from otelmon.app.reader import open_reader
from otelmon.checks.lib.drift import CLASSES
from otelmon.checks.lib.effects import effect_of_tool
from otelmon.checks.lib.scopes import broad_scopes
from otelmon.cli.common import Context, plain, print_json, print_table
from otelmon.cli.times import when
from otelmon.rules.catalogue import load_catalogue
from otelmon.store.results import ToolVersion
from otelmon.vocabulary.catalogue import Catalogue, Tool
from otelmon.vocabulary.errors import ANSWER_NO, OK, Problem, UnreachableError, UserError

FILE = click.Path(path_type=Path)
_stdio = click.option("--stdio", metavar="COMMAND", help='Start this MCP server and ask it: "npx server --flag".')
_url = click.option("--url", help="Ask the MCP server at this address (streamable HTTP).")
_server = click.option("--server", help="What the server is called in the catalogue; by default what it calls itself.")
_auth = click.option("--auth-env", metavar="NAME", help="Environment variable with the Authorization header, or a bearer token.")  # fmt: skip
_env = click.option("--env", "variables", metavar="NAME", multiple=True, help="Environment variable that the started server gets (repeatable).")  # fmt: skip
_timeout = click.option("--timeout", type=click.FloatRange(0.1, 3600), default=30.0, show_default=True, help="Seconds to wait for all of the answer.")  # fmt: skip
_json_form = click.option("--json", "json_form", is_flag=True, help="JSON instead of YAML.")
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group()
def command() -> None:
    """The tools agents have, what they do, and how they changed."""


# -- show ------------------------------------------------------------------------------------------
@command.command()
@click.option("--catalog", type=click.Path(), help="The operator's catalogue (YAML or JSON).")
@click.option("--tool", help="Only this tool.")
@_json
@click.pass_obj
def show(context: Context, catalog: str | None, tool: str | None, as_json: bool) -> int:
    """Tools of the operator's file, and definitions seen in traffic with their versions: what each does, who says
    so, how sure that is, and which arguments bound nothing."""
    context.override("catalogue", catalog)
    laws = context.laws()
    told = [t for t in (laws.catalogue.tools if laws.catalogue else ()) if tool in (None, t.name)]
    seen = _traffic(context, tool)
    rows = [_shown(t, "operator", "", "") for t in told]
    for version in seen:
        place = f"traffic ({version.service_name})"
        entry = _entry(told, latest([version])[0])
        rows.append(_shown(entry, place, version.definition_hash[7:19], when(version.last_seen_unix_nano)))
    if as_json:
        print_json({"operator": told, "traffic": seen, "effects": rows})
    else:
        columns = ("tool", "server", "source", "effect", "repeat", "said_by", "confidence", "version", "last_seen", "broad")  # fmt: skip
        print_table([c.replace("_", " ") for c in columns], [[row[c] for c in columns] for row in rows])
    return OK


def _shown(tool: Tool, source: str, version: str, last_seen: str) -> dict[str, str]:
    effect = effect_of_tool(tool)
    return {
        "tool": tool.name,
        "server": tool.server or "",
        "source": source,
        "effect": effect.effect,
        "repeat": effect.repeat,
        "said_by": effect.source,
        "confidence": confidence(tool, effect),
        "version": version,
        "last_seen": last_seen,
        "broad": "; ".join(map(str, broad_scopes(tool))),
    }


def _entry(told: Sequence[Tool], seen: Tool) -> Tool:
    """A definition with what the operator says of the tool laid over it."""
    mine = next((t for t in told if t.name == seen.name and t.server in (None, seen.server)), None)
    return seen if mine is None else msgspec.structs.replace(seen, effect=mine.effect, repeat=mine.repeat)


def _traffic(context: Context, tool: str | None = None) -> tuple[ToolVersion, ...]:
    """Definitions that were stored; none when nothing was stored yet."""
    try:
        with open_reader(context.config, time.time_ns()) as reader:
            found: tuple[ToolVersion, ...] = reader.read("tools", tool=tool)
            return found
    except UnreachableError:
        return ()


# -- pull, export, suggest -------------------------------------------------------------------------
@command.command("pull")
@_stdio
@_url
@_server
@_auth
@_env
@_timeout
@click.option("--out", type=FILE, help="Write this operator's file; when it exists, your own fields and policy stay.")
@_json_form
def pull_command(out: Path | None, json_form: bool, **server: Any) -> int:
    """Ask a live MCP server for its tools and write them as an operator's file."""
    asked = _asked(**server)
    if asked is None:
        raise UserError(Problem("catalog pull", "no server is named", "expected --stdio or --url"))
    tools = pull(asked)
    known = load_catalogue(out) if out is not None and out.exists() else None
    catalogue = merged(known, tools, _one_server(tools))
    _write(_text(catalogue, json_form, out), out)
    if out is not None:
        click.echo(f"{out}: {len(tools)} tools", err=True)
    return OK


def _one_server(tools: Sequence[Tool]) -> str | None:
    servers = {tool.server for tool in tools}
    return next(iter(servers)) if len(servers) == 1 else None


def _asked(
    stdio: str | None, url: str | None, server: str | None, auth_env: str | None, variables: tuple[str, ...], timeout: float
) -> Asked | None:  # fmt: skip
    if stdio and url:
        raise UserError(Problem("--stdio, --url", "both are given", "expected one of them"))
    if not (stdio or url):
        return None
    missing = [name for name in variables if name not in os.environ]
    if missing:
        raise UserError(*(Problem(f"--env {name}", "the variable is not set") for name in missing))
    return Asked(
        server=command_of(stdio) if stdio else str(url),
        name=server,
        timeout_s=timeout,
        authorization=header_from(auth_env, os.environ) if auth_env else "",
        environment={name: os.environ[name] for name in variables},
    )


@command.command()
@click.argument("files", nargs=-1, type=FILE)
@click.option("--out", type=FILE, help="Write this file instead of standard output.")
@_json_form
@click.pass_obj
def export(context: Context, files: tuple[Path, ...], out: Path | None, json_form: bool) -> int:
    """Write the tools as they are now, with descriptions and schemas, as an operator's file to be committed: those
    that traffic showed last, or those of FILES; what the operator's catalogue says is laid over them."""
    known = context.laws().catalogue
    catalogue = merged(known, _current(context, files))
    _write(_text(catalogue, json_form, out), out)
    return OK


@command.command("suggest")
@click.argument("files", nargs=-1, type=FILE)
@click.option("--schemas", is_flag=True, help="With descriptions and schemas.")
@click.option("--out", type=FILE, help="Write this file instead of standard output.")
@click.pass_obj
def suggest_command(context: Context, files: tuple[Path, ...], schemas: bool, out: Path | None) -> int:
    """Propose an operator's file from definitions that traffic showed, or from FILES (catalogues, tools/list
    answers, traces, transcripts): effects, what twice means, idempotency keys. Guesses are marked."""
    known = context.laws().catalogue
    _write(suggest(merged(known, _current(context, files)).tools, schemas), out)
    return OK


def _current(context: Context, files: Sequence[Path]) -> tuple[Tool, ...]:
    if not files:
        tools = latest(_traffic(context))
        if not tools:
            raise UserError(Problem("catalog", "no definition was stored", "expected traffic that shows tools", "name files, or let runs show their tools"))  # fmt: skip
        return tools
    found: dict[tuple[str, str | None], Tool] = {}
    for path in files:
        found.update({(tool.name, tool.server): tool for tool in read_catalogue(path).tools})
    return tuple(found.values())


def _text(catalogue: Catalogue, json_form: bool, out: Path | None) -> str:
    """The operator's file in one of its two forms."""
    return as_json(catalogue) if json_form or (out is not None and out.suffix == ".json") else as_yaml(catalogue)


def _write(text: str, out: Path | None) -> None:
    if out is None:
        click.echo(text, nl=False)
    else:
        write_file(out, text, load_catalogue)


# -- diff, gate ------------------------------------------------------------------------------------
@command.command("diff")
@click.argument("before", type=FILE)
@click.argument("after", type=FILE)
@click.option("--catalog", type=click.Path(), help="The operator's catalogue whose policies are asked; by default those of the two files.")  # fmt: skip
@_json
@click.pass_obj
def diff_command(context: Context, before: Path, after: Path, catalog: str | None, as_json: bool) -> int:
    """What changed from BEFORE to AFTER (catalogues, tools/list answers, traces or transcripts): breaking,
    text-only, annotations, more room, or form only; and which policies and rules rest on it. Exit code 1 when a
    tool changed, 0 when none did."""
    context.override("catalogue", catalog)
    found = _compared(context, read_catalogue(before), read_catalogue(after))
    _print_diff(found, as_json)
    return ANSWER_NO if any(one.changes for one in found) else OK


@command.command()
@click.argument("committed", type=FILE)
@click.argument("current", type=FILE, required=False)
@_stdio
@_url
@_server
@_auth
@_env
@_timeout
@click.option("--fail-on", type=click.Choice(CLASSES), multiple=True, default=("breaking", "text"), show_default=True, help="Class of changes that closes the gate (repeatable).")  # fmt: skip
@_json
@click.pass_obj
def gate(
    context: Context, /, committed: Path, current: Path | None, fail_on: tuple[str, ...], as_json: bool, **server: Any
) -> int:
    """For CI: compare the COMMITTED catalogue with the tools of today, from CURRENT, from a live server (--stdio,
    --url), or from stored traffic. Exit code 1 when a change of a class of --fail-on was made."""
    asked = _asked(**server)
    if asked is not None and current is not None:
        raise UserError(Problem("catalog gate", "both a file and a server are named", "expected one of them"))
    before = read_catalogue(committed)
    after = read_catalogue(current) if current else _today(context, asked, before)
    found = _compared(context, before, after)
    _print_diff(found, as_json)
    return ANSWER_NO if any(set(one.changes.classes) & set(fail_on) for one in found) else OK


def _today(context: Context, asked: Asked | None, before: Catalogue) -> Catalogue:
    """What a server lists is all it has; what traffic shows may be a part."""
    if asked is None:
        return Catalogue(version=1, complete=False, tools=_current(context, ()))
    tools = pull(asked)
    others = [tool for tool in before.tools if tool.server not in (None, _one_server(tools))]
    return Catalogue(version=1, tools=(*others, *tools))


def _compared(context: Context, before: Catalogue, after: Catalogue) -> list[ToolDiff]:
    laws = context.laws()
    return diff(before, after, (laws.catalogue,) if laws.catalogue else (), laws.rules.rules.values())


def _print_diff(found: Sequence[ToolDiff], as_json: bool) -> None:
    changed = [one for one in found if one.changes]
    if as_json:
        print_json({"tools": [_as_data(one) for one in found], "classes": {of: sum(one.of == of for one in found) for of in (*CLASSES, "form")}})  # fmt: skip
        return
    rows = [
        (one.of, one.tool, one.server or "", one.changes.words() or "form only") for one in sorted(found, key=_by_class)
    ]
    if rows:
        print_table(("class", "tool", "server", "what"), rows)
    for one in changed:
        for line in _consequences(one):
            click.echo(plain(f"{one.tool}: {line}"))
    click.echo(f"{len(changed)} tools changed, {len(found) - len(changed)} in form only")


def _by_class(one: ToolDiff) -> tuple[int, str]:
    return ([*CLASSES, "form"].index(one.of), one.tool)


def _consequences(one: ToolDiff) -> list[str]:
    lines = [f"{place} names an argument that is gone" for place in one.loses]
    lines += [f"touches {place}" for place in one.touches if place not in one.loses]
    return lines + [f"broad: {text}" for text in one.broad]


def _as_data(one: ToolDiff) -> dict[str, Any]:
    return {
        "tool": one.tool,
        "server": one.server,
        "class": one.of,
        "severity": one.changes.severity if one.changes else None,
        "changes": one.changes.facts(200),
        "touches": one.touches,
        "loses": one.loses,
        "broad": one.broad,
    }
