"""The newest record of every key of a compacted partition, and the cleaning that keeps its disk bounded."""

from __future__ import annotations

from collections.abc import Sequence

from otelmon.bus import frames
from otelmon.bus.log import PartitionLog, Segment
from otelmon.bus.protocol import Outgoing

_COPY = 4 << 20  # bytes copied at once


class Latest:
    """Knows where each key's newest record lies, not what it says: values stay on disk.

    Used under the topic's lock. Cleaning copies what is still live in the oldest segment to the
    end of the log and then deletes the segment, so a kill in between only repeats newest records.
    """

    def __init__(self, log: PartitionLog, segment_bytes: int) -> None:
        self._log = log
        self._segment_bytes = segment_bytes
        self._where: dict[str, tuple[Segment, frames.Place]] = {}
        self._live = 0
        for segment in log.segments:
            data = segment.path.read_bytes()[: segment.size]
            for place in frames.places(data, 0):
                record = frames.read(data, place, log.topic, log.partition)
                self._note(record.key, segment, place, bool(record.value))

    def note(self, messages: Sequence[Outgoing], places: Sequence[frames.Place]) -> None:
        """These messages were just published to the last segment."""
        segment = self._log.segments[-1]
        for message, place in zip(messages, places, strict=True):
            self._note(message.key, segment, place, bool(message.value))

    def _note(self, key: str, segment: Segment, place: frames.Place, keep: bool) -> None:
        old = self._where.pop(key, None)
        if old is not None:
            self._live -= old[1].size
        if keep:
            self._where[key] = (segment, place)
            self._live += place.size

    def values(self) -> dict[str, bytes]:
        """The newest value of every key that was not deleted."""
        wanted: dict[Segment, list[frames.Place]] = {}
        for segment, place in self._where.values():
            wanted.setdefault(segment, []).append(place)
        found: dict[str, bytes] = {}
        for segment, places in wanted.items():
            data = segment.path.read_bytes()
            for place in places:
                record = frames.read(data, place, self._log.topic, self._log.partition)
                found[record.key] = record.value
        return found

    def clean(self, sync: bool) -> None:
        """Rewrite oldest segments while more than half of the log, beyond one segment, is outdated.

        Raises OSError when the disk refuses; nothing live is lost then.
        """
        while len(self._log.segments) > 1 and self._log.size > 2 * self._live + self._segment_bytes:
            self._copy(self._log.segments[0])
            if sync:
                self._log.sync()
            self._log.drop_oldest()

    def _copy(self, segment: Segment) -> None:
        data = segment.path.read_bytes()
        batch: list[Outgoing] = []
        size = 0
        for place in [place for where, place in self._where.values() if where is segment]:
            record = frames.read(data, place, self._log.topic, self._log.partition)
            batch.append(Outgoing(record.key, record.value, record.time_unix_nano, record.headers))
            size += place.size
            if size >= _COPY:
                self._append(batch)
                batch, size = [], 0
        if batch:
            self._append(batch)

    def _append(self, batch: Sequence[Outgoing]) -> None:
        try:
            self._log.stage(batch)
        except OSError:
            self._log.rollback()
            raise
        self.note(batch, self._log.publish())
