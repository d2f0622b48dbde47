"""What a result repeats of its call's arguments, and where it says another value than was sent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from otelmon.checks.lib.claims_language import base_classes, done_words
from otelmon.checks.lib.provenance import index_of
from otelmon.checks.lib.provenance_roles import Role, leaves, role_of, schema_at
from otelmon.checks.lib.provenance_roles import name_words as field_words
from otelmon.checks.lib.records import data_of, scalars
from otelmon.checks.lib.sameness import is_volatile, plain_name
from otelmon.checks.lib.values import EMAIL, any_date, compact, fold, runs, to_decimal
from otelmon.checks.lib.verbs import name_words, words
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall

_JUDGED: frozenset[Role] = frozenset(
    ("id", "code", "email", "phone", "amount", "quantity", "date", "status", "constant")
)
_NAMING: frozenset[Role] = frozenset(("id", "code", "email", "phone"))
_OF_ITSELF = words(
    "success ok status result message code type state error errors valid version dryrun force confirm confirmed async verbose"
)
_MASK = re.compile(r"[*•█]{2,}|x{4,}|\.\.\.|…", re.I)
_CURRENCY = re.compile(r"[A-Z]{3}")
_PARTS = re.compile(r"[\s/:<>(),;=]+")
_WRAPPED = 2  # objects around the record that a result is
_LOOK_BACK = 200  # events before a call in which its record is looked for
_TIME = re.compile(r"(?<!\d)(\d{2}):(\d{2})")
_ZONE = re.compile(r"(?:Z|[+-]\d{2}:?\d{2}|[A-Z]{3,4})\s*$")
_LAST_DIGITS = 4  # of a card or an account, where the rest is hidden
_CENT = Decimal("0.01")
_UNITS = (Decimal(100), Decimal(1000))  # minor units, thousandths: one value in another unit
_MAX_NOTE = 500  # characters of a result's message that are read
_MONEY = r"(?:(?:[$€£]|usd|eur|gbp)\s?(?P<a>\d[\d.,]*)|(?P<b>\d[\d.,]*)\s?(?:[$€£]|usd|eur|gbp|dollars|euros?))"


class Differs(msgspec.Struct, frozen=True):
    """An argument and what the result says instead: where each stands, and the two values. `as_before`: the
    record had that value already, so that the result may show how it was."""

    argument: str
    sent: Any
    field: str
    said: Any
    as_before: bool = False


def differences(call: ToolCall, view: View) -> Iterator[Differs]:
    """Business values of the call that its result repeats with another value."""
    data = data_of(call)
    if not isinstance(call.arguments, dict):
        return
    said = list(scalars(data)) if isinstance(data, dict) else []
    direct = dict(_direct(data)) if isinstance(data, dict) else {}
    by_name: dict[str, list[Any]] = {}
    for _, name, value in said:
        by_name.setdefault(plain_name(name), []).append(value)
    tool = view.tool(call)
    for path, name, value in leaves(call.arguments):
        if is_volatile(name) or "[" in path or value is None:
            continue
        role = role_of(name, value, schema_at(tool.input_schema if tool else None, path))
        here = direct.get(plain_name(name))
        if here is not None and role in _JUDGED and not any(_equal(value, v, role) for v in by_name[plain_name(name)]):
            if _counts(value, here[1], name, role, call, view):
                before = role not in _NAMING and _had_before(here[1], plain_name(name), call, view)
                yield Differs(path, value, *here, before)
        elif _is_currency(name, value) and here is not None and _is_currency(name, here[1]) and value != here[1]:
            yield Differs(path, value, *here)
        elif role == "amount" and here is None:
            yield from _amount_done(path, value, said, call)
    yield from _left_out(call, data, view)
    yield from _another_recipient(call, view)


def _direct(data: dict[str, Any], path: str = "", depth: int = 0) -> Iterator[tuple[str, tuple[str, Any]]]:
    """Scalars of the result itself, and before them of the one object in it that is the record."""
    inner = [(str(k), v) for k, v in data.items() if isinstance(v, dict)]
    inner += [(str(k), v[0]) for k, v in data.items() if isinstance(v, list) and len(v) == 1 and isinstance(v[0], dict)]
    if len(inner) == 1 and depth < _WRAPPED:
        yield from _direct(inner[0][1], f"{path}{inner[0][0]}.", depth + 1)
    for name, value in data.items():
        plain = isinstance(value, list) and bool(value) and _plain(value)
        if plain or (value is not None and not isinstance(value, dict | list)):
            yield plain_name(str(name)), (f"{path}{name}", value)


def _equal(sent: Any, said: Any, role: Role) -> bool:
    """One value, whatever the notation, the unit, or what a server makes of it."""
    if isinstance(sent, bool) or isinstance(said, bool):
        return str(sent).lower() == str(said).lower()
    if _MASK.search(str(said)) or said == "":
        return True
    one, two = to_decimal(sent), to_decimal(said)
    if one is not None and two is not None and role not in _NAMING:
        return _same_number(abs(one), abs(two))
    days = any_date(str(sent)), any_date(str(said))
    if days[0] and days[1]:
        same = bool(days[0] & days[1])
        return _same_time(str(sent), str(said)) if same else _near(days[0], days[1]) and ":" in f"{sent}{said}"
    if role == "date":
        return True  # a time of day, a day in words: not compared
    body, other = compact(str(sent)), compact(str(said))
    if not body or not other or body == other or sorted(runs(str(sent))) == sorted(runs(str(said))):
        return True
    if role in ("status", "constant"):
        return False
    ending = len(other) == _LAST_DIGITS and other.isdigit() and body.endswith(other)
    return ending or body in map(compact, _PARTS.split(str(said))) or other in map(compact, _PARTS.split(str(sent)))


def _same_number(one: Decimal, two: Decimal) -> bool:
    if abs(one - two) < _CENT:
        return True
    return any(one * unit == two or two * unit == one for unit in _UNITS)


def _near(one: frozenset[str], two: frozenset[str]) -> bool:
    """A day apart: the same instant in two zones."""
    days = sorted(int(day.replace("-", "")) for day in (*one, *two))
    return days[-1] - days[0] <= 1


def _same_time(sent: str, said: str) -> bool:
    """False for two times of one day where neither names a zone, and both say more than midnight."""
    if _ZONE.search(sent) or _ZONE.search(said):
        return True
    times = [found.groups() for found in map(_TIME.search, (sent, said)) if found and found.groups() != ("00", "00")]
    return len(times) < 2 or times[0] == times[1]


def _counts(sent: Any, said: Any, name: str, role: Role, call: ToolCall, view: View) -> bool:
    """True when another value under this name means that something else was done."""
    short = plain_name(name)
    if isinstance(said, list):
        return role in _NAMING and len(said) == 1
    if role in _NAMING:
        return _is_known(said, call, view) if short == "id" or view.effect(call).repeat == "additive" else True
    if role == "quantity":
        one, two = to_decimal(sent), to_decimal(said)
        return one is not None and two is not None and two < one  # more: what was there before counts too
    if role in ("status", "constant"):
        return _in_its_words(sent, said, short, call, view)
    if role == "amount":
        return not any(_is_currency(n, v) and v not in _texts(call) for _, n, v in scalars(call.result))
    return True


def _is_known(said: Any, call: ToolCall, view: View) -> bool:
    """A value that was there before the call: no new record got this name."""
    place = index_of(view).words.get(compact(str(said)))
    return place is not None and place[1] < call.position


def _in_its_words(sent: Any, said: Any, short: str, call: ToolCall, view: View) -> bool:
    """`status: ok` is the call's own; another state of the record is one of the schema's, or the one it had."""
    if isinstance(sent, bool):
        return isinstance(said, bool) and short not in _OF_ITSELF
    tool = view.tool(call)
    schema = next((s for n, s in _properties(tool.input_schema if tool else None) if plain_name(n) == short), {})
    choices = {fold(str(choice)) for choice in schema.get("enum") or ()}
    return fold(str(said)) in choices or _had_before(said, short, call, view)


def _properties(schema: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if isinstance(properties, dict):
        yield from ((str(n), s) for n, s in properties.items() if isinstance(s, dict))


def _had_before(said: Any, short: str, call: ToolCall, view: View) -> bool:
    """An earlier result about the same record had this value in this field."""
    about = {compact(v) for v in view.identifying_values(call)}
    wanted, known = (short, compact(str(said))), _FIELDS.setdefault(view, {})
    for earlier in _lately(call, view):
        if earlier.key not in known:
            while len(known) >= _LOOK_BACK:
                del known[next(iter(known))]
            known[earlier.key] = {(plain_name(n), compact(str(v))) for _, n, v in scalars(data_of(earlier))}
        if wanted in known[earlier.key] and about & {v for _, v in known[earlier.key]}:
            return True
    return False


_FIELDS: WeakKeyDictionary[View, dict[str, set[tuple[str, str]]]] = WeakKeyDictionary()


def _lately(call: ToolCall, view: View) -> Iterator[ToolCall]:
    for event in reversed(view.before(call)[-_LOOK_BACK:]):
        if isinstance(event, ToolCall) and event.outcome == "succeeded":
            yield event


def _is_currency(name: str, value: Any) -> bool:
    return "currency" in field_words(name) and isinstance(value, str) and _CURRENCY.fullmatch(value) is not None


def _texts(call: ToolCall) -> set[str]:
    return {str(value) for _, _, value in leaves(call.arguments)}


# -- amounts and recipients that the result names in its own words ------------------------------------
def _deeds(call: ToolCall) -> frozenset[str]:
    """The words that say that what the tool's name means was done: refunded, reembolsado."""
    labels = {label for word in name_words(call.tool_name) for label in base_classes().get(word, ())}
    return frozenset().union(*(done_words(label) for label in labels)) if labels else frozenset()


