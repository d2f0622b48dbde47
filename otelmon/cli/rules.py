"""otelmon rules: list, show, test, new, dry-run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click
import msgspec

from otelmon.cli import dry_run
from otelmon.cli.common import Context, print_json, print_table
from otelmon.rules.examples import run_rule_tests
from otelmon.rules.model import Rule
from otelmon.rules.mutate import survivors
from otelmon.rules.templates import GENERIC, new_rule
from otelmon.vocabulary.errors import ANSWER_NO, OK, Problem, UserError


@click.group()
def command() -> None:
    """What is checked."""


command.add_command(dry_run.command)


@command.command("list")
@click.option("--drafts", is_flag=True, help="Also rules that are being written.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_(context: Context, drafts: bool, as_json: bool) -> int:
    """All rules in force, with the version that their findings carry and where each is from."""
    rules = context.laws(drafts).rules.rules.values()
    if as_json:
        print_json([{"rule": rule.id, **_facts(rule), "title": rule.title} for rule in rules])
        return OK
    rows = [
        (rule.id, rule.severity, rule.status, rule.family, rule.version, _origin(rule), rule.title) for rule in rules
    ]
    print_table(("rule", "severity", "status", "family", "version", "origin", "title"), rows)
    return OK


def _facts(rule: Rule) -> dict[str, object]:
    return {
        "severity": rule.severity, "status": rule.status, "family": rule.family, "version": rule.version,
        "origin": rule.origin, "overridden": list(rule.overridden), "path": rule.path,
    }  # fmt: skip


def _origin(rule: Rule) -> str:
    """Where it is from; a star when the configuration changes it."""
    return rule.origin + ("*" if rule.overridden else "")


@command.command()
@click.argument("rule_id")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def show(context: Context, rule_id: str, as_json: bool) -> int:
    """One rule: what it means, what it needs, what to do."""
    rule = _chosen(context, (rule_id,))[0]
    if as_json:
        print_json({**rule.raw, **_facts(rule), "params": msgspec.to_builtins(rule.params)})
        return OK
    click.echo(f"{rule.id}: {rule.title}  [{rule.severity}, {rule.status}, {rule.family}]\n")
    click.echo(rule.description.strip() + "\n")
    params = msgspec.to_builtins(rule.params)
    click.echo(f"version      {rule.version}, which findings of it carry")
    click.echo(f"from         {rule.origin}: {rule.path}")
    if rule.overridden:
        click.echo(f"overridden   {', '.join(rule.overridden)}, by the configuration")
    click.echo(f"needs        {', '.join(rule.needs) or 'nothing'}")
    click.echo(f"parameters   {', '.join(f'{key}={value}' for key, value in params.items()) or 'none'}")
    click.echo(f"tags         {', '.join(rule.tags) or 'none'}")
    for text in rule.false_positives:
        click.echo(f"may be wrong {text.strip()}")
    click.echo("\n" + rule.runbook.strip())
    return OK


@command.command()
@click.argument("rule_ids", nargs=-1)
@click.option("--mutate", is_flag=True, help="Also change every parameter: a change no test notices is a failure.")
@click.pass_obj
def test(context: Context, rule_ids: tuple[str, ...], mutate: bool) -> int:
    """Run the tests inside the rule files."""
    verdicts: Counter[str] = Counter()
    for rule in _chosen(context, rule_ids):
        for result in run_rule_tests(rule):
            verdicts[result.verdict] += 1
            if result.verdict != "pass":
                click.echo(str(result))
        for mutant in survivors(rule) if mutate else ():
            verdicts["survived"] += 1
            click.echo(f"SURVIVED {rule.id}: {mutant}")
    words = {"pass": "passed", "FAIL": "failed", "ERROR": "could not run", "survived": "parameter changes not noticed"}
    click.echo(", ".join(f"{verdicts[key]} {word}" for key, word in words.items() if verdicts[key] or key == "pass"))
    return OK if set(verdicts) <= {"pass"} else ANSWER_NO


@command.command()
@click.argument("rule_id")
@click.option("--check", "generic", type=click.Choice(GENERIC), help="Write a rule for this generic check: YAML only. Without, a check in Python too.")  # fmt: skip
@click.option("--checks", "checks_dir", type=click.Path(path_type=Path), default=Path("otelmon/checks"), show_default=True)  # fmt: skip
@click.option("--rules", "rules_dir", type=click.Path(path_type=Path), default=Path("rules"), show_default=True)
def new(rule_id: str, generic: str | None, checks_dir: Path, rules_dir: Path) -> int:
    """Write a new rule, and its check, that load and pass their tests: change them into what you mean."""
    for path in new_rule(rule_id, checks_dir, rules_dir, generic).files:
        click.echo(str(path))
    return OK


def _chosen(context: Context, rule_ids: tuple[str, ...]) -> list[Rule]:
    rules = context.laws(drafts=True).rules.rules
    unknown = [rule_id for rule_id in rule_ids if rule_id not in rules]
    if unknown:
        raise UserError(*(Problem(r, "there is no such rule", f"one of {', '.join(rules)}") for r in unknown))
    return [rules[rule_id] for rule_id in rule_ids] or list(rules.values())
