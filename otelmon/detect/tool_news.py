"""Which versions of tools a detector still has to tell the ledger about."""

from __future__ import annotations

from collections import Counter, OrderedDict

from otelmon.checks.lib.tool_versions import Hashes, tool_versions
from otelmon.vocabulary.event import Timeline
from otelmon.vocabulary.messages import ToolVersion, encode

MAX_TOLD = 50_000  # versions remembered as told; what is told twice changes nothing
MAX_BYTES = 512 * 1024  # of one version


class ToolNews:
    """Every run shows all its tools: only the first sight of a version, and an earlier one, is news."""

    def __init__(self, counters: Counter[tuple[str, ...]]) -> None:
        self._counters = counters
        self._told: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._hashes: Hashes = {}

    def of(self, timeline: Timeline) -> list[ToolVersion]:
        """Versions the conversation shows that were not told yet, or not with so early a time."""
        if len(self._hashes) > MAX_TOLD:
            self._hashes.clear()
        news = []
        for one in tool_versions(timeline, self._hashes):
            mark = (one.tool_key, one.version)
            told = self._told.get(mark)
            if told is not None and told <= one.start_time_unix_nano:
                self._told.move_to_end(mark)
                continue
            self._told[mark] = one.start_time_unix_nano
            if len(encode(one)) > MAX_BYTES:
                self._counters["tool_versions_forgotten", "too_large"] += 1
            else:
                news.append(one)
        while len(self._told) > MAX_TOLD:
            self._told.popitem(last=False)
        return news
