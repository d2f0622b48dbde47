"""Values in text: what a text mentions, in forms that compare across formatting."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from importlib.resources import files

import msgspec

MAX_TEXT = 400_000  # characters read of one text; the rest is a named gap ("truncated")
MAX_WORD = 400  # longer chunks are blobs, not values
MAX_REMEMBERED = 32_000  # characters of a text whose values are remembered; longer ones are read again

_DATES = tomllib.loads((files("otelmon.checks") / "data" / "dates.toml").read_text("utf-8"))
_MONTHS = {name: n for names in _DATES["months"].values() for n, name in enumerate(names, 1)} | {"sept": 9}
_WEEKDAYS = {name: n for names in _DATES["weekdays"].values() for n, name in enumerate(names)}
_RELATIVE: dict[str, int] = _DATES["relative"]
_NUMBER_WORDS: dict[str, int] = _DATES["numbers"]
_SPANS: dict[str, list[str]] = _DATES["spans"]

_CHUNK = re.compile(r"""[^\s"'`{}\[\](),;<>|=*“”‘’«»\\]+""")
_RUN = re.compile(r"[^\W_]+")
_ACCENTS = re.compile(r"[\u0300-\u036f]+")
_PIECES = re.compile(r"[:/?&@]+")
# The same cuts as _RUN and _CHUNK for ASCII, many times faster: what parts becomes a blank, then split.
_PARTS_RUNS = bytes(byte if byte > 127 or chr(byte).isalnum() else 32 for byte in range(256))
_PARTS_CHUNKS = bytes(32 if chr(byte) in " \"'`{}[](),;<>|=*\\" else byte for byte in range(256))
_NUMBER = re.compile(r"(?<![\w.])(\d+(?:[.,'\u00a0 ]\d{3})*(?:[.,]\d+)?)(?:\s?([kKmM])(?![\w]))?(\s?%)?")
_GROUPING = re.compile(r"[,'\u00a0 ]")
_AMERICAN = re.compile(r"\d+(?:\.\d+)?|\d{1,3}(?:[,'\u00a0 ]\d{3})+(?:\.\d+)?")
_EUROPEAN = re.compile(r"\d+,\d+|\d{1,3}(?:[.'\u00a0 ]\d{3}){2,}|\d{1,3}(?:[.'\u00a0 ]\d{3})+(?:,\d+)?")
_DIGIT_GROUPS = re.compile(r"\+?\d(?:[\s\-./()]{0,2}\d){4,}")
_SPELLED = re.compile(r"(?<!\w)\w(?:[\s\-,.]{1,2}\w(?!\w)){3,}")
_GROUPED = re.compile(r"(?<!\w)[a-z]{0,4}\d{1,4}(?:[ \-](?=[a-z]{0,4}\d)[a-z0-9]{2,5}){2,8}(?!\w)")
_BEHIND_BLANK = re.compile(r"(?<=[ #])\d[\w\-]{1,20}(?!\w)")  # looked for first: rarer than short words
_JSON_TEXT = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"')
_PREFIX = re.compile(r"(?<!\w)[^\W\d_]{1,4}[ #]{1,2}\Z")
_DIGITS = re.compile(r"\d[\d/.\-]*")  # all that numeric days are written in, once each
_ISO = re.compile(r"(?<!\d)(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")
_DMY = re.compile(r"(?<!\d)(\d{1,2})[/.\-](\d{1,2})[/.\-](\d{4}|\d{2})(?!\d)")
_MONTH_NAME = "|".join(sorted(map(re.escape, _MONTHS), key=len, reverse=True))
_MONTH_DAY = re.compile(
    rf"(?<!\w)({_MONTH_NAME})\.?\s+(?:the\s+)?(\d{{1,2}})(?:st|nd|rd|th)?(?!\d)(?:,?\s+(?:of\s+)?(\d{{4}}))?"
)
_DAY_MONTH = re.compile(
    rf"(?<!\d)(\d{{1,2}})(?:st|nd|rd|th|\.|º)?\s+(?:of\s+|de\s+|del\s+)?({_MONTH_NAME})(?!\w)\.?(?:,?\s+(?:of\s+|de\s+|del\s+)?(\d{{4}}))?"
)
_MONTH_YEAR = re.compile(rf"(?<!\w)({_MONTH_NAME})\.?,?\s+(?:of\s+|de\s+|del\s+)?(\d{{4}})(?!\d)")
_MONTH_ONLY = re.compile(rf"(?<!\w)({_MONTH_NAME})(?!\w)")
_ORDINAL = re.compile(r"(?<!\d)(\d{1,2})(?:st|nd|rd|th)\Z")  # of a word
_RANGE = re.compile(rf"(?<!\w)({_MONTH_NAME})\.?\s+\d{{1,2}}(?:st|nd|rd|th)?\s*(?:-|–|to|and|or)\s*(\d{{1,2}})(?!\d)")
_YEAR = re.compile(r"(?<!\d)(19\d\d|20\d\d)(?!\d)")
_AWAY_WORDS = frozenset((*_SPANS["days"], *_SPANS["weeks"]))
_COUNT = rf"\d{{1,3}}|{'|'.join(sorted(map(re.escape, _NUMBER_WORDS), key=len, reverse=True))}"
_AWAY = re.compile(
    rf"(?<!\w)({_COUNT})\s+(?:{'|'.join(_SPANS['days'])}|({'|'.join(_SPANS['weeks'])}))(?!\w)"
)  # "in 3 days", "en dos semanas"

