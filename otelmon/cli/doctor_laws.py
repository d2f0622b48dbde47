"""What doctor says of rules: plug-ins, the last reload, suppressions, checks that raised, conditions undecided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import click
import httpx
import msgspec

from otelmon.app.plugins import load_plugins
from otelmon.cli.common import Context, plain
from otelmon.cli.times import when
from otelmon.vocabulary.config import Config
from otelmon.vocabulary.errors import UserError
from otelmon.web.in_force import InForce


class Answer(msgspec.Struct, frozen=True):
    """One thing that was looked at. `ok` None: not there, and not needed yet; or worth knowing and not wrong."""

    what: str
    ok: bool | None
    says: str


def print_answer(answer: Answer) -> None:
    """One line, or more where the answer has more."""
    mark = {True: "ok     ", False: "WRONG  ", None: "-      "}[answer.ok]
    click.echo(plain(f"{mark}{answer.what}: {answer.says}"))


def plugin_answers(config: Config) -> Iterator[Answer]:
    """Each plug-in that is allowed, and those that are installed and not allowed."""
    for plugin in load_plugins(config.plugins):
        what = f"plug-in {plugin.name}"
        if not plugin.allowed:
            yield Answer(what, None, f"{plugin.version} is installed and not loaded: it is not among `plugins` of the configuration")  # fmt: skip
        elif plugin.errors:
            yield Answer(what, False, "; ".join(plugin.errors))
        else:
            yield Answer(what, True, f"{plugin.version}, {len(plugin.checks)} checks, {len(plugin.rules)} rules")


def in_force_answers(client: httpx.Client, context: Context) -> Iterator[Answer]:
    """What the running server judges by, and how that stands."""
    response = client.get("/api/v1/rules")
    if not response.is_success:
        yield Answer("rules in force", False, f"the server answers {response.status_code}")
        return
    found = msgspec.json.decode(response.content, type=InForce)
    yield from _reload(found, _version_here(context))
    yield from _suppressions(found)
    yield from _trouble(found)


def _version_here(context: Context) -> str | None:
    """The version of the rules as the files here give it; None when they give none."""
    try:
        return context.laws().rules.version
    except UserError:
        return None


def _reload(found: InForce, here: str | None) -> Iterator[Answer]:
    last = found.reload
    if last is not None and last.mistakes:
        yield Answer("rules in force", False, f"version {found.version}, which is older than what the files say since {when(last.at_unix_nano)}: {'; '.join(last.mistakes)}")  # fmt: skip
    else:
        since = f" since {when(last.at_unix_nano)}" if last else ", read at the start only"
        yield Answer("rules in force", True, f"version {found.version}, {len(found.rules)} rules{since}")
    if last is not None and last.restart:
        yield Answer("settings", None, f"changed, and in force only after a restart: {', '.join(last.restart)}")
    if here is not None and here != found.version:
        yield Answer("rules here", None, f"version {here}: the server has another configuration, or has not looked yet")


def _suppressions(found: InForce) -> Iterator[Answer]:
    for one in found.suppressions:
        where = "".join(f", {field} {value}" for field, value in one.where.items())
        what = f"suppression of {one.rule}{where}"
        if one.expired:
            yield Answer(what, False, f"expired on {one.expires} ({one.reason}); remove it, or give it another date")
        elif not one.matched and found.judges:
            yield Answer(what, None, f"has kept nothing back since the server started ({one.reason}, until {one.expires})")  # fmt: skip
        else:
            yield Answer(what, True, f"until {one.expires} ({one.reason})")
    if found.suppressed:
        yield Answer("suppressed findings", None, f"{_counts(found.suppressed.items())} since the server started")


def _trouble(found: InForce) -> Iterator[Answer]:
    for rule_id, times in found.check_errors.items():
        raised = found.raised.get(rule_id, "something")
        yield Answer(f"check of {rule_id}", False, f"raised {times} times since the server started, last {raised}; this is a bug of the check")  # fmt: skip
    if found.undecided:
        yield Answer("conditions", None, f"could not be decided, and counted as false: {_counts(found.undecided.items())} times since the server started")  # fmt: skip
    if not found.judges:
        yield Answer("counts of rules", None, "this server does not detect; ask the process that does: --set web.listen=HOST:PORT")  # fmt: skip


def _counts(numbers: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{rule_id} {number}" for rule_id, number in numbers)
