"""From a bag of readings to one reading a span and one message a digest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from otelmon.assemble.history import preferred
from otelmon.assemble.runs import SpanKey, span_order
from otelmon.assemble.supplements import Supplements
from otelmon.assemble.values import stable_bytes
from otelmon.vocabulary.reading import Message, Reading

_pack = msgspec.msgpack.Encoder().encode


def one_per_span(readings: Iterable[Reading]) -> list[Reading]:
    """One reading per (trace, span), in clock order. Of conflicting contents the one that ended
    last is kept, then the greater digest: never the one that came first. What log records say of a
    span is part of its reading."""
    kept: dict[SpanKey, Reading] = {}
    supplements = Supplements()
    for reading in readings:
        if reading.supplement:
            supplements.add(reading)
            continue
        where = (reading.trace_id, reading.span_id)
        other = kept.get(where)
        if other is None or _newer(reading, other):
            kept[where] = reading
    return sorted(supplements.laid_over(kept).values(), key=span_order)


def leftovers(readings: Iterable[Reading], spans: Iterable[Reading]) -> list[Reading]:
    """Readings with messages that are none of the spans kept: a message is sent once a trace, perhaps with
    one of these. In an order of their own, never in that of arrival."""
    kept = {id(reading) for reading in spans}
    return sorted((r for r in readings if r.messages and id(r) not in kept), key=lambda r: (r.key, _pack(r)))


def _newer(one: Reading, other: Reading) -> bool:
    if one is other:
        return False
    mine = (one.end_time_unix_nano, one.digest)
    theirs = (other.end_time_unix_nano, other.digest)
    # Equal digests differ at most in what was sent before: the messages they carry.
    return mine > theirs if mine != theirs else _pack(one) > _pack(other)


def conflicts(readings: Iterable[Reading]) -> int:
    """Spans that came with more than one content."""
    digests: dict[SpanKey, set[str]] = {}
    for reading in readings:
        if reading.supplement:
            continue
        digests.setdefault((reading.trace_id, reading.span_id), set()).add(reading.digest)
    return sum(len(found) > 1 for found in digests.values())


class Line(msgspec.Struct, frozen=True):
    """Messages in order, twice: `exact` are numbers of messages, `keys` numbers of contents. Equal
    content has one key, whatever call ids and encodings different instrumentations gave it."""

    exact: tuple[int, ...] = ()
    keys: tuple[int, ...] = ()


class MessageTable:
    """The messages of a conversation by number. `system` and `missing` (digests whose message never
    came) hold such numbers."""

    def __init__(self, readings: Iterable[Reading]) -> None:
        by_digest: dict[str, Message] = {}
        for reading in readings:
            for message in reading.messages:
                known = by_digest.get(message.digest)
                if known is None:
                    by_digest[message.digest] = message
                elif known is not message and known != message:
                    by_digest[message.digest] = combined(known, message)
        self.messages: list[Message | None] = list(by_digest.values())
        self.system = {number for number, message in enumerate(by_digest.values()) if message.role == "system"}
        self.missing: set[int] = set()
        self._numbers = {digest: number for number, digest in enumerate(by_digest)}
        contents: dict[object, int] = {}
        self._keys = [contents.setdefault(_content(m), number) for number, m in enumerate(by_digest.values())]

    def numbers(self, digests: Sequence[str]) -> tuple[int, ...]:
        """The numbers of these messages; an unknown digest gets a number without a message."""
        numbers = self._numbers
        try:
            return tuple(map(numbers.__getitem__, digests))
        except KeyError:
            return tuple([self._number(digest) for digest in digests])

    def line(self, numbers: tuple[int, ...]) -> Line:
        """The same with the keys of their contents."""
        return Line(numbers, tuple(map(self._keys.__getitem__, numbers)))

    def _number(self, digest: str) -> int:
        number = self._numbers.get(digest)
        if number is None:
            number = self._numbers[digest] = len(self.messages)
            self.messages.append(None)
            self._keys.append(number)
            self.missing.add(number)
        return number


def combined(one: Message, other: Message) -> Message:
    """Two messages of one digest: where they disagree on which tool a result is of, or on whether it
    is an error, nothing is known of that. Commutative and associative."""
    if len(one.responses) != len(other.responses):
        return preferred(one, other)
    pairs = list(zip(one.responses, other.responses, strict=True))
    kept = preferred(_bare(one), _bare(other))
    responses = tuple(
        replace(
            response,
            tool_name=a.tool_name if a.tool_name == b.tool_name else None,
            is_error=a.is_error if a.is_error == b.is_error else None,
        )
        for response, (a, b) in zip(kept.responses, pairs, strict=True)
    )
    return replace(kept, responses=responses)


def _bare(message: Message) -> Message:
    return replace(message, responses=tuple(replace(r, tool_name=None, is_error=None) for r in message.responses))


def _content(message: Message) -> object:
    requests = tuple(
        (r.tool_name, r.arguments_text if r.arguments is None else stable_bytes(r.arguments)) for r in message.requests
    )
    responses = tuple(r.text.strip() for r in message.responses)
    return (message.role, message.text.strip(), requests, responses)
