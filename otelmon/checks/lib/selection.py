"""How rules written as data choose calls, and what they look up for one: earlier results, and what was said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal

import msgspec
import re2

from otelmon.checks.lib.approvals import agreed_just_now, approval_of
from otelmon.checks.lib.conditions import compile_condition, condition_mistakes
from otelmon.checks.lib.expressions import call_fields
from otelmon.checks.view import View
from otelmon.vocabulary.catalogue import Effect
from otelmon.vocabulary.event import AssistantMessage, Outcome, SystemMessage, ToolCall, UserMessage

CALL = frozenset(("call",))
LOOKED_AT = frozenset(("call", "result", "arguments", "name"))
ALWAYS = frozenset(("call", "result", "known", "said", "confirmed"))
Mistake = tuple[tuple[str | int, ...], str, str]
_SPEAKERS: dict[str, type[Any]] = {"system": SystemMessage, "user": UserMessage, "assistant": AssistantMessage}
_LONGEST = 200_000


class Selector(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which calls are meant; what is empty matches everything. `tools` are globs; `when` is CEL over `call`."""

    tools: tuple[str, ...] = ()
    effects: tuple[Effect, ...] = ()
    outcomes: tuple[Outcome, ...] = ("succeeded", "unknown", "pending")
    when: str | None = None

    def matches(self, call: ToolCall, view: View) -> bool:
        """Whether the call is one of those meant."""
        return (
            call.outcome in self.outcomes
            and (not self.tools or any_glob(self.tools, call))
            and (not self.effects or view.effect(call).effect in self.effects)
            and (self.when is None or compile_condition(self.when, CALL).holds({"call": call_fields(call, view)}))
        )

    def mistakes(self) -> Iterator[Mistake]:
        """What is wrong with the condition: (path, what, what to do)."""
        if self.when is not None:
            yield from ((("when",), wrong, do) for wrong, do in condition_mistakes(self.when, CALL))


class Binding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A name for something in the conversation before the call.

    Of `tools` (globs): the result of the last earlier call that succeeded and of which `where` holds (CEL over
    `call`, `result`, and the earlier call's `arguments` and `name`, and names bound before this one); with
    `pick: all` the list of them, oldest first. Of `pattern` (RE2): its named groups where it was `said_by`
    somebody last.
    """

    tools: tuple[str, ...] = ()
    where: str | None = None
    pick: Literal["last", "all"] = "last"
    said_by: Literal["system", "user", "assistant"] | None = None
    pattern: str | None = None

    def mistakes(self, names: frozenset[str]) -> Iterator[Mistake]:
        """What is wrong with it: (path, what, what to do). `names` were bound before."""
        if bool(self.tools) == (self.pattern is not None):
            yield ((), "neither results nor words, or both", "give `tools`, or `said_by` and `pattern`")
        if (self.pattern is None) != (self.said_by is None):
            yield ((), "`said_by` and `pattern` go together", "give both")
        if self.where is not None:
            yield from ((("where",), wrong, do) for wrong, do in condition_mistakes(self.where, LOOKED_AT | names))
        if self.pattern is not None:
            yield from _pattern_mistakes(self.pattern)

    def find(self, call: ToolCall, view: View, bound: dict[str, Any], names: frozenset[str]) -> Any:
        """What the name stands for at this call, or None. `bound` is what the `names` before it stand for."""
        if self.pattern is not None:
            return self._said(call, view)
        found = self._results(call, view, bound, LOOKED_AT | names)
        if self.pick == "all":
            return list(found)[::-1] or None
        return next(found, None)

    def _results(self, call: ToolCall, view: View, bound: dict[str, Any], names: frozenset[str]) -> Iterator[Any]:
        """Results, the newest first."""
        condition = compile_condition(self.where, names) if self.where is not None else None
        fields = call_fields(call, view) if condition else {}
        for earlier in reversed(view.calls[: _place(view, call)]):
            result = result_of(earlier)
            if earlier.outcome != "succeeded" or result is None or not any_glob(self.tools, earlier):
                continue
            seen = {"result": result, "arguments": earlier.arguments or {}, "name": earlier.tool_name}
            if condition is None or condition.holds({**bound, "call": fields, **seen}):
                yield result

    def _said(self, call: ToolCall, view: View) -> dict[str, str] | None:
        wanted = _SPEAKERS[self.said_by or "system"]
        for event in reversed(view.before(call)):
            if isinstance(event, wanted):
                matches = list(_compiled(self.pattern or "").finditer(event.text[:_LONGEST]))
                if matches:
                    return {name: text or "" for name, text in matches[-1].groupdict().items()}
        return None


def result_of(call: ToolCall) -> Any:
    """What came back: data, or the text when it is no data, or None."""
    return call.result if call.result is not None else call.result_text


def same_arguments(one: ToolCall, two: ToolCall, names: Sequence[str]) -> bool:
    """Whether two calls have the same value in each of these arguments; one that is missing is no value."""
    if not names:
        return True
    if not isinstance(one.arguments, dict) or not isinstance(two.arguments, dict):
        return False
    return all(name in one.arguments and one.arguments[name] == two.arguments.get(name) for name in names)


def any_glob(globs: Sequence[str], call: ToolCall) -> bool:
    """Whether the call's tool has one of these names."""
    return any(fnmatchcase(name, glob) for glob in globs for name in (call.tool_name, call.raw_name))


def bind(bindings: dict[str, Binding], call: ToolCall, view: View) -> dict[str, Any]:
    """Everything a rule looked up for a call, by name; what was not found is left out."""
    bound: dict[str, Any] = {}
    names: frozenset[str] = frozenset()
    for name, binding in bindings.items():
        found = binding.find(call, view, bound, names)
        names |= {name}
        if found is not None:
            bound[name] = found
    return bound


def always(call: ToolCall, view: View, bindings: dict[str, Binding], bound: dict[str, Any]) -> dict[str, Any]:
    """What every condition may name beside its own: the call and its result, which names were found, all that the
    user said so far and said last, and whether he said yes to this call."""
    texts = [m.text[:_LONGEST] for m in view.user_messages() if m.position < call.position]
    return {
        "call": call_fields(call, view),
        "result": result_of(call),
        "known": {name: name in bound for name in bindings},
        "said": {"user": "\n".join(texts)[-_LONGEST:], "last": texts[-1] if texts else ""},
        "confirmed": approval_of(call, view) is not None or agreed_just_now(call, view),
    }


def _place(view: View, call: ToolCall) -> int:
    return next((i for i, other in enumerate(view.calls) if other.position >= call.position), len(view.calls))


def _pattern_mistakes(pattern: str) -> Iterator[Mistake]:
    try:
        groups = _compiled(pattern).groupindex
    except re2.error as error:
        yield (("pattern",), f"is no regular expression of RE2: {_text(error)}", "see the syntax of RE2")
        return
    if not groups:
        yield (("pattern",), "the pattern has no named group", "write (?P<name>...) around what is wanted")


def _text(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)


def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)
