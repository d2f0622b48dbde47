"""otelmon serve: the monitor, all stages in one process or one of them."""

from __future__ import annotations

import logging
import signal
import sys
import threading

import click
import msgspec

from otelmon.app.reload import tell
from otelmon.app.runtime import STAGES, Monitor
from otelmon.cli.common import Context
from otelmon.vocabulary.config import Config
from otelmon.vocabulary.errors import Problem, UserError


@click.command()
@click.argument("stages", nargs=-1, type=click.Choice(STAGES))
@click.option("--data", type=click.Path(), help="Folder of the spool and the database.")
@click.option("--catalog", type=click.Path(), help="The operator's catalogue: tools and policy (YAML or JSON).")
@click.option("--bus", type=click.Choice(("embedded", "kafka")), help="How stages talk.")
@click.option("--listen", help="Address of pages, API and metrics, host:port; empty: none.")
@click.pass_obj
def command(
    context: Context,
    stages: tuple[str, ...],
    data: str | None,
    catalog: str | None,
    bus: str | None,
    listen: str | None,
) -> int:
    """Run the monitor until it is told to stop (Ctrl-C, SIGTERM).

    Without STAGES all of them run in this process. On Kafka each may be a process of its own; the one
    with the store has the pages on 8317, and a stage that runs alone shows its metrics on 8318
    (receive), 8319 (assemble) or 8320 (detect) unless --listen says otherwise.

    Rules, catalogue, suppressions and plug-ins are read again when their files change, and on SIGHUP: a
    new set is in force when all of it is right; else the old one stays and the mistakes are told.
    """
    for key, value in (("data", data), ("catalogue", catalog), ("bus", bus), ("web.listen", listen)):
        context.override(key, value)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    chosen = stages or STAGES
    check_stages(context.config, chosen)
    source = context.source()
    loaded = source.load()
    monitor = Monitor(own_address(context, chosen), loaded.laws, chosen)
    monitor.watch(source, loaded)
    monitor.start()
    tell(loaded)
    click.echo(greeting(monitor))
    wait_for_signal(monitor)
    click.echo("stopping: finishing what came in", err=True)
    monitor.stop()
    return 0


def own_address(context: Context, stages: tuple[str, ...]) -> Config:
    """The configuration, with an address of its own for a stage that runs alone and was given none."""
    config = context.config
    if "store" in stages or context.settings.origin["web.listen"] != "default":
        return config
    host, _, port = config.web.listen.rpartition(":")
    listen = f"{host}:{int(port) + 1 + STAGES.index(stages[0])}"
    return msgspec.structs.replace(config, web=msgspec.structs.replace(config.web, listen=listen))


def check_stages(config: Config, stages: tuple[str, ...]) -> None:
    """One stage alone needs a bus that other processes can reach."""
    if config.bus == "embedded" and set(stages) != set(STAGES):
        raise UserError(
            Problem("serve " + " ".join(stages), "the embedded bus lives inside one process", "all stages together",
                    "leave the stages out, or use Kafka: --bus kafka")
        )  # fmt: skip


def greeting(monitor: Monitor) -> str:
    """Where everything is, a line each."""
    lines = []
    if monitor.doors:
        lines.append(f"OTLP/gRPC   {monitor.doors.grpc or 'off'}")
        lines.append(f"OTLP/HTTP   {'http://' + monitor.doors.http + '/v1/traces' if monitor.doors.http else 'off'}")
    if monitor.web:
        lines.append(f"pages       http://{monitor.web.address}/")
        lines.append(f"metrics     http://{monitor.web.address}/metrics")
    lines.append(f"data        {monitor.config.data} ({monitor.config.bus} bus, {len(monitor.laws.rules.rules)} rules)")
    return "\n".join(lines)


def wait_for_signal(monitor: Monitor) -> None:
    """Return when the process is told to stop; a second signal ends it at once. SIGHUP: read the laws again."""
    stop = threading.Event()

    def on_signal(number: int, _: object) -> None:
        if stop.is_set():
            sys.exit(128 + number)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    if monitor.reloader is not None:
        reloader = monitor.reloader
        signal.signal(signal.SIGHUP, lambda *_: reloader.ask())
    while not stop.wait(0.5):
        pass