EMAIL = re.compile(r"[^\s@<>\"',;:]+@[^\s@<>\"',;:]+\.[^\W\d_]{2,}")
URL = re.compile(r"(?:https?://|www\.)\S+", re.IGNORECASE)


class Words(msgspec.Struct, frozen=True):
    """The words of a text in compact form (lower case letters and digits): of its chunks, their parts,
    and ids written in groups; `bare`: chunks that are digits alone, without leading zeros."""

    words: frozenset[str] = frozenset()
    bare: frozenset[str] = frozenset()


class Grouped(msgspec.Struct, frozen=True):
    """The ids and phone numbers of a text that are written in groups, in compact form."""

    grouped: frozenset[str] = frozenset()


class Numbers(msgspec.Struct, frozen=True):
    """The numbers of a text as canonical decimal text, and those that are percentages."""

    numbers: frozenset[str] = frozenset()
    percents: frozenset[str] = frozenset()


class Days(msgspec.Struct, frozen=True):
    """The days a text mentions: `dates` ISO text of full dates; `month_days` "MM-DD"; `month_years`
    "YYYY-MM"; `days` of a month named without one; `weekdays` 0 Monday; `relative` offsets from today
    in days; `spans` "days", "weeks", "months" when such words occur."""

    dates: frozenset[str] = frozenset()
    month_days: frozenset[str] = frozenset()
    months: frozenset[int] = frozenset()
    month_years: frozenset[str] = frozenset()
    days: frozenset[int] = frozenset()
    years: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    relative: frozenset[int] = frozenset()
    spans: frozenset[str] = frozenset()


def fold(text: str) -> str:
    """Lower case, compatible characters made equal, accents removed: `Núñez` -> `nunez`."""
    if text.isascii():
        return text.lower()
    return _ACCENTS.sub("", unicodedata.normalize("NFKD", text.casefold()))


def compact(text: str) -> str:
    """Letters and digits alone, folded: `#W-123` -> `w123`."""
    return "".join(_RUN.findall(fold(text)))


def runs(text: str) -> list[str]:
    """The runs of letters and digits of a text, folded: `Mia_Li 3` -> `mia`, `li`, `3`."""
    return _RUN.findall(fold(text))


def chunks(text: str) -> list[str]:
    """The pieces of a text between blanks, quotes and brackets, as written: ids keep their marks."""
    return _CHUNK.findall(text[:MAX_TEXT])


def decimal_text(value: Decimal) -> str:
    """Canonical decimal text: `18.50` -> `18.5`, `4E+1` -> `40`."""
    text = format(value, "f")
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"


