"""otelmon rules dry-run: what rules would do on runs that were recorded."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from otelmon.app.plugins import extra_of, load_plugins
from otelmon.cli.common import Context, plain, print_json
from otelmon.cli.times import nanos, when
from otelmon.rules.loader import load_rule
from otelmon.rules.model import Rule
from otelmon.vocabulary.errors import ANSWER_NO, OK, USAGE, Problem, UserError

if TYPE_CHECKING:
    from otelmon.app.dry_run import DryRun, Forecast
    from otelmon.app.offline import Report
    from otelmon.detect.engine import Laws

SUFFIXES = (".yaml", ".yml")
MB = 1_000_000


@click.command("dry-run")
@click.argument("rules", nargs=-1, metavar="[RULE|FILE]...")
@click.option("--on", "paths", multiple=True, type=click.Path(path_type=Path), help="Trace or transcript files to judge instead of what is stored (repeatable).")  # fmt: skip
@click.option("--together", is_flag=True, help="With --on: all files are one world.")
@click.option("--since", metavar="TIME", help="Only what was received since then (ISO time).")
@click.option("--until", metavar="TIME", help="Only what was received before then.")
@click.option("--most", type=click.IntRange(1), default=256, show_default=True, metavar="MB", help="Most of what is stored to read, oldest first.")  # fmt: skip
@click.option("--show", type=click.IntRange(0), default=3, show_default=True, help="Examples of each rule.")
@click.option("--max-pages", type=float, metavar="PER DAY", help="Exit with 1 when a rule would page more often than this.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(
    context: Context,
    rules: tuple[str, ...],
    paths: tuple[Path, ...],
    together: bool,
    since: str | None,
    until: str | None,
    most: int,
    show: int,
    max_pages: float | None,
    as_json: bool,
) -> int:
    """What rules would do on stored runs, and what would be other than with the rules in force.

    RULE is the id of a rule, drafts included; FILE a rule file that is not in force: it stands for the rule of
    its id. None: all rules in force. The runs are those that the running server has stored, or the data folder when
    none runs, or the files of --on. Rules that are tried count as stable; catalogue, settings and the rules in force
    are those of the configuration here.
    """
    from otelmon.app.dry_run import forecast, with_tried

    in_force = context.laws()
    tried = _tried(context, rules)
    laws = with_tried(in_force, tried)
    both = [in_force] if laws.rules.version == in_force.rules.version else [in_force, laws]
    reports, left_out_from, source = _reports(context, both, paths, together, (since, until), most * MB)
    wanted = list(dict.fromkeys(rule.id for rule in tried))
    found = forecast(reports[0], reports[-1], laws, context.config, wanted, show, source, left_out_from)
    print_json(found) if as_json else click.echo(as_text(found))
    problems = reports[-1].problems
    for problem in problems:
        click.echo(str(problem), err=True)
    if max_pages is not None and any((rule.pages_per_day or 0) > max_pages for rule in found.rules):
        return ANSWER_NO
    return USAGE if problems else OK


def _tried(context: Context, names: Sequence[str]) -> list[Rule]:
    """The rules that are named. Raises UserError with every mistake."""
    known = context.laws(drafts=True).rules.rules
    checks = extra_of(load_plugins(context.config.plugins)).checks
    problems: list[Problem] = []
    tried: list[Rule] = []
    for name in names:
        if name.endswith(SUFFIXES):
            try:
                tried.append(load_rule(Path(name), checks=checks))
            except UserError as error:
                problems.extend(error.problems)
        elif name in known:
            tried.append(known[name])
        else:
            problems.append(Problem(name, "there is no such rule", f"a .yaml file, or one of {', '.join(known)}"))
    if problems:
        raise UserError(*problems)
    return tried


def _reports(
    context: Context,
    laws: Sequence[Laws],
    paths: Sequence[Path],
    together: bool,
    times: tuple[str | None, str | None],
    most: int,
) -> tuple[list[Report], int, str]:
    """Reports, one for each of the laws; since when something is left out; and what was judged, in words."""
    from otelmon.app.dry_run import dry_run_files, dry_run_stored
    from otelmon.app.reader import open_reader

    if paths:
        if any(times):
            raise UserError(Problem("dry-run", "--since and --until do not go with --on", "one of them"))
        return dry_run_files(paths, laws, context.config, together), 0, ", ".join(map(str, paths))
    since, until = (nanos(text) if text else None for text in times)
    with open_reader(context.config, time.time_ns()) as reader:
        reports, left_out_from = dry_run_stored(reader.payloads(since, until), laws, context.config, most)
        return reports, left_out_from, reader.place


def as_text(found: DryRun) -> str:
    """For a person: what was judged, then each rule with its volume and examples."""
    first, last = when(found.first_unix_nano), when(found.last_unix_nano)
    lines = [f"{found.runs} runs, {found.tool_calls} tool calls, {found.spans} spans of {found.source}: {first} to {last} ({found.days:.1f} days)"]  # fmt: skip
    if found.left_out_from:
        lines.append(f"left out: what was received since {when(found.left_out_from)}; read more with --most, or other parts with --since")  # fmt: skip
    silent = [rule.rule_id for rule in found.rules if not found.compared and not _speaks(rule)]
    for rule in found.rules:
        if rule.rule_id not in silent:
            lines.extend(_rule(rule, found.compared))
    lines += ["", f"silent     {', '.join(silent)}"] if silent else []
    return plain("\n".join(lines))


def _speaks(rule: Forecast) -> bool:
    """Whether there is more to say of a rule than that it finds nothing."""
    return bool(rule.findings or rule.suppressed or rule.undecided or rule.check_errors)


def _rule(rule: Forecast, compared: bool) -> list[str]:
    counts = ", ".join(f"{number} {severity}" for severity, number in rule.severities.items())
    lines = [
        "",
        f"{rule.rule_id}  [{rule.severity}, {rule.status}, {rule.family}, {rule.origin}, version {rule.version}]",
        f"  findings   {rule.findings} in {rule.runs} runs" + (f": {counts}" if counts else ""),
        f"  incidents  {rule.incidents} opened, {rule.alone} of them by this rule alone; {rule.pages} grave enough to page",
        f"  volume     {_volume(rule)}",
    ]
    if compared:
        lines.append(f"  against    the rules in force: {rule.new} new, {rule.gone} gone, {rule.changed} changed")
    lines += [f"  suppressed {rule.suppressed} findings that the configuration accepts"] if rule.suppressed else []
    lines += [f"  undecided  {rule.undecided} times a condition could not be decided"] if rule.undecided else []
    lines += [f"  failed     its check raised {rule.raised} ({rule.check_errors} times)"] if rule.check_errors else []
    why = ", ".join(f"{reason} in {runs} runs" for reason, runs in rule.not_evaluable.items())
    lines += [f"  undecidable {why}"] if why else []
    for example in rule.examples:
        finding = example.finding
        lines.append(f"  {example.kind:<8} {finding.severity:<8} {finding.summary}")
        lines.append(
            f"           run {finding.run_id}" + (f", agent {finding.agent_name}" if finding.agent_name else "")
        )
    return lines


def _volume(rule: Forecast) -> str:
    if rule.findings_per_day is None or rule.pages_per_day is None:
        return "can not be told: the events lie less than an hour apart"
    day, week = rule.findings_per_day, rule.findings_per_day * 7
    return f"{day:.1f} findings a day, {week:.1f} a week; {rule.pages_per_day:.1f} pages a day, {rule.pages_per_day * 7:.1f} a week"
