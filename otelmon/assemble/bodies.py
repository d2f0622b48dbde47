"""Errors that hide in the payload of a call that looks successful.

`{"failed": 0}`, `{"errors": []}` and documents that tell about errors are none. Linear in the
size of the first levels of the payload: depth and width are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from typing import Any

import msgspec

from otelmon.assemble.error_words import (
    BAD_STATUS,
    ERROR_MEMBERS,
    GOOD_FLAGS,
    MESSAGE_MEMBERS,
    STARTS,
    STATUS_MEMBERS,
    fold,
)

MAX_DEPTH = 3
MAX_KEYS = 64
MAX_TEXT = 2_000
MAX_ERROR_LINE = 400

_BAD_FLAGS = ("iserror", "is_error", "haserror", "has_error")
_SAYS_NO = frozenset(("false", "no"))
_LISTS_ERRORS = frozenset(ERROR_MEMBERS) - {"error", "error_message", "errormessage"}
_NO_ERROR = frozenset(
    ("none", "null", "false", "no", "0", "ok", "n/a", "ninguno", "ninguna", "keine", "aucune", "nenhum")
)
_CODE_KEYS = ("code", "error_code", "errorcode", "type", "error_type", "errortype")
_ERROR_CODES = ("error_code", "errorcode", "errcode", "errno")
_ERROR_SAYS = (
    "error_message",
    "errormessage",
    "error_msg",
    "errmsg",
    "message",
    "msg",
    "mensaje",
    "nachricht",
    "mensagem",
)
_STATUS_KEYS = ("status", "status_code", "statuscode", "http_status", "httpstatus")
_WRAPPERS = ("result", "response", "data", "output", "structuredcontent", "body", "payload")
_HEADS = ("meta", "head", "header", "status", "error_info")
_BESIDE_ERRORS = frozenset(
    {"request", "meta", "metadata", "extensions", "links", "context", "params", "input", "warnings", "documentation"}
)
_NUMBERS = frozenset({"code", "status", "statuscode", "status_code", "timestamp", "failed", "failures", "time", "took"})
# What stands beside a status in an answer that says no more; anything else is data.
_ENVELOPE = frozenset(
    (*_STATUS_KEYS, *_CODE_KEYS, *MESSAGE_MEMBERS, *_WRAPPERS, *_BESIDE_ERRORS, "title", "instance", "headers", "timestamp",
     "path", "url", "method", "request_id", "requestid", "trace_id", "documentation_url", "statustext", "status_text")
)  # fmt: skip
_DECISIONS = frozenset(
    ("rejected", "invalid", "rechazado", "rechazada", "abgelehnt", "rejete", "rejetee", "rejeitado", "rejeitada")
)
_VERDICTS = ("valid", "is_valid", "isvalid", "passed", "compliant", "eligible")

_ERROR_START = re.compile(
    r"^\s*(?:\W{0,3}\s*)?(?:<(?:\w{1,20}_)?error>|(?:(?:tool|api|http|mcp|server|internal|execution|validation|runtime|unexpected|fatal)\s+){0,2}"
    r"(?:error|failed|failure|exception|errno)\b\s*(?P<sep>[:\[(\-–—!]|\d{3}\b|(?:while|when|executing|calling|running|occurred|to)\b|$))",
    re.IGNORECASE,
)
_TYPED_START = re.compile(r"^\s*(?P<type>[A-Za-z_][\w.]{0,60}(?:Error|Exception|Timeout|Fault))\s*(?:[:(]|$)")
_HTTP_START = re.compile(r"^\s*(?:http[/ ]?\S{0,4}\s+)?(?P<code>[45]\d\d)\b[ :,\-]", re.IGNORECASE)
_PHRASE_START = re.compile(
    r"^\s*(?:an?\s+)?(?:(?:unknown|unexpected|internal)\s+)?(?:error|exception)\s+(?:occurred|happened|while|when)|"
    r"^\s*traceback \(most recent call last\)|^\s*(?:connection|request|operation|tool call|call|command)\s+"
    r"(?:was\s+)?(?:failed|refused|timed out|aborted|rejected)\b(?!\s+(?:errors|requests|connections|calls|attempts)\b)",
    re.IGNORECASE,
)


class BodyError(msgspec.Struct, frozen=True):
    """An error that a payload states. `path` is where ("" for text), `code` its type or HTTP
    status when it says, `status` that status as a number."""

    message: str
    path: str = ""
    code: str | None = None
    status: int | None = None


def errors_in_body(value: Any, text: str | None) -> BodyError | None:
    """The error that a result states, or None. `value` is the decoded payload (None when the result
    is only text), `text` the text that the model saw."""
    if isinstance(value, Mapping):
        return _in_object(value, "", 0)
    if isinstance(value, list):
        return _in_content(value)
    plain = value if isinstance(value, str) else text
    return _in_text(plain) if plain else None


def _in_content(blocks: list[Any]) -> BodyError | None:
    """A list is data, unless it is the single text block of a tool result."""
    if len(blocks) != 1 or not isinstance(blocks[0], Mapping):
        return None
    block = blocks[0]
    inner = block.get("text")
    if block.get("type") == "text" and isinstance(inner, str):
        return _in_text(inner)
    return None


def _in_object(value: Mapping[str, Any], path: str, depth: int) -> BodyError | None:
    folded = _folded(value)
    found = (
        _flags(folded, path)
        or _error_members(folded, path)
        or _error_code(folded, path)
        or _status_number(folded, path)
        or _status_word(folded, path)
        or _in_head(folded, path)
    )
    if found or depth >= MAX_DEPTH:
        return found
    if path.rpartition(".")[2] == "data" and len(folded) == 1:  # GraphQL: the answer of one operation
        (name, inner), *_ = folded.items()
        if isinstance(inner, Mapping):
            return _error_members(_folded(inner), f"{path}.{name}")
    for name in _WRAPPERS:
        inner = folded.get(name)
        if isinstance(inner, Mapping):
            found = _in_object(inner, f"{path}.{name}".lstrip("."), depth + 1)
            if found:
                return found
    return None


def _folded(value: Mapping[str, Any]) -> dict[str, Any]:
    return {fold(key): item for key, item in islice(value.items(), MAX_KEYS) if isinstance(key, str)}


def _flags(folded: Mapping[str, Any], path: str) -> BodyError | None:
    for name in GOOD_FLAGS:
        flag = folded.get(name)
        said_no = isinstance(flag, str) and flag.strip().lower() in _SAYS_NO
        if flag is False or said_no or (_is_zero(flag) and _text_of(folded, _ERROR_SAYS)):
            return _described(folded, path, name)
    for name in _BAD_FLAGS:
        if folded.get(name) is True:
            return _described(folded, path, name)
    if folded.get("failed") is True and not _has_id(folded):
        return _described(folded, path, "failed")
    return None


def _is_zero(value: Any) -> bool:
    """0 as a number: a flag where something is said of it, a count elsewhere."""
    return isinstance(value, int) and not isinstance(value, bool) and value == 0


def _has_id(folded: Mapping[str, Any]) -> bool:
    return any(key == "id" or key.endswith(("_id", "number")) for key in folded)


def _error_members(folded: Mapping[str, Any], path: str) -> BodyError | None:
    """`error` that holds something. A number beside other data is a count, not an error."""
    done = any(folded.get(name) is True for name in GOOD_FLAGS)
    for name in ERROR_MEMBERS:
        inner = folded.get(name)
        if name == "error" and (inner is True or (inner == 1 and len(folded) <= 3 and _text_of(folded, _ERROR_SAYS))):
            return _described(folded, path, name)
        if not inner or isinstance(inner, bool | int | float) or done:
            continue
        if name in _LISTS_ERRORS and not _is_error_value(inner):
            continue
        if isinstance(inner, str) and inner.strip().lower() in _NO_ERROR:
            continue
        if name == "errors" and _is_partial(folded):
            continue
        return _from_member(inner, folded, f"{path}.{name}".lstrip("."))
    return None


def _error_code(folded: Mapping[str, Any], path: str) -> BodyError | None:
    """`{"errcode": 40001, "errmsg": "..."}`: a code that is not zero, and what it means. A code with other data
    and no such text is a record of one."""
    done = any(folded.get(name) is True for name in GOOD_FLAGS)
    for name in _ERROR_CODES:
        code = folded.get(name)
        if (
            done
            or not isinstance(code, int | str)
            or isinstance(code, bool)
            or str(code).strip() in ("", "0", "00", "OK")
        ):
            continue
        message = _text_of(folded, _ERROR_SAYS)
        if message and set(folded) <= _ENVELOPE | {name, *_ERROR_SAYS}:
            return BodyError(message, f"{path}.{name}".lstrip("."), str(code)[:80], _number_of(folded))
    return None


def _is_partial(folded: Mapping[str, Any]) -> bool:
    """A part of what was asked for failed and the rest is here: `{"created": 9, "errors": [...]}`."""
    for name, item in folded.items():
        if name in ERROR_MEMBERS or name in _BESIDE_ERRORS:
            continue
        counted = isinstance(item, int) and not isinstance(item, bool) and item > 0 and name not in _NUMBERS
        if counted or _holds(item):
            return True
    return False


def _holds(item: Any) -> bool:
    """Whether a list or an object holds anything: `{"issue": null}` does not."""
    if isinstance(item, Mapping):
        return any(inner is not None for inner in islice(item.values(), MAX_KEYS))
    return isinstance(item, list) and bool(item)


def is_record_of_failure(value: Any) -> bool:
    """A task, job or payment that failed, with its own id, or the verdict of a validation: what a reader of such
    records was asked for."""
    if not isinstance(value, Mapping):
        return False
    folded = _folded(value)
    if any(isinstance(folded.get(name), bool) for name in _VERDICTS):
        return True
    word = next((folded[name] for name in STATUS_MEMBERS if name in folded), None)
    named = any(key == "id" or key.endswith(("_id", "id")) for key in folded)
    return named and isinstance(word, str) and fold(word.strip()) in BAD_STATUS - {"error"}


def _is_error_value(inner: Any) -> bool:
    """`errors` as a list of messages or of objects with one, or as messages by field."""
    if isinstance(inner, list):
        first = inner[0]
        return isinstance(first, str) or (isinstance(first, Mapping) and any(k in first for k in ("message", "code", "detail", "error", "msg", "title")))  # fmt: skip
    return isinstance(inner, str | Mapping)


def _from_member(inner: Any, around: Mapping[str, Any], path: str) -> BodyError:
    if isinstance(inner, list):
        inner = inner[0]
    if isinstance(inner, Mapping):
        folded = _folded(inner)
        message = _text_of(folded, MESSAGE_MEMBERS) or _text_of(around, MESSAGE_MEMBERS) or "error"
        code = _code_of(folded) or _code_of(around)
        return BodyError(message, path, code, _number_of(folded) or _number_of(around))
    return BodyError(str(inner)[:MAX_ERROR_LINE], path, _code_of(around), _number_of(around))


def _described(folded: Mapping[str, Any], path: str, name: str) -> BodyError:
    inner = folded.get("error")
    where = f"{path}.{name}".lstrip(".")
    if isinstance(inner, str | Mapping) and inner:
        return _from_member(inner, folded, where)
    message = _text_of(folded, MESSAGE_MEMBERS) or _content_text(folded) or f"{name} is {folded.get(name)}"
    return BodyError(message, where, _code_of(folded), _number_of(folded))


def _content_text(folded: Mapping[str, Any]) -> str | None:
    content = folded.get("content")
    if isinstance(content, str):
        return content[:MAX_ERROR_LINE]
    if isinstance(content, list) and content and isinstance(content[0], Mapping):
        text = content[0].get("text")
        return text[:MAX_ERROR_LINE] if isinstance(text, str) else None
    return None


def _status_number(folded: Mapping[str, Any], path: str) -> BodyError | None:
    """An HTTP status of 400 or more, when the object is an answer and not a record about one: it
    holds little else, or says why."""
    status = _number_of(folded)
    if status is None:
        return None
    explained = _text_of(folded, (*MESSAGE_MEMBERS, "title", "error"))
    if explained is None and (len(folded) > 3 or not set(folded) <= _ENVELOPE):
        return None
    return BodyError(explained or f"status {status}", f"{path}.status".lstrip("."), _code_of(folded), status)


def _in_head(folded: Mapping[str, Any], path: str) -> BodyError | None:
    """A status that stands in a head of its own: `{"meta": {"code": 400, "message": "..."}}`."""
    for name in _HEADS:
        head = folded.get(name)
        if isinstance(head, Mapping):
            inner = _folded(head)
            if set(inner) <= _ENVELOPE | set(ERROR_MEMBERS):
                found = _status_number(inner, f"{path}.{name}".lstrip("."))
                if found:
                    return found
    return None


def _status_word(folded: Mapping[str, Any], path: str) -> BodyError | None:
    """`status: failed`. A record that has such a status (with an id and data of its own) is what
    was asked for, not a failure of the call, unless it explains an error."""
    for name in STATUS_MEMBERS:
        word = folded.get(name)
        if not isinstance(word, str) or fold(word.strip()) not in BAD_STATUS:
            continue
        message, word = _text_of(folded, MESSAGE_MEMBERS), word.strip()
        if word.lower() != "error" and _has_id(folded) and message is None:
            continue
        if fold(word) in _DECISIONS and message is None:
            continue
        return BodyError(message or word, f"{path}.{name}".lstrip("."), _code_of(folded), _number_of(folded))
    return None


def _text_of(folded: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    for name in names:
        text = folded.get(name)
        if isinstance(text, str) and text.strip():
            return text.strip()[:MAX_ERROR_LINE]
    return None


def _code_of(folded: Mapping[str, Any]) -> str | None:
    for name in _CODE_KEYS:
        code = folded.get(name)
        if isinstance(code, str) and 0 < len(code) <= 80:
            return code
        if isinstance(code, int) and not isinstance(code, bool) and name != "type":
            return str(code)
    return None


def _number_of(folded: Mapping[str, Any]) -> int | None:
    for name in (*_STATUS_KEYS, "code"):
        status = folded.get(name)
        if isinstance(status, str) and status.isdigit() and len(status) == 3:
            status = int(status)
        if isinstance(status, int) and not isinstance(status, bool) and 400 <= status <= 599:
            return status
    return None


def _in_text(text: str) -> BodyError | None:
    """Text that is an error message: it starts as one and its first line is short."""
    head = text[:MAX_TEXT].lstrip()
    line = head.split("\n", 1)[0]
    if len(line) > MAX_ERROR_LINE or (len(text) > MAX_TEXT and "traceback" not in head[:40].lower()):
        return None
    typed = _TYPED_START.match(line)
    if typed:
        return BodyError(line, "", typed["type"])
    http = _HTTP_START.match(line)
    if http and len(text) <= MAX_ERROR_LINE and not _is_measure(line[http.end() :]):
        return BodyError(line, "", None, int(http["code"]))
    if _ERROR_START.match(line) or _PHRASE_START.match(line) or STARTS.match(fold(line)):
        return BodyError(line, "")
    return None


EXPLAINS = re.compile(r"\b(?:means|and other|errors|is (?:returned|sent|a|an|the) )\b", re.IGNORECASE)
_REASON = re.compile(
    r"^\W*(?:bad request|unauthori[sz]ed|forbidden|not found|conflict|gone|too many|unprocessable|precondition|method not|"
    r"request|internal server|bad gateway|service unavailable|gateway|payment required|error\b)",
    re.IGNORECASE,
)


def _is_measure(rest: str) -> bool:
    """`404 Not Found` is a status; `450 grams` and `503 Service Unavailable means ...` are not."""
    return _REASON.match(rest) is None or EXPLAINS.search(rest) is not None
