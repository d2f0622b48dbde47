"""Chat transcripts (`{id, tools, messages}`) as readings, so that they go the way spans go.

One conversation, one trace; a turn of the user is an agent reading with model readings under it.
Ids are made from the record's id, so the same file gives the same findings every time.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from otelmon.assemble.dialects._definitions import definitions
from otelmon.assemble.dialects._messages import from_item
from otelmon.assemble.history import Batch, History
from otelmon.assemble.values import plain
from otelmon.vocabulary.canonical import short_hash
from otelmon.vocabulary.reading import Message, Reading

DIALECT = "transcript"
STEP_NANO = 1_000_000_000
EPOCH_NANO = 1_577_836_800 * STEP_NANO  # 2020-01-01: where a transcript without times starts


def is_transcript(record: Any) -> bool:
    """Whether a JSON value is a transcript: an object with an id and a list of messages."""
    return isinstance(record, dict) and isinstance(record.get("messages"), list) and record.get("id") is not None


def read_transcript(record: dict[str, Any], received_unix_nano: int) -> list[Reading]:
    """The readings of one transcript: an agent and, under it, a model reading for each assistant
    message with the digests of all that went before. Messages that are no objects are left out."""
    return _Reader(record, received_unix_nano).read()


class _Reader:
    def __init__(self, record: dict[str, Any], received_unix_nano: int) -> None:
        self._record = record
        self._received = received_unix_nano
        self._id = str(record.get("id"))
        self._trace = short_hash("transcript", self._id)
        self._definitions = definitions(plain(record.get("tools") or []))
        self._history = History()
        self._clock = 0
        self._count = 0

    def read(self) -> list[Reading]:
        found = self._record.get("messages")
        messages = [m for m in found if isinstance(m, dict)] if isinstance(found, list) else []
        times = _times(messages)
        readings: list[Reading] = []
        seen = Batch()
        for turn in _turns(messages):
            root = self._span_id()
            inner: list[Reading] = []
            begin = times[turn[0]]
            for index in turn:
                batch = self._history.send(_messages_of(messages[index]))
                if messages[index].get("role") in ("assistant", "ai", "model"):
                    before = times[index - 1] if index else times[index]
                    inner.append(self._model(root, seen, batch, before, times[index]))
                    seen = Batch(seen.digests + batch.digests)
                else:
                    seen += batch
            end = times[turn[-1]]
            if seen.messages or not inner:
                inner.append(self._model(root, seen, Batch(), end, end))
                seen = Batch(seen.digests)
            readings.append(self._reading(root, "", "agent", begin, end))
            readings.extend(inner)
        return readings

    def _model(self, root: str, before: Batch, answer: Batch, start: int, end: int) -> Reading:
        """A model reading; one without an answer shows what was said last."""
        return msgspec.structs.replace(
            self._reading(self._span_id(), root, "model", start, end),
            input=before.digests,
            output=answer.digests,
            messages=before.messages + answer.messages,
            definitions=self._definitions,
            history_complete=True,
        )

    def _reading(self, span_id: str, parent: str, kind: Any, start: int, end: int) -> Reading:
        record = self._record
        return Reading(
            trace_id=self._trace,
            span_id=span_id,
            parent_span_id=parent,
            digest=short_hash(self._id, span_id),
            kind=kind,
            name=kind,
            dialect=DIALECT,
            start_time_unix_nano=start,
            end_time_unix_nano=max(start, end),
            received_unix_nano=self._received,
            conversation_id=_text(record.get("conversation_id")) or _text(record.get("conversation")) or self._id,
            agent_name=_text(record.get("agent")),
            model=_text(record.get("model")),
            principal=_text(record.get("user")),
            service_name=_text(record.get("service")) or "",
            environment=_text(record.get("environment")) or "",
        )

    def _span_id(self) -> str:
        self._count += 1
        return short_hash("transcript", self._id, str(self._count))[:16]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _messages_of(message: dict[str, Any]) -> list[Message]:
    """A transcript's message; an error given beside the content is the content. Calls that the user
    makes with tools of their own are left out, what they gave is context: it answers no known call."""
    message = plain(message)
    if message.get("role") != "tool":
        return from_item(message)
    if message.get("requestor") == "user" and not message.get("tool_call_id"):
        return from_item({"role": "context", "content": message.get("content")})
    error = message.get("error")
    changes: dict[str, Any] = {}
    if error or message.get("is_error"):
        changes["is_error"] = True
    if not message.get("content") and isinstance(error, str):
        changes["content"] = error
    return from_item(message | changes)


def _turns(messages: list[dict[str, Any]]) -> list[range]:
    """Index ranges, one per user turn: a turn starts at a user message after something else."""
    if not messages:
        return []
    starts = [0]
    user_seen = False
    for index, message in enumerate(messages):
        if _speaker(message) == "user":
            if user_seen and _speaker(messages[index - 1]) != "user":
                starts.append(index)
            user_seen = True
    return [range(a, b) for a, b in zip(starts, [*starts[1:], len(messages)], strict=True)]


def _speaker(message: dict[str, Any]) -> Any:
    """The role, with the results of the user's own tools counted to the user."""
    return "user" if message.get("requestor") == "user" else message.get("role")


def _times(messages: list[dict[str, Any]]) -> list[int]:
    """A time in nanoseconds for each message, never going back; a second apart when not given."""
    times: list[int] = []
    last = EPOCH_NANO
    for message in messages:
        given = _nanoseconds(message.get("timestamp"))
        last = max(last, given) if given is not None else last + STEP_NANO
        times.append(last)
    return times


def _nanoseconds(value: Any) -> int | None:
    """Nanoseconds since the epoch of an ISO 8601 text or of seconds; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return int(value * STEP_NANO) if 0 < value < 1e11 else None
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value.replace("Z", "+00:00"))
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    nanos = (since.days * 86_400 + since.seconds) * STEP_NANO + since.microseconds * 1_000
    return nanos if nanos > 0 else None
