"""The command line: one file a verb; parse, call, print.

Exit codes: 0 fine; 1 the answer is no; 2 usage, configuration or rule mistakes; 3 something needed is
unreachable; 70 our bug.
"""

from __future__ import annotations

import importlib
import sys

import click

from otelmon import __version__
from otelmon.cli.common import Context, for_a_reader, run

# verb -> module in this package that holds the click command `command`
VERBS = {
    "serve": "serve",
    "demo": "demo",
    "check": "check",
    "replay": "replay",
    "incidents": "incidents",
    "explain": "explain",
    "sql": "sql",
    "rules": "rules",
    "catalog": "catalog",
    "golden": "golden",
    "bench": "bench",
    "doctor": "doctor",
    "config": "config",
    "plugins": "plugins",
    "kafka": "kafka",
    "build": "build",
}


class Verbs(click.Group):
    """Loads the module of a verb only when it is used: `otelmon --help` stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        module = VERBS.get(cmd_name)
        if module is None:
            return None
        command: click.Command = importlib.import_module(f"otelmon.cli.{module}").command
        return command

    def invoke(self, ctx: click.Context) -> object:
        with for_a_reader():
            return super().invoke(ctx)


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--config", "config_file", type=click.Path(), help="Configuration file [default: otelmon.toml here].")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Set one configuration key, e.g. web.listen=127.0.0.1:9000.")  # fmt: skip
@click.version_option(__version__, prog_name="otelmon")
@click.pass_context
def cli(ctx: click.Context, config_file: str | None, overrides: tuple[str, ...]) -> None:
    """Watch every tool call of every agent; page a person with the evidence."""
    ctx.obj = Context(config_file, overrides)


def main() -> None:
    """Entry point of the `otelmon` command."""
    sys.exit(run(cli))
