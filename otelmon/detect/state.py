"""What a detector holds of a conversation and of each of its traces."""

from __future__ import annotations

import msgspec

from otelmon.assemble.timeline import build
from otelmon.detect.emission import TraceEmission
from otelmon.detect.snapshot import Age
from otelmon.vocabulary.event import EndReason, Run, Timeline
from otelmon.vocabulary.reading import Reading


class TraceState:
    """One trace of a conversation: its readings by identity in the order they came, and what was last
    said about it. `floor` is the age of the youngest reading that had to go; older ones are not taken."""

    __slots__ = ("bytes", "emission", "epoch", "first_offset", "floor", "parts", "readings", "saved")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.readings: dict[tuple[str, str, str], Reading] = {}
        self.floor: Age | None = None
        self.bytes = 0
        self.first_offset: int | None = None  # oldest message not yet covered by a snapshot
        self.saved = False  # all of it was judged as a whole, and a snapshot of that is out
        self.parts = 0  # snapshots on the memory topic
        self.emission = TraceEmission()


class ConversationState:
    """The state of one conversation. `partition` is where it lives."""

    __slots__ = ("bytes", "closed", "conversation_id", "forgotten", "last_received", "partition", "runs", "traces")  # fmt: skip

    def __init__(self, conversation_id: str, partition: int) -> None:
        self.conversation_id = conversation_id
        self.partition = partition
        self.traces: dict[str, TraceState] = {}
        self.runs: tuple[Run, ...] = ()
        self.closed: dict[str, EndReason] = {}
        self.last_received = 0
        self.bytes = 0
        self.forgotten = False

    @property
    def saved(self) -> bool:
        """Whether all of it was judged as a whole and is in memory's snapshots."""
        return all(trace.saved for trace in self.traces.values())

    def build(self) -> Timeline:
        """The timeline of all readings held. Where something had to go, no run has its whole past."""
        readings = (reading for trace in self.traces.values() for reading in trace.readings.values())
        timeline = build(self.conversation_id, readings, self.closed)
        if not self.forgotten:
            return timeline
        return msgspec.structs.replace(timeline, runs=tuple(_with_gap(run) for run in timeline.runs))


def _with_gap(run: Run) -> Run:
    if "prior_turns_unseen" in run.gaps:
        return run
    return msgspec.structs.replace(run, gaps=(*run.gaps, "prior_turns_unseen"))
