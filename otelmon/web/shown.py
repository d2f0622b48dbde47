"""How values look on a page."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import msgspec

from otelmon.store.results import CallDetail
from otelmon.vocabulary.event import ToolCall
from otelmon.web.evidence import arranged, comparison, fact_text

LONG = 4000  # characters of one value on a page
NAME = 120
BRIEF = 160
ENDED = {
    "root": "by itself",
    "idle": "went quiet",
    "span_limit": "cut: too many spans",
    "evicted": "cut: memory was full",
    "end_of_file": "end of the file",
}
WHY = {
    "content_off": "the instrumentation does not capture arguments, results or messages",
    "hashed": "the content was replaced by a hash before it was sent",
    "truncated": "the content was cut before it was sent",
    "sampled": "spans of this run are missing: they were sampled away or lost",
    "prior_turns_unseen": "earlier turns of the conversation were not seen",
    "no_catalogue": "it needs a catalogue that says which tools exist",
    "incomplete_run": "its root span or its last message was not seen",
}


def when(unix_nano: int | None) -> str:
    """UTC to the millisecond; "-" for no time."""
    if not unix_nano:
        return "-"
    moment = datetime.fromtimestamp(unix_nano // 1_000_000_000, UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{unix_nano // 1_000_000 % 1000:03d}Z"


def value(data: Any) -> str:
    """JSON data, indented; text as it is; cut when long."""
    if isinstance(data, str):
        return cut(data)
    return cut(json.dumps(msgspec.to_builtins(data, str_keys=True), ensure_ascii=False, indent=2))


def cut(text: str) -> str:
    """Text for a page: control characters made visible, cut when long."""
    shown = _visible(text[:LONG], "\n\t")
    return shown if len(text) <= LONG else f"{shown}\n... cut, {len(text)} characters in all"


def line(text: str, limit: int = NAME) -> str:
    """A name or the beginning of a text, on one line."""
    one = _visible(" ".join(text[: 4 * limit].split()), "")
    return one if len(one) <= limit and len(text) <= 4 * limit else f"{one[: limit - 1]}…"


def _visible(text: str, kept: str) -> str:
    """What has no shape or changes the order of what is around it is replaced."""
    return "".join(c if c in kept or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def brief(arguments: Any) -> str:
    """Arguments on one line: name=value, name=value."""
    if isinstance(arguments, dict):
        parts = (
            f"{name}={item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)}"
            for name, item in arguments.items()
        )
        return line(", ".join(parts), BRIEF)
    return "" if arguments is None else line(str(arguments), BRIEF)


def sections(runbook: str) -> list[tuple[str, str]]:
    """(heading, text) of a page whose headings are lines that start with "## ". Lines of a paragraph
    are joined: where they were wrapped says nothing."""
    found: list[tuple[str, str]] = []
    for text in runbook.strip().splitlines():
        if text.startswith("## "):
            found.append((text[3:].strip(), ""))
        elif found:
            heading, body = found[-1]
            starts = not text.strip() or text.startswith("- ") or not body or body.endswith("\n")
            found[-1] = heading, body + ("\n" if starts and body else "" if starts else " ") + text.strip()
    return [(heading, body.strip()) for heading, body in found]


def ended(reason: str | None) -> str:
    """Why a run is over, in words."""
    return "not yet" if reason is None else ENDED.get(reason, reason.replace("_", " "))


def took(call: ToolCall) -> str:
    """How long a call took."""
    seconds = max(0, call.end_time_unix_nano - call.start_time_unix_nano) / 1e9
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def is_call(item: Any) -> bool:
    """Whether an entry of a timeline is a call (else it is a message)."""
    return isinstance(item, CallDetail)


def anchor_of(call: ToolCall) -> str:
    """The span a call's findings point at."""
    return call.span_ids[0] if call.span_ids else call.span_id


def why(reason: str) -> str:
    """Why a rule could not be decided, in words."""
    return WHY.get(reason, reason.replace("_", " "))


FILTERS = {
    "when": when, "value": value, "cut": cut, "line": line, "brief": brief, "took": took, "is_call": is_call,
    "anchor_of": anchor_of, "why": why, "ended": ended, "sections": sections, "arranged": arranged, "comparison": comparison,
    "fact_text": fact_text,
}  # fmt: skip
