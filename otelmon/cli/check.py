"""otelmon check: judge files, without a server."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click
import msgspec

from otelmon.app.offline import Report, check_paths
from otelmon.cli.common import Context, ReaderGoneError, for_a_reader
from otelmon.cli.formats import FORMATS
from otelmon.vocabulary.errors import ANSWER_NO, OK, USAGE
from otelmon.vocabulary.finding import SEVERITIES, level


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--catalog", type=click.Path(), help="The operator's catalogue: tools and policy (YAML or JSON).")
@click.option("--rules", "rules_dirs", multiple=True, type=click.Path(), help="A folder with more rules (repeatable).")
@click.option("--trust-approvals/--no-trust-approvals", default=True, show_default=True, help="Whether approvals that the spans themselves assert count; otherwise only those of detect.trusted_services.")  # fmt: skip
@click.option("--together", is_flag=True, help="All files are one world: runs of one conversation meet.")
@click.option("--format", "form", type=click.Choice(sorted(FORMATS)), default="text", show_default=True)
@click.option("--fail-on", type=click.Choice(SEVERITIES), default="high", show_default=True, help="Exit with 1 when a finding has at least this severity.")  # fmt: skip
@click.pass_obj
def command(
    context: Context,
    paths: tuple[Path, ...],
    catalog: str | None,
    rules_dirs: tuple[str, ...],
    trust_approvals: bool,
    together: bool,
    form: str,
    fail_on: str,
) -> int:
    """Judge traces or transcripts in files.

    PATH: OTLP JSON or protobuf (one request, or JSON lines), or chat transcripts ({id, tools,
    messages} JSON lines); .gz too. Each file, and each line, is a world of its own. Log records in
    x.logs.otlp.json belong to x.otlp.json when both are named.
    """
    context.override("catalogue", catalog)
    context.override("rules_dirs", list(rules_dirs) or None)
    laws = msgspec.structs.replace(context.laws(), trust_approvals=trust_approvals)
    report = check_paths(paths, laws, context.config, together)
    with suppress(ReaderGoneError), for_a_reader():  # the answer is the same when nobody reads all of it
        click.echo(FORMATS[form](report), nl=False)
    for problem in (*report.problems, *context.settings.expired):
        click.echo(str(problem), err=True)
    return _exit_code(report, fail_on)


def _exit_code(report: Report, fail_on: str) -> int:
    worst = max((level(finding.severity) for finding in report.findings), default=-1)
    if worst >= SEVERITIES.index(fail_on):
        return ANSWER_NO
    return USAGE if report.problems else OK
