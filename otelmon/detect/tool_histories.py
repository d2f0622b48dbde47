"""The versions of every tool by first sight: the part of the ledger that sees a tool change.

State is the set of first sights; a verdict is a pure function of it, so the order in which they arrive
changes nothing, and two replicas that serve two versions for an hour are one change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

from otelmon.checks.lib.tool_versions import in_order, order
from otelmon.detect.told import Judged, Told, Where
from otelmon.vocabulary.finding import Finding
from otelmon.vocabulary.messages import ToolVersion, Verdict

MAX_TOOLS, MAX_VERSIONS = 20_000, 64
Gone = tuple[int, str, str]  # partition, tool key, the rest of the key on the topic
Judge = Callable[[Where, Sequence[ToolVersion]], Sequence[Finding]]


def topic_key(one: ToolVersion) -> str:
    """What stands behind the tool key in the key of the compacted topic: each sayer has its own message, so
    that a later sight never overwrites an earlier one."""
    return f"{one.version}\x1f{one.trace_id}"


class ToolHistories:
    """The tools of the partitions one ledger owns. Used by one thread. `keep`: nanoseconds that a version is
    remembered after the next one came; the newest version of a tool stays."""

    def __init__(self, keep: int, counters: Counter[tuple[str, ...]]) -> None:
        self._keep = keep
        self._counters = counters
        self._held: dict[Where, dict[str, ToolVersion]] = {}
        self._told = Told("tool")
        self._gone: list[Gone] = []
        self._newest = 0

    def restore(self, one: ToolVersion, partition: int) -> None:
        """Take back what the topic remembers."""
        self._put(one, partition)
        self._told.restored((partition, one.tool_key))

    def feed(self, one: ToolVersion, partition: int) -> None:
        """Take the first sight of a version, as far as one detector knows."""
        self._put(one, partition)
        self._told.news((partition, one.tool_key))

    def _put(self, one: ToolVersion, partition: int) -> None:
        """Keep the earliest sight; the other one has nothing more to say and leaves the topic."""
        where = (partition, one.tool_key)
        history = self._held.setdefault(where, {})
        known = history.get(one.version)
        if known is None or order(one) < order(known):
            history[one.version] = one
        if known is not None and topic_key(known) != topic_key(one):
            self._gone.append((*where, topic_key(one if history[one.version] is known else known)))
        self._newest = max(self._newest, one.start_time_unix_nano)
        if len(history) > MAX_VERSIONS:
            self._drop(where, in_order(history.values())[0], "max_versions")

    def judge_dirty(self, judge: Judge) -> list[Verdict]:
        """Verdicts of the tools with news, when they changed."""
        return self._told.verdicts(lambda where: self._judged(where, judge))

    def _judged(self, where: Where, judge: Judge) -> Judged:
        versions = in_order(self._held.get(where, {}).values())
        newest = max((one.start_time_unix_nano for one in versions), default=0)
        return (judge(where, versions) if versions else ()), newest

    def forget_old(self, wall: int) -> list[Gone]:
        """Drop versions that were replaced long ago, and the tools that changed least recently when there are
        too many; what has to leave the topic."""
        limit = min(self._newest, wall) - self._keep
        for where, history in list(self._held.items()):
            versions = in_order(history.values())
            for one, following in pairwise(versions):
                if following.start_time_unix_nano < limit:
                    self._drop(where, one, "age")
        if len(self._held) > MAX_TOOLS:
            by_age = sorted(self._held, key=lambda where: max(map(order, self._held[where].values())))
            for where in by_age[: len(self._held) - MAX_TOOLS]:
                for one in list(self._held[where].values()):
                    self._drop(where, one, "max_tools")
                del self._held[where]
                self._told.forget(where)
        gone, self._gone = self._gone, []
        return gone

    def _drop(self, where: Where, one: ToolVersion, reason: str) -> None:
        del self._held[where][one.version]
        self._gone.append((*where, topic_key(one)))
        self._counters["tool_versions_forgotten", reason] += 1

    def drop_partition(self, partition: int) -> None:
        """Another ledger owns it now."""
        for where in [where for where in self._held if where[0] == partition]:
            del self._held[where]
            self._told.drop(where)
        self._gone = [gone for gone in self._gone if gone[0] != partition]

    @property
    def size(self) -> int:
        """How many tools are held now."""
        return len(self._held)
