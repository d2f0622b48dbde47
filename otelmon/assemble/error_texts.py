"""Short texts that *are* the error a call ended with, where no status and no structure says so.

A result known only from the message history carries no status: `timed out after 30s` is all there is. Texts
*about* errors begin alike (a page on timeouts, a line of a log), so the text must be short, be one statement, and
end as such a statement ends; and what a tool that reads logs or messages returns is data.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from otelmon.assemble.bodies import EXPLAINS, BodyError
from otelmon.assemble.error_words import BUT_DONE, MESSAGE_MEMBERS, REFUSES, fold

MAX_NOTICE = 240  # characters; longer texts tell of something
MAX_STATEMENT = 140

# Tools that return logs: a text of theirs is never taken for the end of their own call.
_LOGS = frozenset(
    ("log", "logs", "journal", "syslog", "traces", "stderr", "stdout", "console", "errors", "exceptions", "audit",
     "registros", "protokoll",)
)  # fmt: skip
# Tools that return what others wrote: only what is marked as an error is one.
_LETTERS = frozenset(
    ("history", "incidents", "alerts", "events", "messages", "emails", "inbox", "comments", "notes", "chat",
     "thread", "threads", "tickets", "changelog",)
)  # fmt: skip
# Verbs of tools that answer questions: "the coupon is invalid" is what was asked for.
_ASKS = frozenset(
    ("get", "list", "find", "search", "check", "verify", "validate", "is", "has", "read", "fetch", "query", "lookup",
     "look", "count", "describe", "show", "view", "test", "inspect", "examine", "compare", "calculate", "compute",
     "evaluate", "diagnose", "analyze", "analyse", "translate", "summarize", "classify", "ask", "buscar",
     "consultar", "obtener", "ver", "listar", "leer", "verificar", "comprobar", "suche", "hole", "zeige", "pruefe",
     "lies",)
)  # fmt: skip
_TAKES = frozenset(
    ("tail", "cat", "head", "grep", "less", "stream", "print", "dump", "watch", "follow", "export", "download",
     "load", "open", "browse",)
)  # fmt: skip
_NAME_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+")

_SUBJECT = (
    r"(?:(?:the|this|your|mcp|http|api|tool|upstream|remote|backend|server|gateway|network|database|socket|read|write|"
    r"client|service|request|call|operation|connection|query|command|execution|response|action|task|job|process|error)\s+){0,4}"
)
_AFTER = r"(?=\s*(?:$|[:;,.!()\[\-–—]|(?:after|waiting|while|when|before|because|due|without|in \d|at \d|by peer|by the|to|from|with|on)\b))"
_TIMED_OUT = re.compile(
    rf"^\W{{0,3}}{_SUBJECT}(?:(?:has |have |was )?timed[ -]?out|deadline[ _]exceeded|gateway time-?out|"
    rf"time[ -]?out(?= (?:after|waiting|while|exceeded|error|reached)| ?\(|\W*$)(?: exceeded| reached| error)?){_AFTER}",
    re.IGNORECASE,
)
_NO_ANSWER = re.compile(
    rf"^\W{{0,3}}(?:no (?:response|answer|reply) (?:was )?(?:received|from)\b|{_SUBJECT}did(?: not|n['’]t) (?:answer|respond|reply)\b)",
    re.IGNORECASE,
)
_CONNECTION = re.compile(
    rf"^\W{{0,3}}{_SUBJECT}(?:connection (?:was )?(?:refused|reset|aborted|lost|dropped|closed)|could not connect|failed to connect|"
    rf"unable to connect|connect error|rate limit (?:exceeded|reached|hit)|rate[- ]limited|too many requests|quota exceeded|host unreachable|no route to host|name or service not known|(?:network|service) (?:is )?unavailable|"
    rf"(?:is )?temporarily unavailable){_AFTER}",
    re.IGNORECASE,
)
_STATUS = re.compile(
    r"^\W{0,3}(?:(?P<said>(?:https?(?:/\d(?:\.\d)?)?|status(?: code)?|error(?: code)?)[ :=]{1,3}(?:error |status |code ){0,2})|)"
    r"(?P<code>[45]\d\d)(?=$|[\s:,;.)\-–—])(?P<rest>.*)",
    re.IGNORECASE,
)
_REFUSES = re.compile(
    r"^\W*(?:client |server )?(?:unknown|invalid|missing|duplicate|unsupported|unexpected|malformed|unauthori[sz]ed|forbidden|"
    r"bad|not|no|cannot|could|failed|unable|rejected|denied|expired|exceeded|conflict|gone|error|timeout|gateway|too many|rate|"
    r"quota|service|internal|payment|precondition|method|request|locked|unprocessable)\b",
    re.IGNORECASE,
)
_COUNTED = re.compile(
    r"\b(?:found|removed|deleted|skipped|merged|processed|imported|exported|updated|created|returned|match(?:es)?|results?|rows?|"
    r"records?|entries|items?|errors|requests|lines?|times|units?)\b",
    re.IGNORECASE,
)
_VALIDATION = re.compile(
    r"^\W{0,3}(?:\S+ ){0,6}?(?:is not of type\b|is a required property\b|(?:was|were) unexpected\b|is not one of\b)|"
    r"^\W{0,3}(?:expected|required) [\w ]{1,30},? (?:but )?(?:got|received|found|was)\b|"
    r"^\W{0,3}missing (?:\d+ )?required\b|"
    r"^\W{0,3}(?:no such (?:file|tool|function|method|command|table|column)\b|unknown (?:tool|function|method|command)\b)|"
    r"^\W{0,3}(?:command|tool|function) not found\b",
    re.IGNORECASE,
)
_STATEMENT = re.compile(
    r"^\W{0,3}(?:\S+ ){0,7}?(?:must (?:not |both )?(?:differ|match|contain|exist|equal|be (?:an? |one |at |in |unique|positive|different|"
    r"non|less|greater|smaller|larger|between|set|provided|specified|given|present|valid|empty|unequal|distinct))|"
    r"(?:is|are) (?:required\b|missing\b|invalid\b|not (?:valid|allowed|permitted|supported|authori[sz]ed|found)\b|locked\b|read-only\b|"
    r"out of range\b|too (?:long|short|large|small)\b)|do(?:es)?(?: not|n['’]t) exist\b|not found\b|already (?:exists?|in use|taken)\b|"
    r"(?:cannot|can not|can't|could not|couldn't) be\b)|"
    r"^\W{0,3}(?:invalid|unknown|unsupported|malformed|unexpected|no such|not found|unable to|cannot|can['’]t|could not|couldn['’]t|"
    r"failed to|permission denied|access denied|unauthori[sz]ed|forbidden|not (?:allowed|permitted|authori[sz]ed)|rate limit|"
    r"rate-limited|too many requests|quota exceeded|insufficient|limit exceeded|duplicate)\b",
    re.IGNORECASE,
)
_BUT_DONE = re.compile(
    r"\b(?:reus(?:ed|ing)|using|skipp(?:ed|ing)|instead|updated|returning|returned|nothing to do|no change|unchanged|success(?:ful(?:ly)?)?|"
    r"done|ok|created|saved|sent|completed|anyway|will be|has been|have been|fixed|resolved)\b",
    re.IGNORECASE,
)
_ENDED = re.compile(
    r"^\W*(?!failed|rejected|denied|refused|expired|blocked|locked|unauthori)\w+ed\s*[;,.:]", re.IGNORECASE
)
_MORE = re.compile(r"[.!?]\s+\S+(?:\s+\S+){5,}")  # a second sentence of some length: a text, not a notice


def returns_logs(tool_name: str) -> bool:
    """True for a tool whose texts are lines of a log."""
    return _returns(tool_name, _LOGS)


def short_error(tool_name: str, text: str | None) -> BodyError | None:
    """The error that a short result text is, or None. `tool_name` says what kind of text to expect."""
    line = text.strip() if text and len(text) <= MAX_NOTICE + 40 else ""
    if not line or len(line) > MAX_NOTICE or "\n" in line or _MORE.search(line) or returns_logs(tool_name):
        return None
    if _returns(tool_name, _LETTERS):
        return BodyError(line) if _VALIDATION.match(line) else None
    if _TIMED_OUT.match(line) or _NO_ANSWER.match(line) or _CONNECTION.match(line):
        return BodyError(line)
    return _status(line) or _statement(tool_name, line)


def _status(line: str) -> BodyError | None:
    """`HTTP 400 ...`, `503 Service Unavailable`, `400 unknown country`; not `450 grams`, `404 items found`."""
    found = _STATUS.match(line)
    if found is None or _COUNTED.search(found["rest"].split(":")[0]) or EXPLAINS.search(line):
        return None
    bare = not found["rest"].strip(" .")
    if found["said"] or (not bare and _REFUSES.match(found["rest"])):
        return BodyError(line, "", None, int(found["code"]))
    return None


def _statement(tool_name: str, line: str) -> BodyError | None:
    """A refusal in one statement. Of a tool that answers questions it is an answer, but for what only a
    validator, a shell or a dispatcher says."""
    if len(line) > MAX_STATEMENT or _BUT_DONE.search(line) or _ENDED.match(line):
        return None
    if _VALIDATION.match(line):
        return BodyError(line)
    if asks(tool_name):
        return None
    plain = fold(line)
    if _STATEMENT.match(line) or (REFUSES.match(plain) and not BUT_DONE.search(plain)):
        return BodyError(line)
    return None


def lone_text(value: Any) -> str | None:
    """The text of an object that holds nothing else: `{"detail": "Not found."}`."""
    if isinstance(value, Mapping) and len(value) == 1:
        (name, text), *_ = value.items()
        if isinstance(text, str) and isinstance(name, str) and fold(name) in MESSAGE_MEMBERS:
            return text
    return None


def refused_fields(value: Any) -> BodyError | None:
    """`{"detail": [{"loc": ["body", "x"], "msg": "field required"}]}`: what web frameworks answer to a bad form."""
    fields = value.get("detail") if isinstance(value, Mapping) and len(value) == 1 else None
    first = fields[0] if isinstance(fields, list) and fields else None
    if isinstance(first, Mapping) and "loc" in first and isinstance(first.get("msg"), str):
        return BodyError(first["msg"][:MAX_NOTICE], "detail.0", "validation")
    return None


def _returns(tool_name: str, things: frozenset[str]) -> bool:
    """True when the name ends in one of these things and begins as reading them does: `tail_logs`, `get_log_lines`."""
    words = _words(tool_name)
    cut = next((place for place, word in enumerate(words) if word in ("by", "for", "from", "with", "of")), len(words))
    return not things.isdisjoint(words[max(cut - 2, 0) : cut]) and (asks(tool_name) or words[0] in _TAKES)


def _words(tool_name: str) -> list[str]:
    return [part.lower() for part in _NAME_PART.findall(tool_name)]


def asks(tool_name: str) -> bool:
    """True for a tool that answers questions, as its name says."""
    words = _words(tool_name)
    return bool(words) and (not _ASKS.isdisjoint(words[:2]) or words[-1] in ("lookup", "search", "query"))
