"""What rules written as data look up around a call or an answer: results of other calls, and what was said."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal

import msgspec

from otelmon.checks.lib.approvals import agreed_just_now, approval_of, why_not
from otelmon.checks.lib.conditions import compile_value, condition_mistakes, names_in
from otelmon.checks.lib.equalities import NOTHING, equality_in
from otelmon.checks.lib.expressions import call_fields
from otelmon.checks.lib.patterns import LONGEST, compiled, group_names, pattern_mistakes
from otelmon.checks.lib.selection import Mistake, any_glob, result_of
from otelmon.checks.view import View
from otelmon.vocabulary.event import AssistantMessage, SystemMessage, ToolCall, UserMessage

AT_CALL = frozenset(("call", "result", "known", "said", "approved", "confirmed"))
AT_ANSWER = frozenset(("answer", "known", "said"))
_OF_OTHER = frozenset(("result", "arguments", "name"))
_SPEAKERS: dict[str, type[Any]] = {"system": SystemMessage, "user": UserMessage, "assistant": AssistantMessage}
Fields = Mapping[str, Collection[str]]
_FURTHEST = 200  # results of the tools named are looked through, counted from the anchor


class Place(msgspec.Struct, frozen=True):
    """Where a rule is asked: at a call, or at an answer (then `found` is the sentence it speaks about)."""

    event: ToolCall | AssistantMessage
    view: View
    found: dict[str, str] | None = None

    def own(self) -> dict[str, Any]:
        """The variable that stands for the event itself."""
        if isinstance(self.event, ToolCall):
            return {"call": call_fields(self.event, self.view)}
        return {"answer": self.found or {}}


class Binding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A name for something in the conversation. Exactly one of these:

    `tools` (globs): the nearest call before that succeeded and of which `where` holds (CEL over `call` or `answer`,
    the other call's `result`, `arguments` and `name`, and names bound before this one). The name stands for what came
    back, or with `take: arguments` for what was sent; with `pick: all` for the list of them, oldest first.
    `time: later` looks at what comes after.
    `pattern` (RE2), `said_by` somebody: its named groups, where it was said last.
    `value` (CEL over the names bound before): what it gives.
    """

    tools: tuple[str, ...] = ()
    where: str | None = None
    pick: Literal["last", "all"] = "last"
    take: Literal["result", "arguments"] = "result"
    time: Literal["earlier", "later"] = "earlier"
    said_by: Literal["system", "user", "assistant"] | None = None
    pattern: str | None = None
    value: str | None = None

    @property
    def fields(self) -> tuple[str, ...] | None:
        """The fields the name has, where no others are possible."""
        return tuple(group_names(self.pattern)) if self.pattern is not None else None

    def mistakes(self, names: frozenset[str], fields: Fields) -> Iterator[Mistake]:
        """What is wrong with it: (path, what, what to do). `names` may be used in it, some with `fields`."""
        given = (bool(self.tools), self.pattern is not None, self.value is not None)
        if sum(given) != 1:
            yield (
                (),
                "gives nothing to look for, or several things",
                "give `tools`, or `said_by` and `pattern`, or `value`",
            )
        if (self.pattern is None) != (self.said_by is None):
            yield ((), "`said_by` and `pattern` go together", "give both")
        if not self.tools and (self.where, self.pick, self.take, self.time) != (None, "last", "result", "earlier"):
            yield ((), "`where`, `pick`, `take` and `time` say which call is meant", "give `tools`")
        if self.where is not None:
            found = condition_mistakes(self.where, _OF_OTHER | names, fields=fields)
            yield from ((("where",), wrong, do) for wrong, do in found)
        if self.value is not None:
            found = condition_mistakes(self.value, names, answer=False, fields=fields)
            yield from ((("value",), wrong, do) for wrong, do in found)
        if self.pattern is not None:
            yield from ((("pattern",), wrong, do) for wrong, do in pattern_mistakes(self.pattern, groups=True))

    def find(self, place: Place, bound: dict[str, Any]) -> Any:
        """What the name stands for there, or None. `bound` holds the event itself and what was bound before."""
        if self.pattern is not None:
            return self._said(place)
        if self.value is not None:
            return compile_value(self.value).value(bound)
        found = self._found(place, bound)
        if self.pick == "all":
            return sorted_out(list(found), self.time) or None
        return next(found, None)

    def _found(self, place: Place, bound: dict[str, Any]) -> Iterator[Any]:
        """What came back from (or was sent to) the calls meant, the nearest first."""
        condition = compile_value(self.where) if self.where is not None else None
        for other in self._others(place, bound):
            result = result_of(other)
            if result is None:
                continue
            seen = {"result": result, "arguments": other.arguments or {}, "name": other.tool_name}
            if condition is None or condition.holds({**bound, **seen}):
                yield seen[self.take]

    def _others(self, place: Place, bound: dict[str, Any]) -> Iterator[ToolCall]:
        calls, here = self._candidates(place.view, bound), place.event.position
        if self.time == "later":
            first = bisect_right(calls, here, key=lambda c: c.position)
            return iter(calls[first : first + _FURTHEST])
        last = bisect_left(calls, here, key=lambda c: c.position)
        return reversed(calls[max(0, last - _FURTHEST) : last])

    def _candidates(self, view: View, bound: dict[str, Any]) -> list[ToolCall]:
        """Calls of which `where` may hold, in order: those with the value it asks for, when it asks for one."""
        named: list[ToolCall] = view.remembered(("calls named", self.tools), lambda: self._named(view))
        asked = equality_in(self.where) if self.where else None
        if asked is None:
            return named
        wanted = asked.wanted(bound)
        if wanted is not NOTHING and not isinstance(wanted, str | int | float):
            return named
        key = ("calls with", self.tools, asked.side, asked.field)
        by_value: dict[Any, list[ToolCall]] = view.remembered(key, lambda: asked.index(named))
        return by_value.get(wanted, [])

    def _named(self, view: View) -> list[ToolCall]:
        return [c for c in view.calls if c.outcome == "succeeded" and any_glob(self.tools, c)]

    def _said(self, place: Place) -> dict[str, str] | None:
        view, key = place.view, ("said", self.said_by, self.pattern)
        said: list[tuple[int, dict[str, str]]] = view.remembered(key, lambda: self._all_said(view))
        before = bisect_left(said, place.event.position, key=lambda one: one[0])
        return said[before - 1][1] if before else None

    def _all_said(self, view: View) -> list[tuple[int, dict[str, str]]]:
        """Where the pattern was said, and the groups of its last place in each text."""
        found = []
        for event in view.events:
            if isinstance(event, _SPEAKERS[self.said_by or "system"]):
                matches = list(compiled(self.pattern or "").finditer(event.text[:LONGEST]))
                if matches:
                    found.append((event.position, {k: v or "" for k, v in matches[-1].groupdict().items()}))
        return found


