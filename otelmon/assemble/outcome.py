"""What is known of a call's effect. Span status is one sign among others, never the answer.

`succeeded`: it returned, and nothing says otherwise. `failed`: known not to have happened.
`unknown`: sent, and nobody knows (timeout, cancelled, abandoned, gateway gave up, an error without type
or text). `denied`: refused by a person or a policy. `pending`: accepted, still running.

A call whose span shows no result and no sign of trouble counts as `succeeded` with the source
"status": where results are not written (AutoGen, MCP, content capture off) errors still are, and to
call all of those `unknown` would turn every retry of such an agent into a suspected double effect.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from otelmon.assemble.bodies import BodyError, errors_in_body, is_record_of_failure
from otelmon.assemble.error_texts import asks, lone_text, refused_fields, returns_logs, short_error
from otelmon.vocabulary.event import Outcome
from otelmon.vocabulary.reading import HttpFields, ToolFields

__all__ = ["BodyError", "Verdict", "derive_outcome", "errors_in_body"]

MAX_TEXT = 2_000
MAX_NOTICE = 400

_TIMEOUT = re.compile(
    r"\btime[ds]?[ _-]?out\b|TimeoutError|TimeoutException|Timeout\b|\bdeadline[ _]?exceeded\b|\bDeadlineExceeded\b|"
    r"\bETIMEDOUT\b|-32001\b|\bno response (?:was )?received\b|\bgateway time-?out\b|"
    r"\bdid(?: not|n['’]t) (?:(?:answer|respond|reply)\b|return (?:in|within|after) (?:time\b|[\d.]+ ?m?s))",
    re.IGNORECASE,
)
_NOT_STARTED = re.compile(
    r"connection[ _]?refused|ECONNREFUSED|ConnectionRefused|name or service not known|ENOTFOUND|getaddrinfo|"
    r"no route to host|EHOSTUNREACH|could not resolve (?:the )?(?:host|address|name|domain|proxy)|failed to establish a new connection|connect(?:ion)? ?timeout|"
    r"circuit breaker (?:is )?open",
    re.IGNORECASE,
)
_LOST = re.compile(
    r"connection (?:was )?(?:reset|aborted|closed|lost|dropped)|ECONNRESET|EPIPE|broken pipe|socket hang ?up|"
    r"server disconnected|unexpected eof|incomplete read|remote end closed",
    re.IGNORECASE,
)
_TIMED_OUT = re.compile(r"\btimed out\b|\bdeadline exceeded\b", re.IGNORECASE)
_NOTICE = re.compile(
    r"^\W*(?:the |this |your |mcp )?(?:tool|call|request|operation|connection|query|command|execution|server|api|process|"
    r"function|action|task|error|timeout|\w*_\w+)\b.{0,200}?\b(?:timed out|deadline exceeded)\b",
    re.IGNORECASE,
)
_CONFLICT = re.compile(
    r"\bduplicate\b|\balready (?:exists?|processed|being processed|in progress|completed|submitted|done)\b|\bconflict\b",
    re.IGNORECASE,
)
_DENIED_TEXT = re.compile(
    r"\b(?:user|operator|admin(?:istrator)?|reviewer|human|approver|policy|guardrail|hook)\b[^.\n]{0,40}"
    r"\b(?:den(?:ied|ies)|reject(?:ed|s)?|declin(?:ed|es)|refused|blocked|disallow(?:ed|s)?)\b|"
    r"\b(?:denied|rejected|declined|blocked|refused|disallowed) by (?:the |a |an )?"
    r"(?:user|operator|admin(?:istrator)?|reviewer|human|approver|policy|guardrail|hook)\b|"
    r"^\W*(?:tool (?:call|use) |request |action |call )?(?:was )?(?:permission denied|not approved|approval (?:denied|rejected|was rejected))\b",
    re.IGNORECASE,
)
_PENDING_WORDS = frozenset(
    {"working", "queued", "pending", "in_progress", "in progress", "submitted", "running", "processing", "accepted",
     "scheduled", "started", "in-progress", "enqueued"}
)  # fmt: skip
_HANDLES = ("task_id", "taskid", "job_id", "jobid", "operation_id", "operationid", "run_id", "execution_id", "ticket_id", "poll_url", "status_url", "task", "job", "handle", "operation")  # fmt: skip
_SENT_UNKNOWN = (408, 499, 502, 504, 524)
SHIM_OUTCOMES: dict[str, Outcome] = {
    "completed": "succeeded",
    "succeeded": "succeeded",
    "failed": "failed",
    "not_started": "failed",
    "denied": "denied",
    "timeout_unknown": "unknown",
    "cancelled_unknown": "unknown",
    "unknown": "unknown",
    "pending": "pending",
}
_ERROR_SIGNALS = frozenset({"status_error", "exception", "is_error", "error_type"})


class Verdict(msgspec.Struct, frozen=True):
    """The outcome and the sign it rests on."""

    outcome: Outcome
    source: str
    error_type: str | None = None
    error_message: str | None = None


def derive_outcome(
    fields: ToolFields, http: Sequence[HttpFields] = (), status_error: bool = False, derived: bool = False
) -> Verdict:
    """The outcome of one execution. `fields` may be joined from several spans and from the
    messages; `derived` calls are known from messages alone, so a result is all there is."""
    signals = frozenset(fields.signals) | ({"status_error"} if status_error else frozenset())
    hint = SHIM_OUTCOMES.get(fields.outcome_hint or "")
    body = _body_error(fields)
    text = _error_text(fields, body, signals)
    return (
        _refused(fields, signals, hint, text)
        or _not_known(fields, signals, hint, http, body, text)
        or _waiting(fields, signals, hint, body)
        or _failed(fields, signals, hint, http, body, text)
        or Verdict("succeeded", _success_source(fields, hint, derived))
    )


def _body_error(fields: ToolFields) -> BodyError | None:
    if fields.result is not None and not isinstance(fields.result, str):
        if asks(fields.name) and is_record_of_failure(fields.result):
            return None
        found = errors_in_body(fields.result, fields.result_text) or refused_fields(fields.result)
        return found or short_error(fields.name, lone_text(fields.result))
    text = fields.result if isinstance(fields.result, str) else fields.result_text
    if text is None or returns_logs(fields.name):
        return None
    return errors_in_body(None, text) or short_error(fields.name, text)


def _error_text(fields: ToolFields, body: BodyError | None, signals: frozenset[str]) -> str:
    """What was said of the error. Some instrumentations mark the span and leave the words in the result."""
    parts = [fields.error_type or "", fields.error_message or "", body.message if body else ""]
    if "status_error" in signals and not any(parts):
        parts.append(fields.result_text or "")
    return "\n".join(p[:MAX_TEXT] for p in parts if p)


def _message(fields: ToolFields, body: BodyError | None) -> str | None:
    return fields.error_message or (body.message if body else None) or _result_line(fields)


def _result_line(fields: ToolFields) -> str | None:
    return fields.result_text.strip().split("\n", 1)[0][:400] if fields.result_text else None


def _refused(fields: ToolFields, signals: frozenset[str], hint: Outcome | None, text: str) -> Verdict | None:
    """Denied: the shim or the instrumentation says so, or the error says who refused. An approval
    that was rejected and a result nevertheless is an execution, not a denial."""
    if hint == "denied":
        return Verdict("denied", "shim", fields.error_type or "denied", fields.error_message or _result_line(fields))
    wrong = bool(signals & _ERROR_SIGNALS) or bool(text)
    if "denied" in signals and not _technical(fields):
        return Verdict("denied", "signal", fields.error_type or "denied", fields.error_message or _result_line(fields))
    rejected = fields.approval is not None and fields.approval.decision == "rejected"
    if rejected and (wrong or not _has_result(fields)):
        return Verdict(
            "denied", "approval", fields.error_type or "denied", fields.error_message or _result_line(fields)
        )
    said = text if wrong else (fields.result_text or "")[:200] if fields.result is None else ""
    if said and _DENIED_TEXT.search(said) and not _technical(fields):
        return Verdict("denied", "result", "denied", fields.error_message or _result_line(fields))
    return None


def _technical(fields: ToolFields) -> bool:
    """An operating system's permission error is a failure of the call, not a decision on it."""
    kind = (fields.error_type or "").lower()
    return kind in ("permissionerror", "oserror", "eacces", "accessdenied", "accessdeniedexception")


