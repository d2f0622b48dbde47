"""Points in time in a text: days and times of day, as far as they are written."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from importlib.resources import files

import msgspec

from otelmon.checks.lib.values import any_date, fold

MAX_INSTANTS = 200  # of one text; later ones are not read
_DATES = tomllib.loads((files("otelmon.checks") / "data" / "dates.toml").read_text("utf-8"))
_MONTHS = {fold(name): name for names in _DATES["months"].values() for name in names}
_MONTH = "|".join(sorted(map(re.escape, _MONTHS), key=len, reverse=True))
_NAME = re.compile(r"[a-z]{3,}")
_DAY = (
    r"\d{4}-\d{2}-\d{2}"
    rf"|(?:{_MONTH})\.?\s+\d{{1,2}}(?:st|nd|rd|th)?(?:\s*,?\s+(?:of\s+)?\d{{4}})?"
    rf"|\d{{1,2}}(?:st|nd|rd|th|\.)?\s+(?:of\s+|de\s+)?(?:{_MONTH})\.?(?:\s*,?\s+(?:of\s+|del?\s+)?\d{{4}})?"
)
_TIME = (
    r"(?:[t\s,]|\s?\(|\sat\s|\sa\slas\s|\sum\s)+(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.\d+)?)?"
    r"\s?(?P<half>[ap]\.?m\b\.?)?\s?(?P<zone>z\b|[+-]\d{2}:?\d{2}\b|\b(?:utc|gmt|est|edt|cst|cdt|mst|mdt|pst|pdt|cet|cest)\b)?"
)
_INSTANT = re.compile(rf"(?<![\w\-])(?P<day>{_DAY})(?![\d\-])(?:{_TIME})?")
_ZONES = {
    "z": 0, "utc": 0, "gmt": 0, "est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8,
    "pdt": -7, "cet": 1, "cest": 2,
}  # fmt: skip


class Instant(msgspec.Struct, frozen=True):
    """A time that lies from `first` to `last` (both without zone, equal when the time of day is written).
    `offset`: hours east of UTC where a zone is written, else None; `at`: where in the folded text it stands."""

    first: datetime
    last: datetime
    offset: float | None
    at: int

    @property
    def exact(self) -> bool:
        """The time of day is known."""
        return self.first == self.last


def instants_in(text: str, year: int | None = None) -> tuple[Instant, ...]:
    """The instants of a text in order, at most MAX_INSTANTS. `year` completes days without one; without it
    they are left out."""
    return tuple(item for _, item in zip(range(MAX_INSTANTS), _instants(fold(text), year), strict=False))


def _instants(folded: str, year: int | None) -> Iterator[Instant]:
    for match in _INSTANT.finditer(folded):
        day = _day_of(match["day"], year)
        if day is None:
            continue
        moment = _time_of(match, day)
        last = moment if moment else day + timedelta(days=1, microseconds=-1)
        yield Instant(moment or day, last, _offset(match["zone"]) if moment else None, match.start())


@lru_cache(maxsize=2048)
def _day_of(text: str, year: int | None) -> datetime | None:
    text = _NAME.sub(lambda match: _MONTHS.get(match.group(), match.group()), text)
    found = any_date(text) or (any_date(f"{text} {year}") if year else frozenset())
    return datetime.fromisoformat(min(found)) if found else None


def _time_of(match: re.Match[str], day: datetime) -> datetime | None:
    if match["hour"] is None:
        return None
    hour, half = int(match["hour"]), (match["half"] or "")[:1]
    if half and hour <= 12:
        hour = hour % 12 + (12 if half == "p" else 0)
    minute, second = int(match["minute"]), int(match["second"] or 0)
    if hour > 23 or minute > 59 or second > 59:
        return None
    return day.replace(hour=hour, minute=minute, second=second)


def _offset(zone: str | None) -> float | None:
    if not zone:
        return None
    if zone in _ZONES:
        return float(_ZONES[zone])
    digits = zone[1:].replace(":", "")
    return (int(digits[:2]) + int(digits[2:]) / 60) * (-1 if zone[0] == "-" else 1)


def apart(one: Instant, other: Instant) -> tuple[timedelta, timedelta]:
    """(least, greatest) time between two instants. A time without a zone is taken to be in the other's."""
    shift = timedelta()
    if one.offset is not None and other.offset is not None:
        shift = timedelta(hours=one.offset - other.offset)
    other_first, other_last = other.first + shift, other.last + shift
    gaps = (other_first - one.last, one.first - other_last)
    greatest = max(other_last - one.first, one.last - other_first)
    return max(timedelta(), *gaps), greatest
