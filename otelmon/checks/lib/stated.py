"""The ids, amounts and counts that a message states as facts of this case, and whether the evidence has them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import msgspec

from otelmon.checks.lib.claims import read_message, sentences, spoken
from otelmon.checks.lib.claims_language import language_of
from otelmon.checks.lib.provenance import index_of
from otelmon.checks.lib.provenance_index import Index
from otelmon.checks.lib.provenance_match import match
from otelmon.checks.lib.values import EMAIL, URL, compact, decimal_text, fold, number_forms, words_of
from otelmon.checks.view import View
from otelmon.vocabulary.event import AssistantMessage, ToolCall

Kind = Literal["id", "amount", "count"]
MAX_STATED = 60  # values of one message that are looked up
_MAX_LISTS = 5_000  # values of one result that are walked to count its lists
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_MONEY = re.compile(
    r"(?:[$€£]\s?|(?<!\w)(?:usd|eur|gbp)\s?)(\d[\d.,'\u00a0]*\d|\d)(?!\s?(?:k|m|million|billion|thousand|%)\b)|"
    r"(?<![\w.,])(\d[\d.,]*\d|\d)\s?(?:€|£|usd\b|eur\b|gbp\b|dollars?\b|euros?\b|dolares\b)"
)
_TOKEN = re.compile(r"(?<![\w.@/:\-])#?(?=[\w\-]*\d)[a-z0-9]+(?:[-_][a-z0-9]+)*(?![\w@/]|[.:]\d)")
_NUMBERED = re.compile(r"(?<![\w.,$€£#\-:/])(\d{1,3}(?:,\d{3})+|\d{1,9})\s+(?:[a-z]+\s+){0,2}?([a-z]{3,})(?!\w)")
_UNITS = frozenset(
    ("days", "hours", "minutes", "seconds", "weeks", "months", "years", "percent", "points", "miles", "dollars", "euros",
     "cents", "times", "dias", "horas", "minutos", "semanas", "meses", "anos", "tage", "stunden", "minuten", "wochen",
     "monate", "jahre", "prozent", "euro", "pm", "kg", "km", "and", "business", "working")
)  # fmt: skip
_DATE_LIKE = re.compile(
    r"\d{4}-\d{1,2}(?:-\d{1,2})?|\d{1,2}-\d{1,2}(?:-\d{2,4})?|\d{1,4}[a-z]{1,2}|\d+x\d+|[a-z]\d{1,2}"
)


class Stated(msgspec.Struct, frozen=True):
    """A value a message states: what kind, as written (folded), and the sentence."""

    kind: Kind
    value: str
    sentence: str


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    data = tomllib.loads((files("otelmon.checks") / "data" / "stated.toml").read_text("utf-8"))
    labels = "|".join(data["labels"])
    found = {name: re.compile("|".join(data[name])) for name in ("no_fact", "about_this")}
    found["labelled"] = re.compile(
        rf"(?:{labels})(?:\s+(?:number|no|nr|id|code|numero|nummer|ref))?\.?\s*(?:is|es|ist|:|=|#|-)?\s*$"
    )
    return found


@cache
def _common() -> frozenset[str]:
    data = tomllib.loads((files("otelmon.checks") / "data" / "stated.toml").read_text("utf-8"))
    return frozenset(data["common"].split())


def stated_in(message: AssistantMessage, counts: bool) -> list[Stated]:
    """The values a message states, in order, at most MAX_STATED."""
    text = _FENCE.sub(" ", spoken(message.text))
    claimed = {claim.sentence for claim in read_message(message.text).claims if not claim.denies} if counts else set()
    found: dict[tuple[Kind, str], Stated] = {}
    for raw, sentence in sentences(fold(text).replace("’", "'"), language_of(text)):
        if _patterns()["no_fact"].search(raw) or not _patterns()["about_this"].search(sentence):
            continue
        for item in _values(raw, raw in claimed):
            found.setdefault((item.kind, item.value), item)
        if len(found) >= MAX_STATED:
            break
    return list(found.values())[:MAX_STATED]


def _values(sentence: str, claims: bool) -> Iterator[Stated]:
    plain = URL.sub(" ", EMAIL.sub(" ", sentence))
    for match_ in _MONEY.finditer(plain):
        yield Stated("amount", match_.group(1) or match_.group(2), sentence)
    for match_ in _TOKEN.finditer(plain):
        if _is_id(match_.group(), plain[: match_.start()]):
            yield Stated("id", match_.group(), sentence)
    if claims:
        for match_ in _NUMBERED.finditer(plain):
            if match_.group(2) not in _UNITS:
                yield Stated("count", match_.group(1), sentence)


def _is_id(token: str, before: str) -> bool:
    """An id by its own shape (three digits and a letter or a mark), or a number that is called one."""
    body = token.lstrip("#")
    digits = sum(c.isdigit() for c in body)
    if digits < 3 or _DATE_LIKE.fullmatch(body) or _common() & set(re.split(r"[-_\d]+", body)):
        return False
    words = before.split()
    if words and words[-1].strip("*_(") in _common():
        return False
    labelled = token.startswith("#") or bool(_patterns()["labelled"].search(before.replace("*", "").replace("`", "")))
    return labelled or (any(c.isalpha() for c in body) and len(body) >= 5)


def unsupported(item: Stated, message: AssistantMessage, view: View, smallest_count: int) -> bool:
    """True when nothing the conversation has seen holds the value, or gives it by simple arithmetic."""
    index = index_of(view)
    if index.full:
        return False
    if item.kind == "id":
        return not _id_known(item.value, message, view, index)
    numbers = [Decimal(form) for form in number_forms(item.value)]
    if not numbers or (item.kind == "count" and max(numbers) < smallest_count):
        return False
    if item.kind == "count" and any(number in _counted(view) for number in numbers):
        return False
    return not any(_number_known(number, message, index) for number in numbers)


def said_before(item: Stated, message: AssistantMessage, view: View) -> bool:
    """True when a message of an earlier turn stated the value: that one is judged, not its repetition."""
    asked = view.latest_user_message(message)
    body = compact(item.value)
    earlier = (e for e in view.before(asked) if isinstance(e, AssistantMessage)) if asked else ()
    return any(body in words_of(event.text).words for event in earlier)


def _id_known(value: str, message: AssistantMessage, view: View, index: Index) -> bool:
    body = compact(value)
    if match("id", value, index, message.start_time_unix_nano) or _in_arguments(body, view):
        return True
    digits = "".join(c for c in value if c.isdigit())
    return digits in index.words or digits in index.bare or any(body in word for word in index.plain if len(word) <= 80)


def _in_arguments(body: str, view: View) -> bool:
    return any(body in words_of(str(call.arguments)[:20_000]).words for call in view.calls)


def _number_known(number: Decimal, message: AssistantMessage, index: Index) -> bool:
    found = match("amount", str(number), index, message.start_time_unix_nano)
    if found and found.source != "proposal":  # the user's answer to a message does not make its numbers true
        return True
    said = sorted({Decimal(form) for text in _amounts(message) for form in number_forms(text)} - {number})
    known = [part for part in said if decimal_text(part) in index.numbers]
    return _rounded(number, index) or _made_of(number, known)


def _amounts(message: AssistantMessage) -> list[str]:
    return [m.group(1) or m.group(2) for m in _MONEY.finditer(fold(message.text))][:MAX_STATED]


def _rounded(number: Decimal, index: Index) -> bool:
    return any(abs(amount - number) < 1 and number == number.to_integral_value() for amount in index.amounts)


def _made_of(number: Decimal, parts: list[Decimal]) -> bool:
    """The sum of all, of neighbours in the list, or of any subset of the amounts that the message gives."""
    sums = {Decimal(0)}
    for part in parts[:14]:
        sums |= {total + part for total in sums}
        if number in sums:
            return True
    return sum(parts, Decimal(0)) == number


def _counted(view: View) -> set[Decimal]:
    """What can be counted: the lists and lines of results, and the calls of each tool."""
    found = {Decimal(len(view.calls))}
    by_tool: dict[str, int] = {}
    for call in view.calls:
        by_tool[call.tool_name] = by_tool.get(call.tool_name, 0) + 1
        found |= {Decimal(length) for length in _lengths(call)}
    return found | {Decimal(n) for n in by_tool.values()}


def _lengths(call: ToolCall) -> Iterator[int]:
    stack: list[Any] = [call.result, call.arguments]
    left = _MAX_LISTS
    while stack and left > 0:
        left -= 1
        value = stack.pop()
        if isinstance(value, (list, dict)):
            yield len(value)
            stack.extend(value.values() if isinstance(value, dict) else value)
    if isinstance(call.result_text, str):
        yield len([line for line in call.result_text[:200_000].split("\n") if line.strip()])