def _has_result(fields: ToolFields) -> bool:
    return fields.result is not None or bool(fields.result_text)


def _not_known(
    fields: ToolFields,
    signals: frozenset[str],
    hint: Outcome | None,
    http: Sequence[HttpFields],
    body: BodyError | None,
    text: str,
) -> Verdict | None:
    wrong = bool(signals & _ERROR_SIGNALS) or body is not None
    if hint == "unknown":
        kind = fields.error_type or "timeout"
        return Verdict("unknown", fields.outcome_source or "shim", kind, _message(fields, body))
    if _NOT_STARTED.search(text):
        return None
    if "timeout" in signals or (wrong and _TIMEOUT.search(text)) or _timeout_text(fields, wrong):
        return Verdict("unknown", "timeout", "timeout", _message(fields, body))
    if signals & {"cancelled", "abandoned"}:
        word = "abandoned" if "abandoned" in signals else "cancelled"
        return Verdict("unknown", word, fields.error_type or word, fields.error_message)
    if wrong and _LOST.search(text):
        return Verdict("unknown", "connection_lost", fields.error_type or "connection_lost", _message(fields, body))
    if "no_reason" in signals and not text:
        return Verdict("unknown", "no_reason", None, None)
    status = body.status if body else None
    if status in _SENT_UNKNOWN:
        return Verdict("unknown", "http_status", str(status), _message(fields, body))
    if wrong and http and http[-1].status_code in _SENT_UNKNOWN:
        return Verdict("unknown", "http_status", str(http[-1].status_code), _message(fields, body))
    return None


