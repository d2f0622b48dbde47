"""How a value is found in the index: verbatim, in another format, or derived from what was seen."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from otelmon.checks.lib.provenance_index import Found, Index, Place, nearby
from otelmon.checks.lib.provenance_roles import Role
from otelmon.checks.lib.values import (
    any_date,
    as_date,
    compact,
    decimal_text,
    fold,
    runs,
    to_decimal,
)

MAX_COUNT = 12  # an amount may be a seen amount times a count up to this
_PREFIX = re.compile(r"[#]?[^\W\d_]{0,12}[-_#:\s]{0,2}0*(\d{3,})")
_NUMBERED = re.compile(r"([^\W\d]{0,8})(\d{1,12})")
_PERSONAL: frozenset[Role] = frozenset(("id", "code", "email", "url"))


def match(role: Role, value: Any, index: Index, clock_unix_nano: int) -> Found | None:
    """The source of a value by the rules of its role, or None when there is none."""
    direct = _direct(role, value, index)
    if direct:
        return direct
    if index.full:
        return Found("context", None, "index full", False)
    derived = _derived(role, value, index, clock_unix_nano)
    if derived:
        return derived
    if role not in _PERSONAL:
        proposal = _lookup(value, index.proposed, "proposed, then answered by the user")
        if proposal:
            return proposal
    return _lookup(value, index.described, "copied from a tool's description")


def _hit(place: Place, transformation: str, sure: bool = True) -> Found:
    return Found(place[0], place[1], transformation, sure)


def _lookup(value: Any, table: dict[str, Place], transformation: str) -> Found | None:
    number = to_decimal(value)
    keys = [compact(str(value))] if number is None else [decimal_text(number), compact(str(value))]
    for key in keys:
        if key in table:
            return _hit(table[key], transformation)
    parts = runs(str(value))
    if len(parts) > 1 and all(part in table for part in parts):
        return _hit(table[parts[0]], transformation, False)
    return None


def _direct(role: Role, value: Any, index: Index) -> Found | None:
    key = compact(str(value))
    if key and key in index.plain:
        return _hit(index.plain[key], "verbatim or formatting")
    number = to_decimal(value) if role not in _PERSONAL or not isinstance(value, str) else None
    if number is not None and decimal_text(abs(number)) in index.numbers:
        return _hit(index.numbers[decimal_text(abs(number))], "number formatting")
    if key and key in index.grouped:
        return _hit(index.grouped[key], "verbatim or formatting")
    return None


def _derived(role: Role, value: Any, index: Index, clock: int) -> Found | None:
    if role == "date":
        return match_date(str(value), index, clock)
    if role in ("amount", "quantity", "other", "status") and to_decimal(value) is not None:
        return match_number(to_decimal(value) or Decimal(0), index)
    if role in ("id", "code"):
        return _prefixed(str(value), index)
    if role in ("email", "phone", "url", "path"):
        return _contact(role, str(value), index)
    return _joined(role, str(value), index) if isinstance(value, str) else None


def _prefixed(value: str, index: Index) -> Found | None:
    """`#W9502127` where the user said 9502127, `INV-0042` where he said 42 is not enough (3 digits)."""
    found = _PREFIX.fullmatch(value.strip())
    if found and found.group(1) in index.bare:
        return _hit(index.bare[found.group(1)], "prefix added", False)
    parts = runs(value)
    if len(parts) > 1 and any(c.isspace() for c in value) and all(part in index.words for part in parts):
        return _hit(index.words[parts[0]], "parts joined", False)
    numbered = _NUMBERED.fullmatch(compact(value))
    place = index.run_with(numbered[1], int(numbered[2])) if numbered else None
    return _hit(place, "within a stated run", False) if place else None


def _contact(role: Role, value: str, index: Index) -> Found | None:
    if role == "phone":
        digits = "".join(c for c in value if c.isdigit())
        tail = next((digits[n:] for n in range(4) if len(digits) - n >= 6 and digits[n:] in index.words), None)
        return _hit(index.words[tail], "phone formatting", n_sure(tail, digits)) if tail else None
    if role == "url":
        host = re.sub(r"^(?:https?://)?(?:www\.)?", "", fold(value)).split("/")[0].split(":")[0]
        place = index.words.get(compact(host)) or index.words.get(compact("www." + host))
        return _hit(place, "same host", False) if place else None
    if role == "path":
        parts = [part for part in re.split(r"[/\\]", fold(value)) if compact(part)]
        if parts and all(compact(part) in index.words for part in parts):
            return _hit(index.words[compact(parts[-1])], "path joined")
    return None


def n_sure(tail: str, digits: str) -> bool:
    """A phone number without its country code is a likely match, the whole a certain one."""
    return tail == digits


def _joined(role: Role, value: str, index: Index) -> Found | None:
    """Names and addresses: all parts known; of an address its numbers and half of its words."""
    parts = runs(value)
    known = [part for part in parts if part in index.words]
    if not known:
        return None
    numbers_known = all(part in index.words for part in parts if any(c.isdigit() for c in part))
    if len(known) == len(parts):
        return _hit(index.words[known[0]], "parts joined")
    if role in ("address", "other") and numbers_known and 2 * len(known) >= len(parts):
        return _hit(index.words[known[0]], "parts joined", False)
    return None


def match_number(number: Decimal, index: Index) -> Found | None:
    """Minor units, rounding, counts, sums, differences and percentages of seen amounts."""
    size = abs(number)
    for factor, label in ((Decimal(100), "minor units"), (Decimal("0.01"), "minor units"), (Decimal(-1), "sign")):
        key = decimal_text(abs(size * factor))
        if key in index.numbers:
            return _hit(index.numbers[key], label)
    index.searches -= 1
    if index.searches < 0:
        return Found("result", None, "not searched: too many amounts", False)
    return _arithmetic(size, index)


def _arithmetic(size: Decimal, index: Index) -> Found | None:
    seen = index.amounts
    known = set(seen)
    for count in range(1, MAX_COUNT + 1):
        part = size / count
        for amount in seen:
            if count > 1 and amount == part:
                return Found("result", None, f"{amount} times {count}", False)
            if (part - amount) in known or (amount + part) in known:
                return Found("result", None, f"sum or difference with {amount}", False)
    for text in sorted(index.percents):
        share = Decimal(text) / 100
        for amount in seen:
            if _equal(amount * share, size) or _equal(amount * (1 - share), size) or _equal(amount * (1 + share), size):
                return Found("result", None, f"{text} % of {amount}", False)
    return _longer_sum(size, seen)


def _equal(left: Decimal, right: Decimal) -> bool:
    return abs(left - right) <= Decimal("0.011")


def _longer_sum(size: Decimal, seen: list[Decimal]) -> Found | None:
    """Sums of three and of four seen amounts: bounded by the pairs of at most 60 of them."""
    parts = [amount for amount in seen if amount < size][-60:]
    pairs = {a + b for n, a in enumerate(parts) for b in parts[n:]}
    for amount in (*parts, *pairs):
        if size - amount in pairs:
            return Found("result", None, "sum of seen amounts", False)
    return None


def match_date(value: str, index: Index, clock_unix_nano: int) -> Found | None:
    """A day: stated, its year resolved, relative to today, or beside or between stated days."""
    day = as_date(value) or next((as_date(text) for text in sorted(any_date(value))), None)
    if day is None:
        return None
    for text in sorted({day.isoformat(), *any_date(value)}):
        if text in index.dates:
            return _hit(index.dates[text], "date formatting")
    today = index.today or datetime.fromtimestamp(clock_unix_nano / 1e9, UTC).date()
    return _from_today(day, today, index) or _from_parts(day, today, index) or _beside(day, index)


def plausible_year(day: date, today: date, index: Index) -> bool:
    """A year nobody stated is this one, the next, or one half a year back over the turn of the year."""
    return day.year in index.years or day.year in (today.year, today.year + 1) or abs((day - today).days) <= 183


def _from_parts(day: date, today: date, index: Index) -> Found | None:
    if not plausible_year(day, today, index):
        return None
    key = f"{day.month:02d}-{day.day:02d}"
    if key in index.month_days:
        return _hit(index.month_days[key], "year resolved", day.year in index.years)
    if day.day in index.days and (day.month in index.months or abs((day - today).days) <= 62 or _around(day, index)):
        return _hit(index.days[day.day], "month and year resolved", False)
    if day.isoformat()[:7] in index.month_years:
        return _hit(index.month_years[day.isoformat()[:7]], "day within a stated month", False)
    if day.month in index.months and (day.day == 1 or _last_of_month(day)):
        return _hit(index.months[day.month], "day within a stated month", False)
    return None


def _last_of_month(day: date) -> bool:
    return any(text.endswith("-01") for text in nearby(day, [1]))


def _from_today(day: date, today: date, index: Index) -> Found | None:
    away = (day - today).days
    if away in index.relative:
        return _hit(index.relative[away], "relative to today")
    if day.weekday() in index.weekdays and abs(away) <= 14:
        return _hit(index.weekdays[day.weekday()], "weekday resolved", False)
    if away == 0:
        return Found("run", None, "today", False)
    if "weeks" in index.spans and abs(away) <= 35:
        return _hit(index.spans["weeks"], "within stated weeks", False)
    if "months" in index.spans and abs(away) <= 400:
        return _hit(index.spans["months"], "within stated months", False)
    return None


def _around(day: date, index: Index) -> set[str]:
    """The stated days within a month of one."""
    return {text for text in nearby(day, range(-31, 32)) if text in index.dates}


def _beside(day: date, index: Index) -> Found | None:
    """The day after or before a stated one (ends of ranges), or between two that are a month apart."""
    around = _around(day, index)
    for offset in (1, -1, 7, -7):
        for text in nearby(day, [offset]):
            if text in index.dates:
                return _hit(index.dates[text], "beside a stated day", False)
    before = [text for text in around if text < day.isoformat()]
    after = [text for text in around if text > day.isoformat()]
    if before and after:
        return _hit(index.dates[max(before)], "between stated days", False)
    return None
