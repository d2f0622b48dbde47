"""Spans of no agent dialect: HTTP clients are evidence, the rest keeps its place in the tree."""

from __future__ import annotations

import re

from otelmon.assemble.dialects._fields import CLIENT, first_text, reading, text_of, whole_number
from otelmon.assemble.dialects._shows import Shows
from otelmon.assemble.history import History
from otelmon.vocabulary.reading import HttpFields, Reading
from otelmon.vocabulary.span import Attributes, Span

NAME = "other"
PRIORITY = 1000
SHOWS = Shows(
    instrumentation="Anything else",
    arguments="no",
    results="no",
    definitions="no",
    user_text="no",
    final_message="no",
    conversation="partly",
    errors="no",
    timeouts="no",
    setting="one of the other dialects beside it",
    note="HTTP client spans count as evidence of what a call sent. session.id and user.id are read.",
)

_METHOD = ("http.request.method", "http.method")
_URL = ("url.full", "http.url")
_STATUS = ("http.response.status_code", "http.status_code")
_RESENT = ("http.request.resend_count", "http.resend_count")
_KEY_HEADER = re.compile(r"^http\.request\.header\.(x[-_])?idempotency[-_]key$", re.IGNORECASE)


def matches(span: Span) -> bool:  # noqa: ARG001 - every dialect has this form; this one takes what is left
    return True


def read(span: Span, history: History) -> Reading:  # noqa: ARG001 - as above: no messages here
    """An HTTP client span, or `other`."""
    method = first_text(span.attributes, *_METHOD)
    if method is not None and span.kind == CLIENT:
        return reading(span, NAME, "http", http=_http(span.attributes, method))
    return reading(span, NAME, "other")


def _http(attributes: Attributes, method: str) -> HttpFields:
    key = next((attributes[k] for k in attributes if _KEY_HEADER.match(k)), None)
    if isinstance(key, list | tuple) and key:
        key = key[0]
    return HttpFields(
        method=method,
        url=first_text(attributes, *_URL) or _assembled_url(attributes),
        status_code=_first_number(attributes, _STATUS),
        resend_count=_first_number(attributes, _RESENT) or 0,
        idempotency_key=text_of(key),
        error_type=first_text(attributes, "error.type"),
    )


def _assembled_url(attributes: Attributes) -> str:
    host = first_text(attributes, "server.address", "net.peer.name", "http.host") or ""
    return host + (first_text(attributes, "url.path", "http.target") or "")


def _first_number(attributes: Attributes, keys: tuple[str, ...]) -> int | None:
    return next((n for n in (whole_number(attributes.get(k)) for k in keys) if n is not None), None)
