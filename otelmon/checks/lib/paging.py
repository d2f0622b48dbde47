"""Results that are a part of what there is: what says so, and whether the rest was fetched. Words: data/paging.toml."""

from __future__ import annotations

import re
import tomllib
from collections import OrderedDict
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from otelmon.checks.lib.provenance_roles import leaves
from otelmon.checks.lib.sameness import is_volatile, plain_name
from otelmon.checks.lib.values import compact, fold
from otelmon.checks.lib.verbs import name_words, words
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall

MAX_OPEN = 16  # unfinished listings of one conversation that are followed at once: the latest
_MAX_TEXT = 200_000
_MAX_HOLDERS, _MAX_DEPTH = 50, 4
_TAIL = 2_000  # characters at either end of a text that are read for a note
_MAX_ITEMS = 5_000
_KEPT = 64  # pages of which the values are remembered


class Part(msgspec.Struct, frozen=True):
    """What a result says of its being a part. `more`: there is more behind it; `shown` how many things it has,
    `total` how many there are (None: it does not say); `cursor` what fetches the rest; `said` the field or words
    that say so."""

    more: bool
    shown: int | None
    total: int | None = None
    cursor: str = ""
    said: str = ""


class Listing(msgspec.Struct, frozen=True):
    """A listing of which the rest was not fetched: its pages so far, and what the last one says."""

    pages: tuple[ToolCall, ...]
    part: Part
    seen: int


@cache
def names(section: str, kind: str) -> frozenset[str]:
    """The field, argument or tool names of a kind."""
    return words(_data()[section][kind])


@cache
def patterns(section: str, kind: str) -> tuple[re.Pattern[str], ...]:
    """The patterns of a kind, over folded text."""
    return tuple(re.compile(pattern) for pattern in _data()[section][kind])


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads((files("otelmon.checks") / "data" / "paging.toml").read_text("utf-8"))


def part_of(call: ToolCall) -> Part | None:
    """What the result says of its being a part; None when it says nothing of that."""
    if call.outcome != "succeeded":
        return None
    if isinstance(call.result, dict):
        return _in_object(call)
    if call.result is None or isinstance(call.result, str):
        return _in_text(call.result or call.result_text)
    return None


def _in_object(call: ToolCall) -> Part | None:
    result: dict[str, Any] = call.result
    fields: dict[str, Any] = {}
    items: list[Any] | None = None
    for holder in _holders(result):
        for key, value in holder.items():
            name = plain_name(str(key))
            if isinstance(value, list):
                items = value if items is None or len(value) > len(items) else items
            elif value is not None and (not isinstance(value, dict) or name in names("fields", "cursor")):
                fields.setdefault(name, value)
    shown = len(items) if items is not None else _whole(fields.get("returned"))
    return _judged(fields, shown, call)