def to_decimal(value: object) -> Decimal | None:
    """The number a JSON value is, money signs and separators removed; None when it is not one."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return _decimal(repr(value))
    if not isinstance(value, str) or len(value) > 40:
        return None
    text = re.sub(r"^[^\d\-+.]{0,4}|[^\d]{0,4}$", "", value.strip())
    if re.fullmatch(r"[\d.,'\u00a0 ]+", text):
        forms = number_forms(text)
        plain = decimal_text(_decimal(_GROUPING.sub("", text)) or Decimal(0))
        return Decimal(plain if plain in forms else min(forms)) if forms else None
    return _decimal(text)


def _decimal(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() and abs(number.adjusted()) < 30 else None


def number_forms(text: str) -> set[str]:
    """All numbers a written number can mean: `1,234` is 1234 and 1.234; `1.234,50` is 1234.5."""
    whole, point, part = text.partition(".")
    if (
        whole.isdecimal()
        and whole.isascii()
        and len(text) <= 28
        and (not point or (part.isdecimal() and part.isascii() and len(part) != 3))
    ):
        return {_plain_number(whole, part)}
    found: set[Decimal | None] = set()
    if _AMERICAN.fullmatch(text):
        found.add(_decimal(_GROUPING.sub("", text)))
    if _EUROPEAN.fullmatch(text):
        found.add(_decimal(re.sub(r"[.'\u00a0 ]", "", text).replace(",", ".")))
    return {decimal_text(number) for number in found if number is not None}


def _plain_number(whole: str, part: str) -> str:
    """Canonical decimal text of digits with at most one point, which can mean only one number."""
    whole, part = whole.lstrip("0") or "0", part.rstrip("0")
    return f"{whole}.{part}" if part else whole


def as_date(value: str) -> date | None:
    """The day of an ISO date or instant at the start of a value, else None."""
    match = _ISO.match(value.strip())
    return _date(*map(int, match.groups())) if match else None


def any_date(value: str) -> frozenset[str]:
    """ISO text of the full dates a short value can mean: `20/05/2024`, `May 20, 2024`."""
    return days_of(value).dates if len(value) <= 60 else frozenset()


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def words_of(text: str) -> Words:
    """The words of a text; linear in the text, remembered for short texts seen lately."""
    return _remembered_words(text) if len(text) <= MAX_REMEMBERED else _words(text[:MAX_TEXT])


def numbers_of(text: str) -> Numbers:
    """The numbers of a text; linear in the text, remembered for short texts seen lately."""
    return _remembered_numbers(text) if len(text) <= MAX_REMEMBERED else _numbers(text[:MAX_TEXT])


def days_of(text: str) -> Days:
    """The days of a text; linear in the text, remembered for short texts seen lately."""
    return _remembered_days(text) if len(text) <= MAX_REMEMBERED else _days(text[:MAX_TEXT])


def plain_words_of(text: str) -> Words:
    """The words of a text without ids that are written in groups (those: `grouped_of`)."""
    return _remembered_plain(text) if len(text) <= MAX_REMEMBERED else _plain_words(text[:MAX_TEXT])


def grouped_of(text: str) -> Grouped:
    """The ids and phone numbers of a text that are written in groups: `1 234 567`, `order 7 7 1 2`."""
    return Grouped(_remembered_grouped(text) if len(text) <= MAX_REMEMBERED else _grouped(text[:MAX_TEXT]))


@lru_cache(maxsize=512)
def _remembered_words(text: str) -> Words:
    return _words(text)


@lru_cache(maxsize=512)
def _remembered_plain(text: str) -> Words:
    return _plain_words(text)


@lru_cache(maxsize=512)
def _remembered_grouped(text: str) -> frozenset[str]:
    return _grouped(text)


@lru_cache(maxsize=512)
def _remembered_numbers(text: str) -> Numbers:
    return _numbers(text)


@lru_cache(maxsize=512)
def _remembered_days(text: str) -> Days:
    return _days(text)


def _days(text: str) -> Days:
    folded = text.casefold()
    tokens = _cut(folded)[0]
    named = "" if tokens.isdisjoint(_MONTHS) else folded  # most texts name no month: five patterns need not look
    digits = " ".join(set(_DIGITS.findall(folded)))
    dates, month_days = _written_dates(digits, named)
    return Days(
        dates=frozenset(dates),
        month_days=frozenset(month_days),
        months=frozenset(_MONTHS[m] for m in _MONTH_ONLY.findall(named)),
        month_years=frozenset(f"{year}-{_MONTHS[name]:02d}" for name, year in _MONTH_YEAR.findall(named)),
        days=frozenset(day for day in _ordinals(tokens) if 1 <= day <= 31),
        years=frozenset(int(y) for y in _YEAR.findall(digits)),
        weekdays=frozenset(_WEEKDAYS[t] for t in tokens & _WEEKDAYS.keys()),
        relative=frozenset(_relative(folded, tokens)),
        spans=frozenset(name for name, names in _SPANS.items() if tokens & set(names)),
    )


def _ordinals(words: Iterable[str]) -> Iterator[int]:
    for word in words:
        if word.endswith(("st", "nd", "rd", "th")) and (found := _ORDINAL.search(word)):
            yield int(found[1])


def _words(text: str) -> Words:
    plain = plain_words_of(text)
    return Words(plain.words | grouped_of(text).grouped, plain.bare)


def _grouped(text: str) -> frozenset[str]:
    if text[:1] in ("{", "["):  # of JSON only texts can be written in groups, and these are few
        text = "|".join(part for part in _JSON_TEXT.findall(text) if not part.replace("_", "").isalnum())
    return frozenset(_joined(fold(text))) - {""}


def _plain_words(text: str) -> Words:
    words, chunks = _cut(fold(text))
    bare = {chunk.lstrip("0") or "0" for chunk in filter(str.isdigit, chunks)}
    found = [_joined_parts(chunk) for chunk in chunks - words if len(chunk) <= MAX_WORD]
    words.update(*[joined for joined, _ in found])
    bare.update(number for _, numbers in found for number in numbers)
    words.discard("")
    return Words(frozenset(words), frozenset(bare))


def _cut(folded: str) -> tuple[set[str], set[str]]:
    """The runs of letters and digits of a folded text, and its chunks."""
    if not folded.isascii():
        return set(_RUN.findall(folded)), set(_CHUNK.findall(folded))
    chunks = set(folded.encode("ascii").translate(_PARTS_CHUNKS).split())
    words = b" ".join(chunks).translate(_PARTS_RUNS)  # what parts chunks parts words as well
    return set(words.decode("ascii").split()), set(b" ".join(chunks).decode("ascii").split())


@lru_cache(maxsize=32_768)
def _joined_parts(chunk: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Of a chunk with marks in it: itself and its pieces in compact form, and its number when it is one.
    Remembered: keys of JSON, dates and addresses come again and again."""
    parts = _RUN.findall(chunk)
    if len(parts) > 1:
        pieces = ("".join(_RUN.findall(piece)) for piece in _PIECES.split(chunk))
        return tuple({"".join(parts), *pieces, *_dotted(chunk)}), ()
    return (), ((parts[0].lstrip("0") or "0",) if parts and parts[0].isdigit() else ())


