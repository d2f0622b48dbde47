"""otelmon incidents: list, show, acknowledge, resolve, label."""

from __future__ import annotations

import getpass
import time
from collections.abc import Iterator

import click

from otelmon.app.reader import Reader, open_reader
from otelmon.cli.common import Context, plain, print_json, print_table
from otelmon.cli.times import when
from otelmon.store.results import CallDetail, FindingDetail, IncidentDetail
from otelmon.vocabulary.errors import OK, Problem, UserError
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import FAMILIES, SEVERITIES

SHOWN = 400  # characters of one value in `show`


@click.group()
def command() -> None:
    """Problems found, grouped for a person."""


@command.command("list")
@click.option(
    "--state", default="", help="open, acknowledged, resolved, retracted; separated by commas [default: all]."
)
@click.option("--severity", type=click.Choice(SEVERITIES), default="info", help="At least this severity.")
@click.option("--family", type=click.Choice(FAMILIES))
@click.option("--agent", help="Only of this agent.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_(context: Context, state: str, severity: str, family: str | None, agent: str | None, limit: int, as_json: bool) -> int:  # fmt: skip
    """The newest problems, open ones first."""
    with open_reader(context.config, time.time_ns()) as reader:
        page = reader.read("incidents", states=state, severity=severity, family=family, agent=agent, limit=limit)
    if as_json:
        print_json(page)
        return OK
    rows = [
        (i.incident_id, i.severity, i.state, i.findings, when(i.last_seen_unix_nano), i.title) for i in page.incidents
    ]
    print_table(("incident", "severity", "state", "findings", "last seen", "what"), rows)
    if page.total > len(rows):
        click.echo(f"{page.total - len(rows)} more; --limit {page.total} shows all")
    return OK


@command.command()
@click.argument("incident_id")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def show(context: Context, incident_id: str, as_json: bool) -> int:
    """One problem with its evidence: the calls side by side, where each value came from."""
    with open_reader(context.config, time.time_ns()) as reader:
        detail = reader.read("incident", id=resolve_id(reader, "incident", incident_id))
    if detail is None:
        raise UserError(_none("incident", incident_id))
    if as_json:
        print_json(detail)
    else:
        click.echo("\n".join(describe(detail)))
    return OK


def describe(detail: IncidentDetail) -> Iterator[str]:
    """An incident as text, a line each."""
    incident = detail.incident
    yield f"{incident.severity.upper()}  {plain(incident.title)}"
    yield f"incident {incident.incident_id}, {incident.state}, {incident.findings} findings, label {incident.label}"
    yield f"first {when(incident.opened_unix_nano)}, last {when(incident.last_seen_unix_nano)}"
    for finding in detail.findings:
        yield ""
        yield from describe_finding(finding)
    for entry in detail.history:
        note = f": {plain(entry.note)}" if entry.note else ""
        yield f"  {when(entry.time_unix_nano)} {entry.action} by {plain(entry.who)}{note}"


def describe_finding(detail: FindingDetail) -> Iterator[str]:
    """A finding as text, with the calls it points at."""
    finding = detail.finding
    retracted = " (retracted)" if finding.status == "retracted" else ""
    yield f"{finding.rule_id} ({finding.severity}){retracted}: {plain(finding.summary)}"
    yield f"  run {finding.run_id}, finding {finding.finding_id}, rule version {finding.rule_version}"
    for found in detail.calls:
        yield from (f"  {line}" for line in describe_call(found))


def describe_call(found: CallDetail) -> Iterator[str]:
    """A call as text: what was asked, what came back, what is known of its effect."""
    call: ToolCall = found.call
    yield f"{when(call.start_time_unix_nano)}  {plain(call.tool_name)}  [{found.effect}, {call.outcome}]"
    yield f"    arguments {_short(call.arguments if call.arguments is not None else call.arguments_text)}"
    if call.result_text:
        yield f"    result    {_short(call.result_text)}"
    error = " ".join(part for part in (call.error_type, call.error_message) if part)
    if error:
        yield f"    error     {_short(error)}"


def _short(value: object) -> str:
    text = plain(value).replace("\n", " ")
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}... ({len(text)} characters)"


def resolve_id(reader: Reader, kind: str, prefix: str) -> str:
    """The id that starts so. Raises UserError when there is none, or more than one."""
    found = [f.id for f in reader.read("find", id=prefix) if f.kind == kind]
    if len(found) > 1 and prefix not in found:
        raise UserError(Problem(prefix, f"{len(found)} {kind}s start so", "a longer id", ", ".join(found[:5])))
    if not found:
        raise UserError(_none(kind, prefix))
    return prefix if prefix in found else found[0]


def _none(kind: str, prefix: str) -> Problem:
    return Problem(prefix, f"there is no {kind} whose id starts so", f"an id of `otelmon {kind}s list`")


def _change(context: Context, verb: str, incident_id: str, note: str, **more: str) -> int:
    with open_reader(context.config, time.time_ns()) as reader:
        found = resolve_id(reader, "incident", incident_id)
        reader.change(verb, found, who=getpass.getuser(), note=note, **more)
    click.echo(f"{found}: {verb}")
    return OK


@command.command()
@click.argument("incident_id")
@click.option("--note", default="", help="Why, for the history.")
@click.pass_obj
def ack(context: Context, incident_id: str, note: str) -> int:
    """Say that somebody is on it."""
    return _change(context, "ack", incident_id, note)


@command.command()
@click.argument("incident_id")
@click.option("--note", default="", help="Why, for the history.")
@click.pass_obj
def resolve(context: Context, incident_id: str, note: str) -> int:
    """Close it; a new finding opens it again."""
    return _change(context, "resolve", incident_id, note)


@command.command()
@click.argument("incident_id")
@click.argument("label", type=click.Choice(("true_positive", "false_positive", "unreviewed")))
@click.option("--note", default="", help="Why, for the history.")
@click.pass_obj
def label(context: Context, incident_id: str, label: str, note: str) -> int:
    """Say whether it was right."""
    return _change(context, "label", incident_id, note, label=label)
