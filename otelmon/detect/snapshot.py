"""What memory keeps of a conversation: a snapshot of each of its traces."""

from __future__ import annotations

import msgspec

from otelmon.vocabulary.event import EndReason
from otelmon.vocabulary.finding import Finding
from otelmon.vocabulary.messages import encode
from otelmon.vocabulary.reading import Reading

Age = tuple[int, str, str]


class Snapshot(msgspec.Struct, frozen=True):
    """One trace of a conversation (or `part` of a large one), kept on the compacted memory topic so that
    the conversation survives a restart without reading its spans again. `effect_keys` are those last sent to the
    ledger, so that later withdrawals stay possible; `closed` are its runs that were closed and why.

    `forgotten`: something of the conversation had to go. `floor`, `kept` and `kept_calls` belong to a trace
    that was itself shortened: the age of the youngest reading that went, and what was said until then.
    `left` stands alone: the whole conversation had to go.
    """

    conversation_id: str
    trace_id: str
    epoch: int
    readings: tuple[Reading, ...]
    effect_keys: tuple[str, ...]
    closed: dict[str, EndReason]
    part: int = 0
    forgotten: bool = False
    floor: Age | None = None
    kept: tuple[Finding, ...] = ()
    kept_calls: tuple[str, ...] = ()
    left: bool = False


def age(reading: Reading) -> Age:
    """Sorts the readings of a trace, oldest first, whatever the order they came in."""
    return (reading.start_time_unix_nano, reading.span_id, reading.digest)


def gone(conversation_id: str) -> Snapshot:
    """The mark that a conversation leaves behind."""
    return Snapshot(conversation_id, "", 0, (), (), {}, left=True)


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """msgpack bytes of a snapshot."""
    return encode(snapshot)


_decoder = msgspec.msgpack.Decoder(Snapshot)


def decode_snapshot(data: bytes) -> Snapshot:
    """Raises msgspec.DecodeError when the bytes are not a snapshot."""
    return _decoder.decode(data)