def _dotted(chunk: str) -> Iterator[str]:
    """`a.example.com.Then` with no space after the sentence: the address is one of the beginnings."""
    names = chunk.split(".")
    if 2 < len(names) <= 8:
        for end in range(2, len(names)):
            yield "".join(_RUN.findall(".".join(names[:end])))


def _joined(text: str) -> Iterator[str]:
    """Ids and phone numbers that are written in groups."""
    for pattern in (_DIGIT_GROUPS, _SPELLED, _GROUPED):
        for match in pattern.finditer(text):
            yield "".join(_RUN.findall(match.group()))
    for match in _BEHIND_BLANK.finditer(text):
        prefix = _PREFIX.search(text, max(match.start() - 6, 0), match.start())
        if prefix:
            yield "".join(_RUN.findall(prefix.group() + match.group()))


def _numbers(text: str) -> Numbers:
    folded = text.casefold()
    numbers = {str(_NUMBER_WORDS[word]) for word in set(_RUN.findall(folded)) & _NUMBER_WORDS.keys()}
    percents: set[str] = set()
    for digits, suffix, percent in set(_NUMBER.findall(folded)):
        if len(digits) > 30:
            continue
        forms = number_forms(digits)
        if " " in digits or "\u00a0" in digits:
            for piece in digits.split():
                forms |= number_forms(piece)
        if suffix:
            factor = 1000 if suffix.lower() == "k" else 1_000_000
            forms |= {decimal_text(Decimal(form) * factor) for form in forms}
        numbers |= forms
        if percent:
            percents |= forms
    return Numbers(frozenset(numbers), frozenset(percents))


def _written_dates(text: str, names: str) -> tuple[set[str], set[str]]:
    """The full dates and the days of a month that a text writes; `names` is the text where it names a month."""
    dates: set[str] = set()
    month_days: set[str] = set()
    for year, month, day in _ISO.findall(text):
        _add(dates, _date(int(year), int(month), int(day)))
    for first, second, year in _DMY.findall(text):
        full = int(year) + (2000 if len(year) == 2 else 0)
        _add(dates, _date(full, int(second), int(first)))
        _add(dates, _date(full, int(first), int(second)))
    named = [(m, d, y) for m, d, y in _MONTH_DAY.findall(names)]
    named += [(m, d, y) for d, m, y in _DAY_MONTH.findall(names)]
    named += [(m, d, "") for m, d in _RANGE.findall(names)]
    for name, day, year in named:
        if _date(2024, _MONTHS[name], int(day)):
            month_days.add(f"{_MONTHS[name]:02d}-{int(day):02d}")
            if year:
                _add(dates, _date(int(year), _MONTHS[name], int(day)))
    return dates, month_days


def _add(dates: set[str], day: date | None) -> None:
    if day:
        dates.add(day.isoformat())


def _relative(text: str, tokens: set[str]) -> set[int]:
    offsets = {_RELATIVE[t] for t in tokens & _RELATIVE.keys()}
    offsets |= {days for phrase, days in _RELATIVE.items() if " " in phrase and phrase in text}
    for count, weeks in () if tokens.isdisjoint(_AWAY_WORDS) else _AWAY.findall(text):
        days = int(_NUMBER_WORDS.get(count, 0) or count) * (7 if weeks else 1)
        offsets |= {days, -days}
    return offsets


def shift(day: date, days: int) -> date | None:
    """The day so many days later, None beyond the calendar."""
    try:
        return day + timedelta(days=days)
    except OverflowError:
        return None
