"""otelmon doctor: what is needed, whether it is there, and how to get it."""

from __future__ import annotations

import shlex
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click

from otelmon.app.catalogue_files import latest
from otelmon.app.catalogue_write import merged
from otelmon.app.reader import Reader, client_of, open_reader, server_answers
from otelmon.app.runtime import DATABASE
from otelmon.checks.lib.scopes import broad_scopes
from otelmon.cli.common import Context, print_json
from otelmon.cli.doctor_laws import Answer, in_force_answers, plugin_answers, print_answer
from otelmon.cli.times import when
from otelmon.detect.engine import Laws
from otelmon.store.accounts import Refused, Totals
from otelmon.store.results import SuppressedCount
from otelmon.vocabulary.catalogue import Tool
from otelmon.vocabulary.config import Config
from otelmon.vocabulary.errors import OK, UNREACHABLE, OtelmonError
from otelmon.web.coverage import AgentCoverage, coverage, of_agent

SHOWN_AGENTS = 20
SHOWN_TOOLS = 5


@click.command()
@click.argument("agent", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(context: Context, agent: str | None, as_json: bool) -> int:
    """Look at everything the monitor needs; exit code 3 when something is missing or wrong.

    With AGENT: which rules can be evaluated for this agent, which can not, why, and what would change it.
    """
    if agent is not None:
        return _of_agent(context, agent, as_json)
    answers = list(_answers(context))
    if as_json:
        print_json(answers)
    else:
        for answer in answers:
            print_answer(answer)
    return UNREACHABLE if any(answer.ok is False for answer in answers) else OK


def _of_agent(context: Context, name: str, as_json: bool) -> int:
    with open_reader(context.config, time.time_ns()) as reader:
        found = of_agent(_coverage(context, reader), name)
    if as_json:
        print_json(found)
        return OK
    click.echo(f"{found.agent_name or 'unknown agent'}: {found.runs} runs, {'; '.join(found.instrumentations)}")
    for rule in found.rules:
        click.echo(
            f"{rule.evaluated:<14}{rule.rule_id}" + (f" ({rule.runs} of {found.runs} runs)" if rule.reasons else "")
        )
        for reason in rule.reasons:
            click.echo(f"{'':<14}  {reason.reason} in {reason.runs} runs")
            for line in reason.settings:
                click.echo(f"{'':<14}    {line}")
    return OK


def _coverage(context: Context, reader: Reader) -> tuple[AgentCoverage, ...]:
    return coverage(context.laws().rules.rules.values(), reader.read("agents"), reader.read("not_evaluable"))


def _answers(context: Context) -> Iterator[Answer]:
    yield _try("configuration", lambda: f"{len(context.settings.describe())} keys, see `otelmon config show`")
    config = context.config
    yield _try("rules and catalogue", lambda: _laws(context.laws()))
    yield from plugin_answers(config)
    yield _try("data folder", lambda: _folder(config))
    if config.bus == "kafka":
        yield _try("Kafka", lambda: _kafka(config))
    with client_of(config) as client:
        serving = server_answers(client)
        yield Answer(
            "server", True if serving else None, f"{'answers' if serving else 'none answers'} on {config.web.listen}"
        )
        if serving:
            ready = client.get("/readyz")
            yield Answer("stages", ready.is_success, ready.text.strip().replace("\n", "; "))
            yield from in_force_answers(client, context)
        else:
            yield from (Answer("suppression", False, str(expired)) for expired in context.settings.expired)
    if serving or (Path(config.data) / DATABASE).exists():
        yield from _stored(context)


def _try(what: str, look: Callable[[], str]) -> Answer:
    try:
        return Answer(what, True, look())
    except OtelmonError as error:
        return Answer(what, False, str(error))
    except OSError as error:
        return Answer(what, False, f"{error.filename or what}: {error.strerror}")


def _laws(laws: Laws) -> str:
    tools = len(laws.catalogue.tools) if laws.catalogue else 0
    return f"{len(laws.rules.rules)} rules, {tools} tools in the operator's catalogue"


def _folder(config: Config) -> str:
    folder = Path(config.data)
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    probe = existing / ".otelmon-probe"
    probe.touch()
    probe.unlink()
    return f"{folder} can be written, {shutil.disk_usage(existing).free / 1e9:.1f} GB free"


def _kafka(config: Config) -> str:
    from otelmon.bus.kafka import KafkaBus

    bus = KafkaBus(config.kafka)
    bus.close()
    return f"{config.kafka.bootstrap} answers"


def _stored(context: Context) -> Iterator[Answer]:
    try:
        with open_reader(context.config, time.time_ns()) as reader:
            totals: list[Totals] = reader.read("accounts")
            sizes = reader.read("sizes")
            refused: list[Refused] = reader.read("refused")
            accepted: list[SuppressedCount] = reader.read("suppressed")
            agents = _coverage(context, reader)
            tools = merged(context.laws().catalogue, latest(reader.read("tools")), "").tools
    except OtelmonError as error:
        yield Answer("store", False, str(error))
        return
    yield Answer("store", True, ", ".join(f"{number} {name}" for name, number in sizes.rows.items()))
    for total in totals:
        says = f"{total.received} received = {total.stored} stored + {total.duplicate} again + {total.filtered} filtered + {total.dead_lettered} unreadable + {sum(total.rejected.values())} refused"
        if total.missing:
            says += f"; {total.missing} are not accounted for, which is a bug"
        yield Answer(f"account of {total.topic}/{total.partition}", not total.missing, says)
    if refused:
        reasons = ", ".join(
            f"{one.amount} {one.reason.replace('_', ' ')} (last {when(one.last_unix_nano)})" for one in refused
        )
        yield Answer("refused at the doors", None, reasons)
    yield from _broad(tools)
    if accepted:
        by_rule: Counter[str] = Counter()
        for count in accepted:
            by_rule[count.rule_id] += count.amount
        says = ", ".join(f"{rule_id} {number}" for rule_id, number in sorted(by_rule.items()))
        yield Answer(
            "suppressed findings stored", None, f"{says}: found in the runs stored, and accepted by the configuration"
        )
    for agent in agents[:SHOWN_AGENTS]:
        yield _covered(agent)
    if len(agents) > SHOWN_AGENTS:
        yield Answer("coverage", True, f"and {len(agents) - SHOWN_AGENTS} more agents")


def _broad(tools: Sequence[Tool]) -> Iterator[Answer]:
    """Tools that nobody looked at and that can be made to do anything of a kind."""
    found = [f"{tool.name} ({scopes[0]})" for tool in tools if (scopes := broad_scopes(tool))]
    if found:
        more = f" and {len(found) - SHOWN_TOOLS} more" if len(found) > SHOWN_TOOLS else ""
        yield Answer("broad tools", None, f"{', '.join(found[:SHOWN_TOOLS])}{more}; say their effect in the catalogue, see `otelmon catalog show`")  # fmt: skip


def _covered(agent: AgentCoverage) -> Answer:
    """What can not be evaluated is worth knowing, and nothing is wrong with the monitor."""
    name = agent.agent_name or "unknown agent"
    whole, number = agent.amount("always"), len(agent.rules)
    says = f"{whole} of {number} rules evaluated in all of its {agent.runs} runs that are over"
    if whole < number:
        says += f"; why not, and what would change it: otelmon doctor {shlex.quote(agent.agent_name)}"
    return Answer(f"coverage of {name}", True if whole == number else None, says)
