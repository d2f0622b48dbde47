"""Claims about time in a message: "made within the last 24 hours". And what time it was when it was said."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import cache
from importlib.resources import files
from itertools import combinations
from typing import Any, Literal

import msgspec

from otelmon.checks.lib.claims import sentences
from otelmon.checks.lib.claims_language import language_of
from otelmon.checks.lib.instants import Instant, apart, instants_in, of_clock
from otelmon.checks.lib.values import fold
from otelmon.checks.lib.verbs import name_words
from otelmon.checks.view import View
from otelmon.vocabulary.event import AssistantMessage, ContextMessage, Event, SystemMessage, ToolCall

MAX_TEXT = 24_000  # characters of a message, and of a text that may say what time it is
_MAX_IN_SENTENCE = 8  # instants of one sentence that are compared
_MAX_CLOCK = 300  # characters of an answer that tells the time
_NEAR_NOW = 60  # characters between "current time" and the time
_LENGTHS = {
    "minutes": timedelta(minutes=1),
    "hours": timedelta(hours=1),
    "days": timedelta(days=1),
    "weeks": timedelta(weeks=1),
}
_CLOSE = timedelta(days=60)  # a run's own clock is trusted for times this near to it


class Span(msgspec.Struct, frozen=True):
    """A claim that two times lie within (or not within) a span. `length` of it; `sentence` folded, `before`
    the sentences of the message up to it."""

    kind: Literal["within", "beyond"]
    length: timedelta
    sentence: str
    before: tuple[str, ...] = ()


class _Words(msgspec.Struct, frozen=True):
    within: re.Pattern[str]
    beyond: re.Pattern[str]
    denied: re.Pattern[str]
    supposed: re.Pattern[str]
    now: re.Pattern[str]
    clocks: frozenset[str]
    units: dict[str, str]


@cache
def _words() -> _Words:
    data: dict[str, Any] = tomllib.loads((files("otelmon.checks") / "data" / "timespans.toml").read_text("utf-8"))
    units = {word: unit for unit, words in data["units"].items() for word in words.split()}
    number = rf"(?P<n>\d{{1,3}})[\s\-]+(?P<unit>{'|'.join(sorted(units, key=len, reverse=True))})\b"

    def compiled(patterns: Sequence[str]) -> re.Pattern[str]:
        # Every alternative has its own groups; they are told apart by number.
        parts = [
            p.replace("{N}", number.replace("?P<n>", f"?P<n{i}>").replace("?P<unit>", f"?P<unit{i}>"))
            for i, p in enumerate(patterns)
        ]
        return re.compile("|".join(parts))

    return _Words(
        compiled(data["within"]), compiled(data["beyond"]), re.compile(data["denied"]), re.compile(data["supposed"]),
        re.compile(data["now"]), frozenset(data["clocks"].split()), units,
    )  # fmt: skip


def spans_claimed(text: str) -> list[Span]:
    """The claims about spans of time that a message makes as facts, in order."""
    found: list[Span] = []
    earlier: list[str] = []
    for raw, _ in sentences(fold(text[:MAX_TEXT]).replace("’", "'"), language_of(text)):
        span = _span_of(raw, tuple(earlier[-4:]))
        if span:
            found.append(span)
        earlier.append(raw)
    return found


def _span_of(sentence: str, before: tuple[str, ...]) -> Span | None:
    words = _words()
    plain = sentence.replace("*", "").replace("_", "")
    if words.supposed.search(plain):
        return None
    beyond = words.beyond.search(plain)
    if beyond:
        return Span("beyond", _length(beyond), plain, before)
    within = words.within.search(plain)
    if within is None or words.denied.search(plain):
        return None
    return Span("within", _length(within), plain, before)


def _length(match: re.Match[str]) -> timedelta:
    groups = {name: value for name, value in match.groupdict().items() if value is not None}
    number = next(value for name, value in groups.items() if name.startswith("n"))
    unit = next(value for name, value in groups.items() if name.startswith("unit"))
    return int(number) * _LENGTHS[_words().units[unit]]


def contradicted(span: Span, now: Instant | None, known: Sequence[Instant]) -> tuple[Instant, Instant] | None:
    """The two nearest times that the claim can speak of when none of them fit it, else None. `known` are exact
    times of the evidence: they make a bare date exact."""
    year = now.first.year if now else None
    told = instants_in(span.sentence, year)
    for sentence in reversed(span.before):
        told = told or instants_in(sentence, year)
    told = told[:_MAX_IN_SENTENCE]
    stated = [item for item in told if now is None or not _same_day_part(item, now)]
    times = [*stated, *([now] if now else [])]
    if not stated or len(times) < 2:
        return None
    pairs = [pair for pair in combinations(times, 2)]
    if span.kind == "beyond":
        fits = [p for p in pairs if _greatest(p, known) >= span.length]
    else:
        fits = [p for p in pairs if _least(p, known) <= span.length]
    if fits:
        return None
    return min(pairs, key=lambda pair: apart(*pair))


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
    """What time it was: as the instructions, a clock tool or the message say; else the run's clock, where
    that is near what the message speaks of."""
    for event in reversed(view.before(message)):
        found = _now_in(_telling(event)) if not isinstance(event, ToolCall) else _clock(event)
        if found:
            return found
    stated = _now_in(message.text)
    if stated:
        return stated
    clock = of_clock(message.start_time_unix_nano)
    near = instants_in(message.text[:MAX_TEXT], clock.first.year)
    return clock if any(apart(item, clock)[0] <= _CLOSE for item in near) else None


def _telling(event: Event) -> str:
    return event.text if isinstance(event, (SystemMessage, ContextMessage)) else ""


def _now_in(text: str) -> Instant | None:
    folded = fold(text[:MAX_TEXT])
    for match in _words().now.finditer(folded):
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


def exact_times(events: Sequence[Event]) -> Iterator[Instant]:
    """The exact times in the results of calls."""
    for event in events:
        if isinstance(event, ToolCall) and event.result_text:
            yield from (item for item in instants_in(event.result_text[:MAX_TEXT]) if item.exact)
