"""Signs of trouble on a span. Only recorded here: what they mean for the outcome is decided later.

Signals: `status_error`, `status_ok`, `error_type`, `exception`, `timeout`, `cancelled`,
`abandoned`, `denied`, `pending`, `is_error`, `no_reason` (failed, and nothing says how).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from otelmon.vocabulary.span import Span

_TIMEOUT_TYPE = re.compile(r"time[\W_]?d?[\W_]?out|deadline|ETIMEDOUT|-32001", re.IGNORECASE)
_TIMEOUT_TEXT = re.compile(
    r"\btime[ds]?[ -]?out\b|\bdeadline exceeded\b|\bETIMEDOUT\b|\bno response received\b|"
    r"\bdid(?: not|n['’]t) (?:answer|respond|reply|return) (?:in|within|after) (?:time\b|[\d.]+ ?m?s)",
    re.IGNORECASE,
)
_TIMED_OUT_AFTER = "imed out after "  # either case of its first letter; far cheaper than a regex
_CANCELLED = re.compile(r"cancell?ed|AbortError|interrupted", re.IGNORECASE)
_DENIED = re.compile(r"denied|rejected|PermissionDenied|ApprovalRejected", re.IGNORECASE)
_PENDING = re.compile(r"ApprovalRequired|CallDeferred|GraphInterrupt", re.IGNORECASE)
_TOOL_ERROR = re.compile(r"(^|\.)Tool_?Error$", re.IGNORECASE)
_TRACEBACK = "Traceback (most recent call last)"
_MAX_RESULT = 2_000


def exception_of(span: Span) -> tuple[str, str] | None:
    """(type, message) of the last exception event; some SDKs record one twice."""
    for event in reversed(span.events):
        if event.name == "exception":
            kind, message = event.attributes.get("exception.type"), event.attributes.get("exception.message")
            return (kind if isinstance(kind, str) else "", message if isinstance(message, str) else "")
    return None


def error_type(span: Span) -> str | None:
    """The type of the failure: `timeout` whenever it was one, else the type as sent."""
    exception = exception_of(span)
    declared = span.attributes.get("error.type")
    types = [t for t in (str(declared) if declared not in (None, "") else "", exception[0] if exception else "") if t]
    if not types:
        return "timeout" if _status_timeout(span) else None
    if any(_TIMEOUT_TYPE.search(t) for t in types) or _status_timeout(span):
        return "timeout"
    return "tool_error" if _TOOL_ERROR.search(types[0]) else types[0]


def _status_timeout(span: Span) -> bool:
    return span.status_code == 2 and bool(_TIMEOUT_TEXT.search(span.status_message))


def error_message(span: Span) -> str | None:
    """What the failure said, without its traceback."""
    exception = exception_of(span)
    text = (exception[1] if exception else "") or (span.status_message if span.status_code == 2 else "")
    text = text.split(_TRACEBACK)[0].strip()
    # A bare exception leaves only its own name: "TimeoutError:", "TimeoutError()".
    return None if not text or (exception and text.rstrip(":()' ") == exception[0].rpartition(".")[2]) else text


def signals(span: Span, kind: str | None, result_text: str | None = None, extra: Iterable[str] = ()) -> tuple[str, ...]:
    """The signals of a span, sorted. `kind` is its error type; `extra` is what only the dialect
    knows, such as `is_error`."""
    found = set(extra)
    exception = exception_of(span)
    if span.status_code == 2:
        found.add("status_error")
    elif span.status_code == 1:
        found.add("status_ok")
    if span.attributes.get("error.type") not in (None, ""):
        found.add("error_type")
    if exception is not None:
        found.add("exception")
    if kind == "timeout" or (result_text and _TIMED_OUT_AFTER in result_text[:_MAX_RESULT]):
        found.add("timeout")
    if span.status_code == 2 and span.status_message.strip() == "Abandoned":
        found.add("abandoned")
    if kind or exception:
        found |= _by_type(f"{kind or ''} {exception[0] if exception else ''}")
    return tuple(sorted(found))


def _by_type(types: str) -> set[str]:
    found = set()
    if _CANCELLED.search(types):
        found.add("cancelled")
    if _PENDING.search(types):
        found.add("pending")
    elif _DENIED.search(types):
        found.add("denied")
    return found