def _amount_done(path: str, sent: Any, said: list[tuple[str, str, Any]], call: ToolCall) -> Iterator[Differs]:
    """`refunded: 50`, or "refunded $50", where 500 was asked for and stands nowhere in the result."""
    amount = to_decimal(sent)
    numbers = [(name_path, name, to_decimal(v)) for name_path, name, v in said]
    if amount is None or any(n is not None and _same_number(abs(amount), abs(n)) for _, _, n in numbers):
        return
    deeds = _deeds(call)
    for place, name, number in numbers:
        parts = set(field_words(name))
        if number is not None and parts & deeds and not parts - deeds - {"amount", "value", "sum", "money"}:
            yield Differs(path, sent, place, number if number != number.to_integral_value() else int(number))
            return
    note = fold(_note(call))
    if deeds and note and not any(_same_number(abs(amount), n) for n in _numbers_in(note)):
        told = re.search(rf"\b(?:{'|'.join(sorted(map(re.escape, deeds)))})\b(?:\s+\w+){{0,2}}?\s+{_MONEY}", note)
        if told:
            yield Differs(path, sent, "message", told["a"] or told["b"])


def _numbers_in(text: str) -> Iterator[Decimal]:
    for part in re.findall(r"\d[\d.,]*\d|\d", text):
        number = to_decimal(part)
        if number is not None:
            yield abs(number)