def sorted_out(found: list[Any], time: str) -> list[Any]:
    """The list, oldest first, of what was found nearest first."""
    return found if time == "later" else found[::-1]


def binding_mistakes(bindings: dict[str, Binding], always: frozenset[str], own: Fields) -> Iterator[Mistake]:
    """What is wrong with the names of a rule: (path, what, what to do). `own`: what stands for the event itself,
    and its fields."""
    names, fields = frozenset(own), dict(own)
    for name, binding in bindings.items():
        if name in always | _OF_OTHER or not name.isidentifier():
            yield ((name,), f"{name} can not be a name here", "choose another word")
        yield from (((name, *path), wrong, do) for path, wrong, do in binding.mistakes(names, fields))
        names |= {name}
        if binding.fields is not None:
            fields[name] = binding.fields


def fields_of(bindings: dict[str, Binding], own: Fields) -> Fields:
    """The fields of everything that has no others, where a rule may name all of it."""
    closed = {name: binding.fields for name, binding in bindings.items() if binding.fields is not None}
    return {**own, **closed, "known": tuple(bindings), "said": ("user", "last", "assistant")}


def bind(bindings: dict[str, Binding], place: Place) -> dict[str, Any]:
    """Everything a rule looked up, by name, and the event itself; what was not found is left out."""
    bound = place.own()
    for name, binding in bindings.items():
        found = binding.find(place, bound)
        if found is not None:
            bound[name] = found
    return bound


def surroundings(place: Place, bindings: dict[str, Binding], bound: dict[str, Any], text: str) -> dict[str, Any]:
    """What a condition may name beside its own names, as far as it does: the result of the call, which names were
    found, what was said so far, whether a span shows an approval of the call that counts, and whether the user said
    yes to it."""
    named, given = names_in(text), dict(bound)
    if "known" in named:
        given["known"] = {name: name in bound for name in bindings}
    if "said" in named:
        given["said"] = _said_so_far(place)
    if isinstance(place.event, ToolCall):
        given["result"] = result_of(place.event)
        call, view = place.event, place.view
        if "approved" in named:
            given["approved"] = call.approval is not None and not why_not(call, view)
        if "confirmed" in named:
            given["confirmed"] = agreed_just_now(call, view) or approval_of(call, view) is not None
    return given


def _said_so_far(place: Place) -> dict[str, str]:
    """All that the user said before, what he said last, and all that the agent said; the newest part of it."""
    before = place.view.before(place.event)
    users = _newest(e.text for e in reversed(before) if isinstance(e, UserMessage))
    agent = _newest(e.text for e in reversed(before) if isinstance(e, AssistantMessage))
    return {"user": "\n".join(users), "last": users[-1] if users else "", "assistant": "\n".join(agent)}


def _newest(texts: Iterator[str]) -> list[str]:
    """Texts, given newest first, as far as they fit; oldest first."""
    kept: list[str] = []
    left = LONGEST
    for text in texts:
        if left <= 0:
            break
        kept.append(text[-left:])
        left -= len(kept[-1])
    return kept[::-1]
