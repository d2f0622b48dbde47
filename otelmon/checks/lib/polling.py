"""Whether asking again is right: work under way, a wait, an error that may pass. The words are data:
checks/data/polling.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

import msgspec

from otelmon.checks.lib.asking import request_text
from otelmon.checks.lib.sameness import plain_name
from otelmon.checks.lib.verbs import name_words, words
from otelmon.checks.lib.wording import plain
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall

_MAX_TEXT, _NOTICE, _MAX_FIELDS, _MAX_DEPTH = 2_000, 300, 60, 3
_SECOND = 1_000_000_000
_FEW = 8  # values of a short answer, and one
_TIMER = 3  # equal gaps that make a timer
_EVENNESS = 0.03  # a model in between is less regular


class _Words(msgspec.Struct, frozen=True):
    statuses: frozenset[str]
    fields: frozenset[str]
    when_false: frozenset[str]
    when_true: frozenset[str]
    wait: frozenset[str]
    work: frozenset[str]
    patterns: dict[str, re.Pattern[str]]


@lru_cache(maxsize=1)
def _words() -> _Words:
    data = tomllib.loads((files("otelmon.checks") / "data" / "polling.toml").read_text("utf-8"))
    pending = data["pending"]
    kinds = {kind: section["text"] for kind, section in data.items() if "text" in section}
    return _Words(
        statuses=frozenset(plain_name(w) for w in words(pending["statuses"])),
        fields=words(pending["fields"]),
        when_false=words(pending["unfinished_when_false"]),
        when_true=words(pending["unfinished_when_true"]),
        wait=words(data["wait"]["tools"]),
        work=words(pending["tools"]),
        patterns={kind: re.compile("|".join(f"(?:{p})" for p in texts)) for kind, texts in kinds.items()},
    )


def _says(kind: str, text: str) -> bool:
    return bool(_words().patterns[kind].search(plain(text[:_MAX_TEXT])))


def may_poll(call: ToolCall, view: View) -> bool:
    """True when this call may be sent again and again: the catalogue says so, its work is under way, it
    lets time pass, or the user wants something watched."""
    tool = view.tool(call)
    if (tool is not None and tool.poll_ok) or is_pending(call) or lets_time_pass(call):
        return True
    return not view.writes(call) and _says("watch", request_text(call, view))


def is_pending(call: ToolCall) -> bool:
    """True when the answer says that work is not finished yet."""
    if call.outcome == "pending":
        return True
    if call.outcome != "succeeded":
        return False
    if isinstance(call.result, dict | list):
        return _tells_of_work(call) and _unfinished(call.result, 0)
    text = (call.result_text or "").strip()
    return len(text) <= _NOTICE and (plain_name(text) in _words().statuses or _says("pending", text))


def _tells_of_work(call: ToolCall) -> bool:
    """True for a short answer, or one about a task: a long record that is `pending` is a record."""
    return _words().work & set(name_words(call.tool_name)) != set() or _is_short(call.result)


def _is_short(value: Any) -> bool:
    left, stack = _FEW, [value]
    while stack and left > 0:
        item = stack.pop()
        if isinstance(item, dict | list):
            stack.extend(item.values() if isinstance(item, dict) else item)
            left -= isinstance(item, list) and bool(item)
        else:
            left -= 1
    return left > 0


def _unfinished(value: Any, depth: int) -> bool:
    if depth > _MAX_DEPTH:
        return False
    if isinstance(value, list):
        return any(_unfinished(item, depth + 1) for item in value[:_MAX_FIELDS])
    if not isinstance(value, dict):
        return False
    pairs = [(plain_name(str(key)), item) for key, item in list(value.items())[:_MAX_FIELDS]]
    return any(_field_unfinished(name, item) for name, item in pairs) or any(
        _unfinished(item, depth + 1) for _, item in pairs if isinstance(item, dict | list)
    )


def _field_unfinished(name: str, value: Any) -> bool:
    known = _words()
    if value is False:
        return name in known.when_false
    if value is True:
        return name in known.when_true
    if not isinstance(value, str) or not any(name.endswith(field) for field in known.fields):
        return False
    return plain_name(value) in known.statuses or (len(value) <= _NOTICE and _says("pending", value))


def lets_time_pass(call: ToolCall) -> bool:
    """True for a tool that only waits."""
    return bool(_words().wait & set(name_words(call.tool_name)))


def on_a_timer(calls: Sequence[ToolCall], seconds: float) -> bool:
    """True when the last calls began at equal distances of at least so many seconds: a program asks, or an
    agent that was told how often."""
    starts = [call.start_time_unix_nano for call in calls[-_TIMER - 1 :]]
    gaps = [(two - one) / _SECOND for one, two in pairwise(starts)]
    return len(gaps) == _TIMER and min(gaps) >= seconds and max(gaps) - min(gaps) <= _EVENNESS * max(gaps)


def error_text(call: ToolCall) -> str:
    """What is known of a failure, as text."""
    parts = (call.error_type or "", call.error_message or "", call.result_text or "")
    return "\n".join(part[:_MAX_TEXT] for part in parts if part)


def is_technical(call: ToolCall) -> bool:
    """True when the error is about the form of the call or the tool's own trouble, and refuses nothing."""
    return _says("technical", error_text(call))


def refused_as_duplicate(call: ToolCall) -> bool:
    """True when a guard refused the call as a repeat."""
    if call.outcome not in ("failed", "denied"):
        return False
    return call.error_type in ("conflict", "409") or _says("duplicate", error_text(call))


def may_pass(call: ToolCall) -> bool:
    """True when the call failed in a way that may be gone at the next try: a time-out, 429, 503."""
    if call.outcome == "unknown":
        return True
    return call.outcome == "failed" and _says("transient", error_text(call))


def says_missing(call: ToolCall) -> bool:
    """True when the call failed because what it is about is not there."""
    return call.outcome == "failed" and _says("missing", error_text(call))
