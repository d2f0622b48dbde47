"""A process that writes to a spool until it is killed, saying what was acknowledged.

`python -m tests.bus.writer FOLDER NAME` prints the number of each acknowledged message, one a line.
"""

from __future__ import annotations

import sys
from pathlib import Path

from otelmon.bus.protocol import Outgoing
from otelmon.bus.spool import SpoolBus
from otelmon.vocabulary.config import SpoolConfig
from otelmon.vocabulary.messages import MEMORY, SPANS


def write(folder: Path, name: str) -> None:
    """Batches of three to two partitions, a snapshot after each, in small segments."""
    bus = SpoolBus(folder, SpoolConfig(segment_bytes=20_000, min_free_bytes=0), 2)
    number = 0
    while True:
        batch = [Outgoing(f"{n}", f"{name}-{n}".encode() + bytes(n % 500), 0) for n in range(number, number + 3)]
        bus.publish(SPANS, batch)
        bus.publish(MEMORY, [Outgoing(name, str(number).encode(), 0)])
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
        number += 3


if __name__ == "__main__":
    write(Path(sys.argv[1]), sys.argv[2])
