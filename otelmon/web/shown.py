"""How values look on a page."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import msgspec

from otelmon.store.results import CallDetail
from otelmon.vocabulary.event import ToolCall

LONG = 4000  # characters of one value on a page


def when(unix_nano: int | None) -> str:
    """UTC to the millisecond; "-" for no time."""
    if not unix_nano:
        return "-"
    moment = datetime.fromtimestamp(unix_nano // 1_000_000_000, UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{unix_nano // 1_000_000 % 1000:03d}Z"


def value(data: Any) -> str:
    """JSON data, indented; text as it is; cut when long."""
    text = (
        data
        if isinstance(data, str)
        else json.dumps(msgspec.to_builtins(data, str_keys=True), ensure_ascii=False, indent=2)
    )
    return cut(text)  # fmt: skip


def cut(text: str) -> str:
    """Text for a page: control characters made visible, cut when long."""
    shown = "".join(c if c in "\n\t" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[:LONG])
    return shown if len(text) <= LONG else f"{shown}\n... cut, {len(text)} characters in all"


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


FILTERS = {"when": when, "value": value, "cut": cut, "took": took, "is_call": is_call, "anchor_of": anchor_of}
