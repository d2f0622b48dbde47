"""Readings of log records, laid over the reading of the span they name.

Which came first, and how often each came, changes nothing: all are collected, then applied in the order
of their own times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec

from otelmon.assemble.merge import join_fields
from otelmon.assemble.runs import SpanKey
from otelmon.vocabulary.reading import Reading

_pack = msgspec.msgpack.Encoder().encode
_FILLED = ("conversation_id", "agent_name", "agent_version", "model", "principal", "response_id")


class Supplements:
    """The supplements of a conversation by the span they name."""

    def __init__(self) -> None:
        self._by_span: dict[SpanKey, dict[str, Reading]] = {}

    def add(self, reading: Reading) -> None:
        """Take one; the same record counts once."""
        same = self._by_span.setdefault((reading.trace_id, reading.span_id), {})
        known = same.get(reading.digest)
        if known is None or _pack(reading) > _pack(known):
            same[reading.digest] = reading

    def laid_over(self, spans: Mapping[SpanKey, Reading]) -> dict[SpanKey, Reading]:
        """The spans with what was said of them. A supplement of a span that is not here changes nothing, unless
        it is about a tool call: then it belongs to the tool span of its trace with that call id."""
        found = dict(spans)
        if not self._by_span:
            return found
        for where, said in self._by_span.items():
            of_span = _ordered(r for r in said.values() if r.tool is None)
            if of_span and where in found:
                found[where] = _completed(found[where], of_span)
        calls = {(r.trace_id, r.tool.call_id): where for where, r in sorted(found.items()) if r.tool is not None}
        for about in _ordered(r for said in self._by_span.values() for r in said.values() if r.tool is not None):
            place = calls.get((about.trace_id, about.tool.call_id if about.tool else None))
            if place is not None:
                found[place] = _told(found[place], about)
        return found


def _ordered(readings: Any) -> list[Reading]:
    return sorted(readings, key=lambda r: (r.start_time_unix_nano, r.digest))


def _told(span: Reading, about: Reading) -> Reading:
    """A tool span with what a record says of its call."""
    if span.tool is None or about.tool is None:
        return span
    tool = join_fields(span.tool, about.tool)
    shown = span.tool.arguments_fidelity == "absent" and tool.arguments_fidelity != "absent"
    return msgspec.structs.replace(
        span,
        tool=tool,
        error_type=tool.error_type,
        content=about.content if shown else span.content,
        received_unix_nano=max(span.received_unix_nano, about.received_unix_nano),
    )


def _completed(span: Reading, said: Sequence[Reading]) -> Reading:
    """A span with the messages of its records. What it shows itself counts more; a record with the whole
    exchange counts more than one with a single message."""
    whole = [r for r in said if r.kind != "other"][-1:]
    parts = whole or said
    entered = span.input or tuple(chain.from_iterable(r.input for r in parts))
    left = span.output or tuple(chain.from_iterable(r.output for r in parts))
    changes: dict[str, Any] = {
        name: value
        for name in _FILLED
        if getattr(span, name) is None and (value := next((v for r in parts if (v := getattr(r, name))), None))
    }
    if span.content == "off" and (entered or left):
        cut = any(r.content == "truncated" for r in parts)
        changes["content"] = "truncated" if cut else "full"
    if not span.input and entered:
        changes["history_complete"] = span.kind == "model" and all(r.history_complete for r in parts)
    return msgspec.structs.replace(
        span,
        input=entered,
        output=left,
        messages=span.messages + tuple(chain.from_iterable(r.messages for r in said)),
        dropped=span.dropped + sum(r.dropped for r in parts),
        definitions=span.definitions or next((r.definitions for r in parts if r.definitions), ()),
        received_unix_nano=max(span.received_unix_nano, *(r.received_unix_nano for r in said)),
        **changes,
    )
