"""Claims about time in a message: "made within the last 24 hours". And what time it was when it was said."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from datetime import timedelta
from functools import cache, lru_cache
from importlib.resources import files
from itertools import combinations
from typing import Any, Literal

import msgspec

from otelmon.checks.lib.claims import sentences, spoken
from otelmon.checks.lib.claims_language import language_of
from otelmon.checks.lib.instants import Instant, apart, instants_in
from otelmon.checks.lib.values import compact, fold
from otelmon.checks.lib.verbs import name_words
from otelmon.checks.view import View
from otelmon.vocabulary.event import AssistantMessage, ContextMessage, Event, SystemMessage, ToolCall

MAX_EVENTS = 200  # events before a message that are looked at
MAX_TEXT = 24_000  # characters of a message, and of a text that may say what time it is
_MAX_IN_SENTENCE = 8  # instants of one sentence that are compared
_MAX_CLOCK = 300  # characters of an answer that tells the time
_NEAR, _RIGHT_AFTER = 40, 12  # characters before and after "within 24 hours" where a no denies it
_LEFT = 80  # characters before "within 24 hours" where it is said that it is so
_MADE = 40  # characters before and after a day where it says that something was made
_NEAR_NOW = 60  # characters between "current time" and the time
_LENGTHS = {
    "minutes": timedelta(minutes=1),
    "hours": timedelta(hours=1),
    "days": timedelta(days=1),
    "weeks": timedelta(weeks=1),
}

# An id: letters and digits, five or more, no date.
_ID = re.compile(r"(?<![\w\-])#?(?=[A-Za-z_\-]*\d)(?=[\d_\-]*[A-Za-z])[A-Za-z0-9][\w\-]{3,40}[A-Za-z0-9](?![\w\-])")


class Span(msgspec.Struct, frozen=True):
    """A claim that two times lie within (or not within) a span. `length` of it; `sentence` folded, `before`
    the sentences of the message up to it; `to_now`: one of the two times is the present."""

    kind: Literal["within", "beyond"]
    length: timedelta
    sentence: str
    before: tuple[str, ...] = ()
    to_now: bool = True


class Known(msgspec.Struct, frozen=True):
    """The times of the evidence: of the records that a message names, or of all results when it names none."""

    times: tuple[Instant, ...] = ()
    of_named: bool = False


class _Words(msgspec.Struct, frozen=True):
    patterns: dict[str, re.Pattern[str]]
    clocks: frozenset[str]
    units: dict[str, str]


@cache
def _words() -> _Words:
    data: dict[str, Any] = tomllib.loads((files("otelmon.checks") / "data" / "timespans.toml").read_text("utf-8"))
    units = {word: unit for unit, words in data["units"].items() for word in words.split()}
    number = rf"(?P<n@>\d{{1,3}})[\s\-]+(?P<unit@>{'|'.join(sorted(units, key=len, reverse=True))})\b"

    def compiled(patterns: str | Sequence[str]) -> re.Pattern[str]:
        # Every alternative has groups of its own; they are told apart by number.
        listed = [patterns] if isinstance(patterns, str) else patterns
        return re.compile("|".join(p.replace("{N}", number.replace("@", str(i))) for i, p in enumerate(listed)))

    named = {name: compiled(data[name]) for name in _PATTERNS} | {"number": compiled("{N}")}
    return _Words(named, frozenset(data["clocks"].split()), units)


_PATTERNS = (
    "within", "beyond", "since_less", "since_more", "present", "past", "to_now", "window", "denied", "retracted",
    "supposed", "now", "dated", "made",
)  # fmt: skip


def spans_claimed(text: str) -> list[Span]:
    """The claims about spans of time that a message makes as facts, in order."""
    found: list[Span] = []
    earlier: list[str] = []
    text = spoken(text[:MAX_TEXT])
    if not _words().patterns["number"].search(fold(text)):
        return []  # most messages name no span of time
    for raw, _ in sentences(fold(text).replace("’", "'"), language_of(text)):
        span = _span_of(raw, tuple(earlier[-4:]))
        if span:
            found.append(span)
        earlier.append(raw)
    return found


def _span_of(sentence: str, before: tuple[str, ...]) -> Span | None:
    say = _words().patterns
    plain = sentence.replace("*", "").replace("_", "")
    if not say["number"].search(plain) or say["supposed"].search(plain):
        return None
    beyond = say["since_more"].search(plain) or _fact(say["beyond"].search(plain), plain)
    if beyond:
        return Span("beyond", _length(beyond), plain, before, _reaches_now(beyond, plain))
    within = say["since_less"].search(plain) or _fact(say["within"].search(plain), plain)
    if within is None or _taken_back(plain, within):
        return None
    return Span("within", _length(within), plain, before, _reaches_now(within, plain))


def _fact(match: re.Match[str] | None, sentence: str) -> re.Match[str] | None:
    """The match when what stands before it says that it is or was so; None for plans and rules."""
    if match is None:
        return None
    left, say = sentence[max(match.start() - _LEFT, 0) : match.start()], _words().patterns
    return match if say["present"].search(left) or say["past"].search(left) else None


def _reaches_now(match: re.Match[str], sentence: str) -> bool:
    """True when the span ends now: "the last day", "is within", "the 24-hour window", "ago"."""
    left, say = sentence[max(match.start() - _LEFT, 0) : match.start()], _words().patterns
    since = say["since_less"].match(match.group()) or say["since_more"].match(match.group())
    reaching = say["to_now"].search(match.group()) or say["window"].search(sentence[match.end() :])
    return bool(since or reaching or say["present"].search(left))


def _taken_back(sentence: str, within: re.Match[str]) -> bool:
    """True when the sentence says that it is not within: right beside the words, or in strong words anywhere."""
    say = _words().patterns
    near = sentence[max(within.start() - _NEAR, 0) : within.end() + _RIGHT_AFTER]
    return bool(say["retracted"].search(sentence) or say["denied"].search(near))


def _length(match: re.Match[str]) -> timedelta:
    groups = {name: value for name, value in match.groupdict().items() if value is not None}
    number = next(value for name, value in groups.items() if name.startswith("n"))
    unit = next(value for name, value in groups.items() if name.startswith("unit"))
    return int(number) * _LENGTHS[_words().units[unit]]


def contradicted(span: Span, now: Instant | None, known: Known) -> tuple[Instant, Instant] | None:
    """The two nearest times that the claim can speak of when none of them fit it, else None. Known exact times
    make a bare date exact; where the message states no time, those of the record it names are meant."""
    exact = [item for item in known.times if item.exact]
    present = now if span.to_now else None
    stated = _stated(span, now)
    if stated:
        pairs = list(combinations([*stated, *([present] if present else [])], 2))
    else:
        over = present and any(item.last < present.first for item in exact)
        pairs = [(item, present) for item in known.times] if present and over and known.of_named else []
    if not pairs or any(_fits(pair, span, exact) for pair in pairs):
        return None
    return min(pairs, key=lambda pair: apart(*pair))


def _stated(span: Span, now: Instant | None) -> list[Instant]:
    """The times at which the sentence, or the last one before it, says that something was made. Times that are
    only now said again are none; where all lie ahead the claim speaks of another time."""
    year = now.first.year if now else None
    told = _dated(span.sentence, year)
    for sentence in reversed(span.before):
        told = told or _dated(sentence, year)
    stated = [item for item in told[:_MAX_IN_SENTENCE] if now is None or not _same_day_part(item, now)]
    ahead = now is not None and all(item.first > now.last for item in stated)
    return [] if ahead else stated


def _dated(sentence: str, year: int | None) -> list[Instant]:
    """All times of a sentence when one of them is exact, or stands beside a word for making; else none."""
    told = instants_in(sentence, year)
    return list(told) if any(item.exact or _says_made(sentence, item.at) for item in told) else []


def _says_made(sentence: str, at: int) -> bool:
    say = _words().patterns
    left, right = sentence[max(at - _MADE, 0) : at], sentence[at : at + _MADE]
    return bool(say["dated"].search(left) or say["made"].search(right))


def _fits(pair: tuple[Instant, Instant], span: Span, exact: Sequence[Instant]) -> bool:
    if span.kind == "beyond":
        return _greatest(pair, exact) >= span.length
    return _least(pair, exact) <= span.length


def _same_day_part(item: Instant, now: Instant) -> bool:
    """True when a stated time is only the present one said again."""
    return item.first <= now.first and now.last <= item.last


def _least(pair: tuple[Instant, Instant], known: Sequence[Instant]) -> timedelta:
    return min(apart(one, other)[0] for one in _exact(pair[0], known) for other in _exact(pair[1], known))


def _greatest(pair: tuple[Instant, Instant], known: Sequence[Instant]) -> timedelta:
    return max(apart(one, other)[1] for one in _exact(pair[0], known) for other in _exact(pair[1], known))


def _exact(item: Instant, known: Sequence[Instant]) -> list[Instant]:
    """The exact times of the evidence on the day of a bare date; the date itself when there are none."""
    if item.exact:
        return [item]
    return [one for one in known if item.first <= one.first <= item.last][:_MAX_IN_SENTENCE] or [item]


def now_at(message: AssistantMessage, view: View) -> Instant | None:
    """What time it was: as the instructions, a clock tool or the message itself say. (The clock of the run
    is no witness: agents are told other times, in tests and in replays.)"""
    for event in reversed(_before(message, view)):
        found = _clock(event) if isinstance(event, ToolCall) else _now_in(_telling(event))
        if found:
            return found
    for instructions in view.system_messages[:1]:
        found = _now_in(instructions.text)
        if found:
            return found
    return _now_in(message.text)


def _before(message: AssistantMessage, view: View) -> Sequence[Event]:
    return view.events[max(message.position - MAX_EVENTS, 0) : message.position]


def _telling(event: Event) -> str:
    return event.text if isinstance(event, (SystemMessage, ContextMessage)) else ""


def _now_in(text: str) -> Instant | None:
    return _stated_now(text[:MAX_TEXT]) if text else None


@lru_cache(maxsize=256)
def _stated_now(text: str) -> Instant | None:
    folded = fold(text)
    for match in _words().patterns["now"].finditer(folded):
        near = instants_in(folded[match.end() : match.end() + _NEAR_NOW])
        if near:
            return near[0]
    return None


def _clock(call: ToolCall) -> Instant | None:
    if not call.result_text or len(call.result_text) > _MAX_CLOCK or call.outcome != "succeeded":
        return None
    if not set(name_words(call.tool_name)) & _words().clocks or call.arguments:
        return None
    told = instants_in(call.result_text)
    return told[0] if len(told) == 1 else None


def known_times(message: AssistantMessage, view: View) -> Known:
    """The times in the results before a message: of those that hold an id it names, else of all."""
    results = [e for e in _before(message, view) if isinstance(e, ToolCall) and e.result_text]
    named = _ids_in(message.text[:MAX_TEXT])
    holding = [call for call in results if named & _ids_in((call.result_text or "")[:MAX_TEXT])]
    texts = [(call.result_text or "")[:MAX_TEXT] for call in (holding or results)]
    return Known(tuple(item for text in texts for item in _instants(text)), bool(holding))


@lru_cache(maxsize=1024)
def _instants(text: str) -> tuple[Instant, ...]:
    return instants_in(text)


@lru_cache(maxsize=1024)
def _ids_in(text: str) -> frozenset[str]:
    return frozenset(compact(token) for token in _ID.findall(text))
