"""What the pages and the API are given: the store, the laws, and how the monitor is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from otelmon.detect.engine import Laws
    from otelmon.store.database import Database
    from otelmon.vocabulary.config import Config
    from otelmon.web.in_force import InForce


class Site(msgspec.Struct):
    """`database` is None in a process without the store stage: then only health and metrics answer.
    `metrics` gives the exposition text, `problems` what is wrong now, `wall` nanoseconds;
    `replay(since, until)` sends stored messages through the stages again, answers how many; `in_force`
    tells what is judged by now. `laws` is set anew when they change."""

    config: Config
    laws: Laws
    database: Database | None
    metrics: Callable[[], bytes]
    problems: Callable[[], list[str]]
    wall: Callable[[], int]
    replay: Callable[[int, int | None], int]
    in_force: Callable[[], InForce]