def _timeout_text(fields: ToolFields, wrong: bool) -> bool:
    """A result that is a timeout notice: some frameworks give a timed-out call's notice to the
    model as an ordinary result."""
    text = fields.result_text
    if text is None or len(text) > MAX_NOTICE or (fields.result is not None and not isinstance(fields.result, str)):
        return False
    return _NOTICE.match(text) is not None or (wrong and _TIMED_OUT.search(text) is not None)


def _waiting(
    fields: ToolFields, signals: frozenset[str], hint: Outcome | None, body: BodyError | None
) -> Verdict | None:
    if hint == "pending" or ("pending" in signals and not _has_result(fields)):
        return Verdict("pending", "shim" if hint == "pending" else "signal")
    if body is None and not signals & _ERROR_SIGNALS and _is_handle(fields.result):
        return Verdict("pending", "result")
    return None


def _is_handle(value: Any) -> bool:
    """A task that was accepted: a status of work under way, and the handle to ask for it."""
    if not isinstance(value, Mapping) or len(value) > 24:
        return False
    folded = {str(key).lower(): item for key, item in value.items()}
    inner = folded.get("task") or folded.get("job")
    if isinstance(inner, Mapping):
        word, named = inner.get("status", inner.get("state")), True
    else:
        word, named = folded.get("status", folded.get("state")), any(folded.get(name) for name in _HANDLES)
    return named and isinstance(word, str) and word.strip().lower() in _PENDING_WORDS


def _failed(
    fields: ToolFields,
    signals: frozenset[str],
    hint: Outcome | None,
    http: Sequence[HttpFields],
    body: BodyError | None,
    text: str,
) -> Verdict | None:
    source = _failure_source(signals, hint, body, http, fields)
    if source is None:
        return None
    kind = fields.error_type or (body.code if body else None) or (str(body.status) if body and body.status else None)
    if fields.outcome_hint == "not_started" or _NOT_STARTED.search(text):
        kind = kind or "not_started"
        source = "not_started"
    elif _is_conflict(body, text):
        kind = "conflict"
    return Verdict("failed", source, kind or "tool_error", _message(fields, body))


def _failure_source(
    signals: frozenset[str],
    hint: Outcome | None,
    body: BodyError | None,
    http: Sequence[HttpFields],
    fields: ToolFields,
) -> str | None:
    if hint == "failed":
        return fields.outcome_source or "shim"
    for signal in ("exception", "status_error", "is_error", "error_type"):
        if signal in signals:
            return signal
    if body is not None:
        return "result"
    last = http[-1].status_code if http else None
    if last is not None and last >= 400 and not _has_result(fields):
        return "http_status"
    return None


def _is_conflict(body: BodyError | None, text: str) -> bool:
    return (body is not None and body.status == 409) or _CONFLICT.search(text) is not None


def _success_source(fields: ToolFields, hint: Outcome | None, derived: bool) -> str:
    if hint == "succeeded":
        return fields.outcome_source or "shim"
    if derived:
        return "message"
    return "status" if fields.result_fidelity == "absent" and not _has_result(fields) else "return"
