"""How rules written as data choose calls and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from otelmon.checks.lib.conditions import compile_condition, condition_mistakes
from otelmon.checks.lib.expressions import call_fields
from otelmon.checks.lib.patterns import LONGEST, compiled, group_names, pattern_mistakes, sentences
from otelmon.checks.view import View
from otelmon.vocabulary.canonical import canonical
from otelmon.vocabulary.catalogue import Effect
from otelmon.vocabulary.event import Outcome, ToolCall

CALL = frozenset(("call",))
Mistake = tuple[tuple[str | int, ...], str, str]


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


class Statement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sentence of an answer of the agent: the first one in which a pattern of `says` is found (RE2) and none of
    `unless` is."""

    says: tuple[str, ...]
    unless: tuple[str, ...] = ()

    @property
    def fields(self) -> tuple[str, ...]:
        """What may be asked of the sentence found."""
        return ("text", "message", *(name for pattern in self.says for name in group_names(pattern)))

    def found_in(self, text: str) -> dict[str, str] | None:
        """The sentence as `text`, all of the answer as `message`, and the named groups of the patterns; None when
        there is no such sentence."""
        for sentence in sentences(text):
            match = next(filter(None, (compiled(pattern).search(sentence) for pattern in self.says)), None)
            if match and not any(compiled(pattern).search(sentence) for pattern in self.unless):
                groups = {name: said or "" for name, said in match.groupdict().items()}
                return {**dict.fromkeys(self.fields, ""), **groups, "text": sentence, "message": text[:LONGEST]}
        return None

    def mistakes(self) -> Iterator[Mistake]:
        """What is wrong with the patterns: (path, what, what to do)."""
        if not self.says:
            yield (("says",), "says nothing", "give at least one pattern")
        for name, patterns in (("says", self.says), ("unless", self.unless)):
            for n, pattern in enumerate(patterns):
                yield from (((name, n), wrong, do) for wrong, do in pattern_mistakes(pattern, groups=False))


def result_of(call: ToolCall) -> Any:
    """What came back: data, or the text when it is no data, or None."""
    return call.result if call.result is not None else call.result_text


def shared_values(call: ToolCall, names: Sequence[str]) -> str | None:
    """The values of these arguments, as one text that is equal where they are; None when one is missing, which is no
    value and equals nothing."""
    if not names:
        return ""
    if not isinstance(call.arguments, dict) or any(name not in call.arguments for name in names):
        return None
    return canonical([call.arguments[name] for name in names]).decode()


def any_glob(globs: Sequence[str], call: ToolCall) -> bool:
    """Whether the call's tool has one of these names."""
    return any(fnmatchcase(name, glob) for glob in globs for name in (call.tool_name, call.raw_name))
