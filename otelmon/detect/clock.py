"""Time in the pipeline: the recorded receive time of the data, per partition."""

from __future__ import annotations

from collections.abc import Callable


class PartitionClock:
    """Shows the newest receive time seen in each partition. While a partition is quiet (its last
    poll was empty) the wall clock moves it on, so that absence can be noticed; it never runs ahead
    while messages are waiting. `wall` gives nanoseconds and is injected."""

    def __init__(self, wall: Callable[[], int]) -> None:
        self._wall = wall
        self._newest: dict[int, int] = {}
        self._remembered: dict[int, int] = {}
        self._quiet_since: int | None = None

    def saw(self, partition: int, received_unix_nano: int) -> None:
        """A message with this receive time was taken."""
        self._newest[partition] = max(self._newest.get(partition, 0), received_unix_nano)
        self._quiet_since = None

    def remembers(self, partition: int, received_unix_nano: int) -> None:
        """Memory that was taken back has seen this receive time. Messages after the committed offset come
        again and may be older, so it counts only when a poll found nothing: before that, runs whose spans
        are still on their way would look long over."""
        self._remembered[partition] = max(self._remembered.get(partition, 0), received_unix_nano)

    def quiet(self) -> None:
        """A poll found nothing."""
        for partition, remembered in self._remembered.items():
            self._newest[partition] = max(self._newest.get(partition, 0), remembered)
        self._remembered.clear()
        if self._quiet_since is None:
            self._quiet_since = self._wall()

    def forget(self, partition: int) -> None:
        """The partition is another's now."""
        self._newest.pop(partition, None)
        self._remembered.pop(partition, None)

    def __call__(self, partition: int) -> int:
        """Now, in nanoseconds since the epoch; 0 while nothing was seen."""
        newest = self._newest.get(partition, 0)
        if not newest or self._quiet_since is None:
            return newest
        return newest + max(0, self._wall() - self._quiet_since)
