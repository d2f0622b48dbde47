"""otelmon explain: one run from the first word to the last, with what was found in it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import click

from otelmon.app.reader import Reader, open_reader
from otelmon.cli.common import Context, plain, print_json
from otelmon.cli.incidents import describe_call
from otelmon.cli.times import when
from otelmon.store.results import CallDetail, FindingDetail, MessageDetail, RunDetail
from otelmon.vocabulary.errors import OK, Problem, UserError
from otelmon.web.evidence import origin_text

MESSAGE = 2000  # characters of one message


@click.command()
@click.argument("run")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(context: Context, run: str, as_json: bool) -> int:
    """What happened in a run: RUN is the id (or its start) of a run, trace, conversation, finding or incident."""
    with open_reader(context.config, time.time_ns()) as reader:
        details = [found for run_id in runs_of(reader, run) if (found := reader.read("run", id=run_id))]
    if as_json:
        print_json(details)
        return OK
    for detail in details:
        click.echo("\n".join(describe(detail)) + "\n")
    return OK


def runs_of(reader: Reader, prefix: str) -> list[str]:
    """Ids of the runs that an id of any kind leads to, oldest first. Raises UserError when none does."""
    found = reader.read("find", id=prefix)
    exact = [f for f in found if f.id == prefix] or found
    if len({(f.kind, f.id) for f in exact if f.kind != "trace"}) > 1 and len(exact) == len(found):
        runs = {f.id for f in exact if f.kind == "run"}
        if len(runs) != 1:
            choices = ", ".join(f"{f.kind} {f.id}" for f in exact[:6])
            raise UserError(Problem(prefix, "several things start so", "a longer id", choices))
    if not exact:
        raise UserError(Problem(prefix, "nothing stored has an id that starts so", "see `otelmon incidents list`"))
    kind, id_ = exact[0].kind, exact[0].id
    if kind == "run":
        return [id_]
    if kind in ("finding", "incident"):
        wanted: list[FindingDetail] = reader.read("findings", **{kind: id_})
        return list(dict.fromkeys(f.finding.run_id for f in wanted))
    return [summary.run.run_id for summary in reversed(reader.read("runs", **{kind: id_}, limit=200))]


def describe(detail: RunDetail) -> Iterator[str]:
    """A run as text, a line each."""
    run = detail.run
    yield f"run {run.run_id}  agent {plain(run.agent_name or '-')}  service {plain(run.service_name or '-')}"
    yield f"conversation {plain(run.conversation_id)}  {when(run.start_time_unix_nano)}  ended: {run.closed or 'not yet'}"
    at = _findings_by_span(detail.findings)
    for item in detail.timeline:
        if isinstance(item, MessageDetail):
            yield f"  {item.role}: {_message(item)}"
            spans: tuple[str, ...] = (item.span_id,) if item.final else ()
        else:
            yield from (f"  {line}" for line in describe_call(item))
            yield from (f"      {line}" for line in _origins(item))
            spans = item.call.span_ids or (item.call.span_id,)
        for span_id in spans:
            for finding in at.pop(span_id, ()):
                yield f"    ! {finding.severity} {finding.rule_id}: {plain(finding.summary)}"
    for findings in at.values():
        for finding in findings:
            yield f"  ! {finding.severity} {finding.rule_id}: {plain(finding.summary)}"
    if run.gaps:
        yield f"  context is not complete: {', '.join(run.gaps)}"
    for rule_id, reason in sorted(detail.not_evaluable.items()):
        yield f"  not evaluable: {rule_id} ({reason})"


def _origins(detail: CallDetail) -> Iterator[str]:
    """Where the arguments of a call came from, a line each; what the agent words itself is left out."""
    for origin in detail.lineage:
        if origin.source != "composed":
            sure = "" if origin.sure else ", not certain"
            how = f" ({origin.transformation})" if origin.transformation not in ("", "verbatim") else ""
            yield plain(f"{origin.path} <- {origin_text(origin)}{how}{sure}")


def _findings_by_span(details: tuple[FindingDetail, ...]) -> dict[str, list]:  # type: ignore[type-arg]
    by_span: dict[str, list] = {}  # type: ignore[type-arg]
    for detail in details:
        if detail.finding.status == "open":
            by_span.setdefault(detail.finding.span_ids[0] if detail.finding.span_ids else "", []).append(detail.finding)
    return by_span


def _message(message: MessageDetail) -> str:
    text = plain(message.text).replace("\n", "\n    ")
    asked = ", ".join(plain(request.tool_name) for request in message.requests)
    shown = text if len(text) <= MESSAGE else f"{text[:MESSAGE]}... ({len(text)} characters)"
    return shown + (f"  -> {asked}" if asked else "")