def _note(call: ToolCall) -> str:
    """What the result says in words: its text, or its message."""
    if isinstance(call.result, dict):
        texts = [v for v in call.result.values() if isinstance(v, str) and " " in v]
        return " ".join(texts) if len(" ".join(texts)) <= _MAX_NOTE else ""
    text = call.result if isinstance(call.result, str) else call.result_text
    return text if text and len(text) <= _MAX_NOTE else ""


def _another_recipient(call: ToolCall, view: View) -> Iterator[Differs]:
    """ "Sent to b@x" where only a@x was named."""
    if view.effect(call).effect not in ("external_send", "write", "destructive"):
        return
    note = _note(call)
    told = [m.group().strip(".").casefold() for m in EMAIL.finditer(note)] if "@" in note else []
    sent = [(path, str(v)) for path, _, v in leaves(call.arguments) if isinstance(v, str) and "@" in v]
    named = " ".join(v for _, v in sent).casefold()
    one = len(told) == 1 and len(sent) == 1 and EMAIL.fullmatch(sent[0][1]) and told[0] not in named
    if one and re.search(rf"\b(?:to|for|a|para|an)\s+<?{re.escape(told[0])}", note.casefold()):
        yield Differs(sent[0][0], sent[0][1], "message", told[0])


def _left_out(call: ToolCall, data: Any, view: View) -> Iterator[Differs]:
    """Of a list of ids the result repeats only some, under the same name."""
    if not isinstance(data, dict) or view.effect(call).effect == "read" or view.removes(call):
        return
    here = {plain_name(str(k)): v for k, v in data.items() if isinstance(v, list)}
    for name, value in call.arguments.items():
        said = here.get(plain_name(name))
        if not isinstance(value, list) or not said or not value or not _plain(value) or not _plain(said):
            continue
        missing = [v for v in value if compact(str(v)) not in {compact(str(s)) for s in said}]
        if missing and len({type(v) for v in (*value, *said)}) == 1:
            yield Differs(name, value, name, said)


def _plain(values: list[Any]) -> bool:
    return all(isinstance(v, str | int) and not isinstance(v, bool) and " " not in str(v) for v in values[:200])
