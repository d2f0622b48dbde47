"""One file a dialect: how one instrumentation family writes agent spans, in our words.

A dialect is a module here (its name does not start with `_`) with

    NAME: str                      what Reading.dialect says
    PRIORITY: int                  lower is asked first: the strongest marker wins
    matches(span) -> bool          whether the span carries this dialect's marker
    read(span, history) -> Reading the span in our words
    SHOWS: Shows                   what its spans carry, and the setting that makes them carry more

It is found by being here: nothing is registered. Nothing outside this package names a foreign
attribute key. Room is left between the priorities for the dialects to come.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache

import msgspec

from otelmon.assemble.dialects._shows import Shows
from otelmon.assemble.history import History
from otelmon.vocabulary.reading import Reading
from otelmon.vocabulary.span import Span

__all__ = ["Dialect", "Shows", "dialects"]


class Dialect(msgspec.Struct, frozen=True):
    """A dialect module, loaded."""

    name: str
    priority: int
    matches: Callable[[Span], bool]
    read: Callable[[Span, History], Reading]
    shows: Shows


@cache
def dialects() -> tuple[Dialect, ...]:
    """All dialects of this package, the strongest marker first."""
    found = []
    for info in pkgutil.iter_modules(__path__):
        if info.name.startswith("_"):
            continue
        module = importlib.import_module(f"{__name__}.{info.name}")
        found.append(Dialect(module.NAME, module.PRIORITY, module.matches, module.read, module.SHOWS))
    return tuple(sorted(found, key=lambda d: (d.priority, d.name)))
