"""One partition on disk: append-only segment files, written in batches, repaired when opened."""

from __future__ import annotations

import logging
import os
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from otelmon.bus import frames
from otelmon.bus.protocol import Delivered, Outgoing

logger = logging.getLogger("otelmon.bus")

_CHUNK = 1 << 20  # bytes read at once
_MARK = 64 * 1024  # bytes between two marks of the sparse index of a segment


class Segment:
    """One file: `base` is its first possible offset, `size` its acknowledged bytes."""

    __slots__ = ("base", "marks", "path", "size")

    def __init__(self, path: Path, base: int, size: int) -> None:
        self.path = path
        self.base = base
        self.size = size
        self.marks: list[tuple[int, int]] = [(base, 0)]

    def mark(self, offset: int, position: int) -> None:
        if position - self.marks[-1][1] >= _MARK:
            self.marks.append((offset, position))

    def seek(self, offset: int) -> int:
        """A position at or before the frame of this offset."""
        return self.marks[bisect_right(self.marks, (offset, 1 << 62)) - 1][1]


class Cursor:
    """Where one reader is. `segment` is None until the offset has been looked up."""

    __slots__ = ("offset", "position", "segment")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.segment: Segment | None = None
        self.position = 0


class PartitionLog:
    """Append, take back, read. One writer at a time (the topic's lock); readers need no lock.

    `losses` counts what could not be kept or found, by a closed set of words.
    """

    def __init__(
        self,
        folder: Path,
        topic: str,
        partition: int,
        segment_bytes: int,
        losses: Counter[str],
        *,
        compacted: bool = False,
    ) -> None:
        self._compacted = compacted
        self.topic = topic
        self.partition = partition
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._losses = losses
        self._fd = -1
        self._staged: tuple[int, int, list[bytes]] | None = None
        self._unsynced = False
        folder.mkdir(parents=True, exist_ok=True)
        paths = sorted(folder.glob("*.seg"))
        self.segments = [Segment(path, int(path.stem), path.stat().st_size) for path in paths]
        self.end = self.segments[-1].base if self.segments else 0
        if self.segments:
            self._repair(self.segments[-1])

    @property
    def oldest(self) -> int:
        """The first offset that can still be read."""
        return self.segments[0].base if self.segments else self.end

    @property
    def size(self) -> int:
        """Acknowledged bytes on disk."""
        return sum(segment.size for segment in self.segments)

    def end_of(self, index: int) -> int:
        """The offset after the last record of the segment at `index`."""
        return self.segments[index + 1].base if index + 1 < len(self.segments) else self.end

    # Writing.

    def stage(self, messages: Sequence[Outgoing]) -> None:
        """Write the messages in one go, not yet visible. Raises OSError; `rollback` takes them back."""
        if not self.segments or self.segments[-1].size >= self._segment_bytes:
            self.roll()
        if self._fd < 0:
            self._fd = os.open(self.segments[-1].path, os.O_WRONLY | os.O_APPEND)
        records = frames.encode(messages, self.end)
        data = memoryview(b"".join(records))
        size = self.segments[-1].size
        if os.fstat(self._fd).st_size != size:
            os.ftruncate(self._fd, size)  # an earlier rollback that the disk refused
        self._staged = (size, self.end, records)
        while data:
            data = data[os.write(self._fd, data) :]
        self._unsynced = True

    def sync(self) -> None:
        """Make everything written so far survive a power cut. Raises OSError."""
        if self._unsynced:
            os.fdatasync(self._fd)
            self._unsynced = False

    def rollback(self) -> None:
        """Take the staged messages back, so that the file ends where the last acknowledged record ends."""
        if self._staged is not None:
            with suppress(OSError):  # `stage` tries again before the next write
                os.ftruncate(self._fd, self._staged[0])
        self._staged = None

    def publish(self) -> list[frames.Place]:
        """Let readers see what was staged; says where it lies in the last segment."""
        if self._staged is None:
            return []
        position, offset, records = self._staged
        self._staged = None
        segment = self.segments[-1]
        places = []
        for record in records:
            segment.mark(offset, position)
            places.append(frames.Place(position, len(record), offset))
            position += len(record)
            offset += 1
        segment.size = position
        self.end = offset
        return places

    def roll(self) -> None:
        """Close the last segment file (synced) and begin another. Raises OSError."""
        if self._fd >= 0:
            os.fsync(self._fd)
            os.close(self._fd)
            self._fd, self._unsynced = -1, False
        path = self._folder / f"{self.end:020d}.seg"
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644))
        sync_folder(self._folder)
        self.segments.append(Segment(path, self.end, 0))

    def skip_to(self, offset: int) -> None:
        """Never hand out offsets below this one again (a group has already committed them)."""
        if offset > self.end:
            self.end = offset
            self.roll()

    def drop_oldest(self) -> int:
        """Delete the first segment file; never the one being written. Bytes freed."""
        if len(self.segments) < 2:
            return 0
        segment = self.segments.pop(0)
        segment.path.unlink(missing_ok=True)
        return segment.size

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    # Reading.

    def read(self, cursor: Cursor, max_messages: int, max_bytes: int) -> list[Delivered]:
        """The next messages, in order: at most so many, and no more after so many bytes."""
        found: list[Delivered] = []
        taken = 0
        while len(found) < max_messages and taken < max_bytes and cursor.offset < (end := self.end):
            segment = self._settle(cursor)
            start = cursor.position
            data = self._chunk(segment, start)
            if data is None:
                cursor.segment = None  # deleted under us: look it up again
                continue
            if not data:
                cursor.offset = end  # the file ends in damage: nothing is left below `end`
                break
            self._take(cursor, segment, data, found, max_messages)
            taken += cursor.position - start
        return found

    def _settle(self, cursor: Cursor) -> Segment:
        segments = list(self.segments)
        segment = cursor.segment
        if segment is not None and segment in segments:
            index = segments.index(segment)
            if cursor.position < segment.size or index + 1 == len(segments):
                return segment
            cursor.segment, cursor.position = segments[index + 1], 0
            return segments[index + 1]
        if cursor.offset < segments[0].base:
            if not self._compacted:  # there only outdated values go
                self._lost("offset_deleted", f"offset {cursor.offset} is gone; reading goes on at {segments[0].base}")
            cursor.offset = segments[0].base
        index = bisect_right([s.base for s in segments], cursor.offset) - 1
        cursor.segment = segments[index]
        cursor.position = segments[index].seek(cursor.offset)
        return cursor.segment

    def _chunk(self, segment: Segment, position: int) -> bytes | None:
        left = segment.size - position
        try:
            fd = os.open(segment.path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            data = os.pread(fd, min(_CHUNK, left), position)
            size = frames.size_at(data, 0)
            if size is not None and len(data) < size <= left:
                data = os.pread(fd, size, position)
            elif len(data) < left and (size is None or size > left):
                data = os.pread(fd, left, position)  # damaged here: the rest is searched for the next frame
        finally:
            os.close(fd)
        return data

    def _take(self, cursor: Cursor, segment: Segment, data: bytes, found: list[Delivered], most: int) -> None:
        at, base = 0, cursor.position
        while at < len(data) and len(found) < most:
            size = frames.size_at(data, at)
            if at and (size is None or at + size > len(data)) and base + len(data) < segment.size:
                break  # the chunk ends here, not the file
            place = frames.place_at(data, at) or self._resync(cursor, data, at)
            if place is None:
                at = len(data)
                break
            if place.offset >= cursor.offset:
                found.append(frames.read(data, place, self.topic, self.partition))
                cursor.offset = place.offset + 1
            at = place.position + place.size
        cursor.position = base + at

    def _resync(self, cursor: Cursor, data: bytes, at: int) -> frames.Place | None:
        place = frames.next_place(data, at + 1, cursor.offset)
        self._lost("corrupt_record", f"damaged bytes after offset {cursor.offset - 1} are left out")
        return place

    # Opening.

    def _repair(self, segment: Segment) -> None:
        """Find the end of the last file; cut a tail that a kill left half written."""
        data = segment.path.read_bytes()
        at = 0
        for place in frames.places(data, self.end):
            if place.position > at:
                self._lost("corrupt_record", f"damaged bytes before offset {place.offset} are left out")
            segment.mark(place.offset, place.position)
            self.end = place.offset + 1
            at = place.position + place.size
        if at < len(data):
            os.truncate(segment.path, at)
            self._lost("torn_tail", f"{len(data) - at} bytes of a message that was never acknowledged are cut off")
        segment.size = at

    def _lost(self, word: str, text: str) -> None:
        self._losses[word] += 1
        logger.warning("%s partition %d: %s", self.topic, self.partition, text)


def sync_folder(folder: Path) -> None:
    """Make created, renamed and deleted names of a folder survive a power cut."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
