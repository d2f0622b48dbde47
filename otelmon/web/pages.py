"""The pages: incidents, and one run with its calls, values and findings."""

from __future__ import annotations

from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from otelmon.web.site import Site


def routes(site: Site) -> list[Route]:
    """The pages' routes."""

    def index(_: object) -> Response:
        return PlainTextResponse("\n".join(site.problems() or ["ready"]))

    return [Route("/", index)]
