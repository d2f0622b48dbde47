"""The pages: incidents, runs with their calls, values and findings, and rules with their runbooks.

Everything shown may be hostile: templates escape, the policy of content forbids scripts that are not
ours, long values are cut with a link-free note.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import jinja2
import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from otelmon import __version__
from otelmon.metrics.alerts import ALERTS, runbook
from otelmon.store.results import FindingDetail, MessageDetail
from otelmon.vocabulary.errors import OtelmonError, UserError
from otelmon.vocabulary.finding import FAMILIES, SEVERITIES
from otelmon.web import coverage
from otelmon.web.evidence import record_of
from otelmon.web.reads import answer
from otelmon.web.shown import FILTERS
from otelmon.web.site import Site

PAGE = 50
RUNS_TOLD = 5  # runs whose words an incident's page shows
USER_WORDS = 3  # messages of the user in front of a finding
SHOWN_FIRST = 10  # findings of a run before the rest is folded
LONG_RUN = 30  # items above which calls without findings are folded
STATES = ("open", "acknowledged", "resolved", "retracted")


def routes(site: Site) -> list[BaseRoute]:
    """The pages' routes."""
    pages = _Pages(site)
    return [
        Route("/", pages.page(pages.incidents)),
        Route("/incidents/{id}", pages.page(pages.incident)),
        Route("/runs", pages.page(pages.runs)),
        Route("/runs/{id:path}", pages.page(pages.run)),
        Route("/rules", pages.page(pages.rules)),
        Route("/rules/{id}", pages.page(pages.rule)),
        Route("/coverage", pages.page(coverage.page(lambda: site.laws.rules.rules.values(), pages.read))),
        Route("/runbooks/{id}", pages.page(pages.runbook)),
        Mount("/static", StaticFiles(packages=[("otelmon.web", "static")])),
    ]


class Told(msgspec.Struct, frozen=True):
    """What the user said in a run, the last words at the end, and what the agent said last."""

    user: tuple[str, ...]
    agent: str


class _NotFoundError(UserError):
    pass


class _Pages:
    def __init__(self, site: Site) -> None:
        self._site = site
        self._templates = jinja2.Environment(
            loader=jinja2.PackageLoader("otelmon.web"), autoescape=True, undefined=jinja2.StrictUndefined,
            trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        self._templates.filters.update(FILTERS)
        self._templates.globals.update(version=__version__, severities=SEVERITIES, families=FAMILIES, states=STATES)

    def page(self, build: Callable[[Request], tuple[str, dict[str, Any]]]) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint that shows a template with what `build` gives; failures are pages too."""

        def render(request: Request) -> Response:
            try:
                template, values = build(request)
                status = 200
            except _NotFoundError:
                template, values, status = "error.html", {"message": "There is nothing with this id."}, 404
            except OtelmonError as error:
                template, values, status = "error.html", {"message": str(error)}, 400
            html = self._templates.get_template(template).render(
                values, path=request.url.path, problems=[*self._site.problems(), *self._refused_laws()]
            )
            return HTMLResponse(html.encode("utf-8", "replace"), status)

        async def endpoint(request: Request) -> Response:
            return await run_in_threadpool(render, request)

        return endpoint

    def _refused_laws(self) -> list[str]:
        """Why the rules in force are older than what the files say."""
        last = self._site.in_force().reload
        if last is None or not last.mistakes:
            return []
        return [f"rules: the files hold mistakes, so an older set is in force: {'; '.join(last.mistakes)}"]

    def read(self, name: str, **given: Any) -> Any:
        if self._site.database is None:
            raise UserError()
        found = answer(self._site.database, name, {k: v for k, v in given.items() if v not in (None, "")})
        if found is None:
            raise _NotFoundError()
        return found

    # -- what each page shows ----------------------------------------------------------------------
    def incidents(self, request: Request) -> tuple[str, dict[str, Any]]:
        query = request.query_params
        chosen = {name: query.get(name, "") for name in ("states", "severity", "family", "agent", "tool")}
        offset = _number(query.get("offset", "0"))
        page = self.read("incidents", **chosen, limit=PAGE, offset=offset)
        following = offset + PAGE if offset + PAGE < page.total else None
        return "incidents.html", {
            "page": page,
            "chosen": chosen,
            "offset": offset,
            "following": following,
            "size": PAGE,
        }

    def incident(self, request: Request) -> tuple[str, dict[str, Any]]:
        detail = self.read("incident", id=request.path_params["id"])
        told = {run_id: self._told(run_id) for run_id in _first_runs(detail.findings)}
        rules = self._site.laws.rules.rules
        lead = detail.findings[0] if detail.findings else None
        return "incident.html", {
            "detail": detail,
            "incident": detail.incident,
            "told": told,
            "rules": {rule_id: rules[rule_id] for rule_id in detail.incident.rule_ids if rule_id in rules},
            "lead": lead,
            "record": record_of(lead.calls) if lead else [],
        }

    def _told(self, run_id: str) -> Told:
        """The words around a run; none when the run itself has left the store."""
        if self._site.database is None:
            return Told((), "")
        detail = answer(self._site.database, "run", {"id": run_id})
        messages = [item for item in detail.timeline if isinstance(item, MessageDetail)] if detail else []
        users = tuple(message.text for message in messages if message.role == "user" and message.text.strip())
        last = next((message.text for message in reversed(messages) if message.final), "")
        return Told(users[-USER_WORDS:], last)

    def runs(self, request: Request) -> tuple[str, dict[str, Any]]:
        query = request.query_params
        chosen = {name: query.get(name, "") for name in ("agent", "service", "conversation", "trace")}
        offset = _number(query.get("offset", "0"))
        runs = self.read("runs", **chosen, limit=PAGE, offset=offset)
        following = offset + PAGE if len(runs) == PAGE else None
        return "runs.html", {"runs": runs, "chosen": chosen, "offset": offset, "following": following, "size": PAGE}

    def run(self, request: Request) -> tuple[str, dict[str, Any]]:
        detail = self.read("run", id=request.path_params["id"])
        at: dict[str, list[Any]] = {}
        for found in detail.findings:
            anchor = found.finding.span_ids[0] if found.finding.span_ids else ""
            at.setdefault(anchor, []).append(found)
        return "run.html", {
            "detail": detail,
            "run": detail.run,
            "at": at,
            "folded": len(detail.timeline) > LONG_RUN,
            "shown_first": SHOWN_FIRST,
        }

    def rules(self, _: Request) -> tuple[str, dict[str, Any]]:
        undecided = Counter[str]()
        for count in self.read("not_evaluable"):
            undecided[count.rule_id] += count.amount
        return "rules.html", {"rules": list(self._site.laws.rules.rules.values()), "undecided": undecided}

    def rule(self, request: Request) -> tuple[str, dict[str, Any]]:
        rule = self._site.laws.rules.rules.get(request.path_params["id"])
        if rule is None:
            raise _NotFoundError()
        undecided = [count for count in self.read("not_evaluable") if count.rule_id == rule.id]
        return "rule.html", {"rule": rule, "params": msgspec.to_builtins(rule.params), "undecided": undecided}

    def runbook(self, request: Request) -> tuple[str, dict[str, Any]]:
        alert = next((alert for alert in ALERTS if alert.name == request.path_params["id"]), None)
        if alert is None:
            raise _NotFoundError()
        return "runbook.html", {"alert": alert, "text": runbook(alert)}


def _first_runs(findings: Sequence[FindingDetail]) -> list[str]:
    return list(dict.fromkeys(found.finding.run_id for found in findings))[:RUNS_TOLD]


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
