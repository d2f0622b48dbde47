"""otelmon demo: the monitor, and sample agents that misbehave."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import time
from importlib import resources

import click

from otelmon.app.demo.agents import RIGHT, WRONG
from otelmon.app.runtime import Monitor
from otelmon.cli.common import Context, plain
from otelmon.cli.serve import greeting, wait_for_signal
from otelmon.store.results import IncidentDetail
from otelmon.vocabulary.errors import ANSWER_NO, OK
from otelmon.web.reads import answer

DEMO_DATA = "otelmon-data/demo"
SETTLE_S = 2.0  # shorter than in production: the demo's runs are over when they say so
WAIT_S = 40.0
EXPECTED = {"unsafe_retry", "ungrounded_argument", "forbidden_write", "false_success"}


@click.command()
@click.option("--once", is_flag=True, help="Stop after the report instead of keeping on.")
@click.option("--data", type=click.Path(), default=DEMO_DATA, show_default=True, help="Folder of the spool and the database.")  # fmt: skip
@click.pass_obj
def command(context: Context, once: bool, data: str) -> int:
    """Start the monitor and let small agents do right and wrong things. Needs no key and no cloud."""
    if data == DEMO_DATA:
        shutil.rmtree(data, ignore_errors=True)  # the demo's own folder: each demo starts afresh
    context.override("data", data)
    context.override("assemble.settle_seconds", SETTLE_S)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    catalogue = resources.files("otelmon.app.demo") / "catalogue.yaml"
    with resources.as_file(catalogue) as path:
        context.override("catalogue", str(path))
        monitor = Monitor(context.config, context.laws())
        monitor.start()
    try:
        click.echo(greeting(monitor))
        found = _play(monitor)
        if not once:
            click.echo("\nThe monitor keeps running: send it your own spans, or stop it with Ctrl-C.")
            wait_for_signal(monitor)
    finally:
        monitor.stop()
    return OK if found >= EXPECTED else ANSWER_NO


def _play(monitor: Monitor) -> set[str]:
    if monitor.doors is None or monitor.web is None:
        return set()
    click.echo(
        f"\nRunning {len(WRONG)} agents that do something wrong and {len(RIGHT)} that look alike and are right ..."
    )
    started = time.time_ns()
    endpoint = f"http://{monitor.doors.http}"
    subprocess.run([sys.executable, "-m", "otelmon.app.demo.agents", endpoint], check=True)
    incidents = _wait_for_incidents(monitor, started)
    click.echo(f"{len(incidents)} incidents, the last after {(time.time_ns() - started) / 1e9:.0f} s:\n")
    for detail in incidents:
        incident = detail.incident
        click.echo(f"  {incident.severity.upper():<9}{plain(incident.title)}")
        for finding in detail.findings:
            click.echo(f"           {finding.finding.rule_id}: {plain(finding.finding.summary)}")
        click.echo(f"           http://{monitor.web.address}/incidents/{incident.incident_id}")
    verbs = ("incidents list", "incidents show ID", "explain ID", "golden mine ID")
    click.echo("\nLook closer:\n" + "\n".join(f"  {_program()} {verb}" for verb in verbs))
    return {finding.finding.rule_id for detail in incidents for finding in detail.findings}


def _program() -> str:
    """The command as a person in this folder types it: after `make demo` it is in .venv, not on PATH."""
    if shutil.which("otelmon"):
        return "otelmon"
    return os.path.relpath(sys.argv[0])


def _wait_for_incidents(monitor: Monitor, since: int) -> list[IncidentDetail]:
    """Incidents with findings of what ran since then; returns when all that is expected is there."""
    end = time.monotonic() + WAIT_S
    database = monitor.database
    if database is None:
        return []
    while True:
        page = answer(database, "incidents", {"since": since})
        details = [answer(database, "incident", {"id": i.incident_id}) for i in page.incidents]
        rules = {finding.finding.rule_id for detail in details for finding in detail.findings}
        if rules >= EXPECTED or time.monotonic() > end:
            return details
        time.sleep(0.25)
