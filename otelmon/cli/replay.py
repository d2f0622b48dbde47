"""otelmon replay: send files, or what is stored, through a running server."""

from __future__ import annotations

from pathlib import Path

import click
import httpx

from otelmon.app.reader import client_of
from otelmon.app.sender import Sender, send_files
from otelmon.cli.common import Context, print_json
from otelmon.cli.times import nanos
from otelmon.vocabulary.errors import OK, USAGE, Problem, UnreachableError, UserError
from otelmon.web.api import OWN_HEADER


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--from", "since", metavar="TIME", help="Judge again what was received since then (ISO time), instead of files.")  # fmt: skip
@click.option("--until", metavar="TIME", help="With --from: only what was received before then.")
@click.option("--endpoint", help="OTLP/HTTP address of the server [default: receive.http of the configuration].")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(context: Context, paths: tuple[Path, ...], since: str | None, until: str | None, endpoint: str | None, as_json: bool) -> int:  # fmt: skip
    """Send trace files, or stored spans, through a running server.

    Nothing is counted twice: spans that the server has are recognised, findings keep their ids.
    """
    if bool(paths) == bool(since):
        raise UserError(Problem("replay", "needs either files or --from", "one of them"))
    if since:
        answer = _again(context, since, until)
        print_json(answer) if as_json else click.echo(f"{answer['messages']} stored messages sent again")
        return OK
    sender = Sender(endpoint or f"http://{context.config.receive.http}", context.config.receive.token)
    sent = send_files(paths, sender)
    sender.close()
    if as_json:
        print_json(sent)
    else:
        click.echo(f"{sent.spans} spans sent in {sent.requests} requests, {sent.rejected} rejected")
    for problem in sent.problems:
        click.echo(str(problem), err=True)
    return USAGE if sent.problems or sent.rejected else OK


def _again(context: Context, since: str, until: str | None) -> dict[str, int]:
    given = {"since": str(nanos(since)), **({"until": str(nanos(until))} if until else {})}
    with client_of(context.config) as client:
        try:
            response = client.post("/api/v1/replay", json=given, headers={OWN_HEADER: "1"}, timeout=600.0)
            response.raise_for_status()
        except httpx.HTTPError as error:
            raise UnreachableError(
                Problem(str(client.base_url), f"no answer: {error}", "a running `otelmon serve`", "start it")
            ) from None
        answer: dict[str, int] = response.json()
        return answer
