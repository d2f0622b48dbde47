"""What the spool forgets: segments that every group has consumed, oldest first, spans last."""

from __future__ import annotations

from collections.abc import Iterable

from otelmon.bus.groups import Offsets
from otelmon.bus.log import PartitionLog
from otelmon.bus.topic import Topic
from otelmon.vocabulary.messages import DEAD, SPANS


def enforce(topics: Iterable[Topic], offsets: Offsets, retain_bytes: int) -> None:
    """Delete consumed segments beyond `retain_bytes`, all topics together. Unconsumed data is never touched.

    Spans go last because they are what a replay reads. Compacted topics clean themselves.
    """
    spent = [(topic, log, _spent(log, topic, offsets)) for topic in topics if not topic.compacted for log in topic.logs]
    over = sum(segment.size for _, log, count in spent for segment in log.segments[:count]) - retain_bytes
    if over <= 0:
        return
    candidates = [
        ((topic.name == SPANS, _age(log, index), index), topic, log)
        for topic, log, count in spent
        for index in range(count)
    ]
    candidates.sort(key=lambda candidate: candidate[0])
    for _, topic, log in candidates:
        if over <= 0:
            return
        with topic.lock:
            over -= log.drop_oldest()


def _spent(log: PartitionLog, topic: Topic, offsets: Offsets) -> int:
    """How many closed segments at the start of the log nobody needs any more."""
    if len(log.segments) < 2:
        return 0
    read_to = offsets.consumed((topic.name, log.partition))
    if read_to is None:
        # Dead letters have no reader by design; any other topic may yet get its first group.
        read_to = log.end if topic.name == DEAD else 0
    closed = range(len(log.segments) - 1)
    return sum(1 for index in closed if log.end_of(index) <= read_to)


def _age(log: PartitionLog, index: int) -> int:
    return log.segments[index].path.stat().st_mtime_ns