def _holders(result: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The object and those in it that wrap its list or tell of its pages."""
    stack: list[tuple[dict[str, Any], int]] = [(result, 0)]
    left = _MAX_HOLDERS
    while stack and left > 0:
        here, depth = stack.pop()
        left -= 1
        yield here
        for key, value in here.items():
            if (
                isinstance(value, dict)
                and depth < _MAX_DEPTH
                and (_holds(str(key)) or any(_holds(str(k)) for k in value))
            ):
                stack.append((value, depth + 1))


def _holds(name: str) -> bool:
    short = plain_name(name)
    return short in names("fields", "holders") or short in names("fields", "more") or short in names("fields", "cursor")


def _judged(fields: dict[str, Any], shown: int | None, call: ToolCall) -> Part | None:
    total = _total(fields, shown, call)
    cursor = next((str(fields[n]) for n in sorted(names("fields", "cursor") & fields.keys()) if _filled(fields[n])), "")
    flags = [(n, fields[n]) for n in sorted(names("fields", "more") & fields.keys()) if isinstance(fields[n], bool)]
    ends = [(n, fields[n]) for n in sorted(names("fields", "last") & fields.keys()) if isinstance(fields[n], bool)]
    decided = [(n, value) for n, value in flags] + [(n, not value) for n, value in ends]
    if decided:
        name = next((n for n, more in decided if more), decided[0][0])
        return Part(any(more for _, more in decided), shown, total, cursor, name)
    if cursor and shown is not None:
        return Part(True, shown, total, cursor, "next")
    pages, page = (_number(fields, kind) for kind in ("pages", "page"))
    if pages is not None and page is not None and shown is not None:
        return Part(page < pages, shown, total, "", f"page {page} of {pages}")
    if total is not None and shown is not None:
        before = _number(fields, "offset") or 0
        return Part(total > shown + before, shown, total, "", f"{shown} of {total}")
    return None


def _total(fields: dict[str, Any], shown: int | None, call: ToolCall) -> int | None:
    found = _number(fields, "total")
    if found is None and shown is not None and _about_pages(fields, call):
        found = _number(fields, "maybe_total")
        found = found if found is not None and found >= shown else None
    return found


def _about_pages(fields: dict[str, Any], call: ToolCall) -> bool:
    """A bare `total` may be a sum of money: it counts in a result about pages, or of a tool that lists."""
    if names("fields", "context") & fields.keys():
        return True
    if isinstance(call.arguments, dict) and any(
        plain_name(name) in names("arguments", "paging") for name in call.arguments
    ):
        return True
    return bool(names("tools", "listing") & set(name_words(call.tool_name))) and len(fields) <= 3


def _number(fields: dict[str, Any], kind: str) -> int | None:
    return next(
        (n for n in (_whole(fields[f]) for f in sorted(names("fields", kind) & fields.keys())) if n is not None), None
    )


def _whole(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10 else None


def _filled(value: Any) -> bool:
    return value not in (None, "", False, 0, {}) and not isinstance(value, float)


def _in_text(text: str | None) -> Part | None:
    if not text:
        return None
    folded = fold(text if len(text) <= 2 * _TAIL else text[:_TAIL] + "\n" + text[-_TAIL:])
    for pattern in patterns("text", "part"):
        found = pattern.search(folded)
        if found:
            return _noted(found)
    return None


def _noted(found: re.Match[str]) -> Part:
    groups = {
        name.partition("_")[0]: _whole(value.replace(",", "").replace(".", ""))
        for name, value in found.groupdict().items()
        if value
    }
    said = " ".join(found.group().split())[:80]
    shown = groups.get("shown")
    if "total" in groups:
        return Part((groups["total"] or 0) > (shown or 0), shown, groups["total"], "", said)
    if "pages" in groups:
        return Part((groups["page"] or 0) < (groups["pages"] or 0), None, None, "", said)
    return Part(True, None, None, "", said)


# -- which listings are unfinished -------------------------------------------------------------------
_REMEMBERED: WeakKeyDictionary[View, list[tuple[int, tuple[Listing, ...]]]] = WeakKeyDictionary()


def unfinished(position: int, view: View) -> tuple[Listing, ...]:
    """The listings, oldest first and at most MAX_OPEN, of which the rest was not fetched before a position."""
    states = _REMEMBERED.get(view)
    if states is None:
        states = _REMEMBERED[view] = _walk(view)
    low, high = 0, len(states)
    while low < high:
        middle = (low + high) // 2
        if states[middle][0] < position:
            low = middle + 1
        else:
            high = middle
    return states[low - 1][1] if low else ()


def _walk(view: View) -> list[tuple[int, tuple[Listing, ...]]]:
    states: list[tuple[int, tuple[Listing, ...]]] = []
    open_: OrderedDict[str, Listing] = OrderedDict()
    for call in view.calls:
        if call.outcome != "succeeded" or view.writes(call):
            continue
        part = part_of(call)
        key = _continues(call, open_) or listing_key(call)
        before = open_.pop(key, None)
        if part is not None and part.more:
            now = _joined(before, call, part)
            if now.part.total is None or now.seen < now.part.total or part.cursor:
                open_[key] = now
        if len(open_) > MAX_OPEN:
            open_.popitem(last=False)
        if before is not None or key in open_:
            states.append((call.position, tuple(open_.values())))
    return states


def _joined(before: Listing | None, call: ToolCall, part: Part) -> Listing:
    pages, seen = (before.pages, before.seen) if before is not None and _goes_on(before, call) else ((), 0)
    return Listing((*pages[-7:], call), part, seen + (part.shown or 0))


def _goes_on(before: Listing, call: ToolCall) -> bool:
    """True when the call asked for another page than the one before it did."""
    return call.arguments_hash != before.pages[-1].arguments_hash or call.arguments != before.pages[-1].arguments


def _continues(call: ToolCall, open_: OrderedDict[str, Listing]) -> str | None:
    """The listing whose cursor the call hands over, whatever the tool is called."""
    values = [str(value) for _, _, value in leaves(call.arguments)][:40]
    return next((key for key, listing in open_.items() if listing.part.cursor and listing.part.cursor in values), None)


def listing_key(call: ToolCall) -> str:
    """What pages of one listing share: the tool, and all arguments that do not choose the page."""
    return msgspec.json.encode(
        [call.tool_name, call.server or "", sorted(asked_for(call))], order="deterministic", enc_hook=str
    ).decode("utf-8", "replace")


def asked_for(call: ToolCall) -> list[tuple[str, str]]:
    """What a listing was asked for: (path, value) of every argument that does not choose the page."""
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    kept = {
        n: v for n, v in arguments.items() if plain_name(n) not in names("arguments", "paging") and not is_volatile(n)
    }
    return [(path, str(value)) for path, _, value in leaves(kept) if value is not None]


def sorted_by(call: ToolCall) -> bool:
    """True when the call asked for an order: the first page then has the ends of the whole."""
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    return any(plain_name(name) in names("arguments", "sorting") for name in arguments)


def limit_of(call: ToolCall) -> int | None:
    """How many things the call asked for at most."""
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    return next(
        (
            n
            for name, value in arguments.items()
            if plain_name(name) in names("arguments", "limit")
            for n in [_whole(value)]
            if n
        ),
        None,
    )


_CONTENTS: WeakKeyDictionary[View, dict[str, frozenset[str]]] = WeakKeyDictionary()


def contents(listing: Listing, view: View) -> frozenset[str]:
    """The scalar values of a listing's pages in compact form, bounded; remembered for the pages read last."""
    known = _CONTENTS.setdefault(view, {})
    return frozenset().union(*(_contents_of(page, known) for page in listing.pages))


def _contents_of(page: ToolCall, known: dict[str, frozenset[str]]) -> frozenset[str]:
    if page.key not in known:
        while len(known) >= _KEPT:
            del known[next(iter(known))]
        known[page.key] = frozenset(_values_of(page))
    return known[page.key]


def _values_of(page: ToolCall) -> Iterator[str]:
    if page.result is None and page.result_text:
        yield from map(compact, page.result_text[:_MAX_TEXT].split())
    stack: list[Any] = [page.result]
    left = _MAX_ITEMS
    while stack and left > 0:
        value = stack.pop()
        if isinstance(value, dict | list):
            stack.extend(value.values() if isinstance(value, dict) else value)
        elif value is not None and not isinstance(value, bool):
            left -= 1
            yield compact(str(value))
