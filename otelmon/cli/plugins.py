"""otelmon plugins: distributions that bring checks or rules, and what became of each."""

from __future__ import annotations

from collections.abc import Sequence

import click

from otelmon.app.laws import laws_and_plugins
from otelmon.app.plugins import Plugin, load_plugins
from otelmon.cli.common import Context, print_json, print_table
from otelmon.vocabulary.errors import ANSWER_NO, OK, UserError


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(context: Context, as_json: bool) -> int:
    """What is installed, allowed and loaded; exit code 1 when something allowed can not be used.

    A plug-in is allowed by the name of its distribution: plugins = ["acme-checks"] in otelmon.toml.
    """
    plugins = _plugins(context)
    if as_json:
        print_json([as_data(plugin) for plugin in plugins])
    elif not plugins:
        click.echo("no distribution with checks or rules is installed, and none is allowed")
    else:
        rows = [(p.name, p.version or "-", state(p), ", ".join(p.checks) or "-", ", ".join(r.id for r in p.rules) or "-") for p in plugins]  # fmt: skip
        print_table(("plug-in", "version", "state", "checks", "rules"), rows)
        for plugin in plugins:
            for error in plugin.errors:
                click.echo(f"{plugin.name}: {error}", err=True)
    return ANSWER_NO if any(plugin.errors for plugin in plugins) else OK


def state(plugin: Plugin) -> str:
    """One word for what became of it."""
    if not plugin.installed:
        return "missing"
    if not plugin.allowed:
        return "not allowed"
    return ("in part" if plugin.errors else "loaded") if plugin.loaded else "failed"


def as_data(plugin: Plugin) -> dict[str, object]:
    """A plug-in for JSON."""
    return {
        "name": plugin.name, "version": plugin.version, "installed": plugin.installed, "allowed": plugin.allowed,
        "loaded": plugin.loaded, "state": state(plugin), "checks": list(plugin.checks),
        "rules": [rule.id for rule in plugin.rules], "errors": list(plugin.errors),
    }  # fmt: skip


def _plugins(context: Context) -> Sequence[Plugin]:
    """With the rules beside them when these load; a mistake elsewhere must not hide the plug-ins."""
    try:
        return laws_and_plugins(context.config, context.settings.origin)[1]
    except UserError:
        return load_plugins(context.config.plugins)
