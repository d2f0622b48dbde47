"""Arguments that came from elsewhere than a rule says, and how that is told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from otelmon.checks.lib.provenance import Lineage, lineage
from otelmon.checks.lib.sources import Given, Term, argument_path, comes_from, expected, unseen
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import Evidence

_FROM = {
    "none": "it is in no text the agent saw",
    "tool_description": "it was copied from the tool's description",
    "user": "it came from the user",
    "system": "it came from the instructions",
    "context": "it came from a text the model was given",
    "argument": "it came from an earlier call of the agent",
    "proposal": "it came from the agent's own proposal",
    "run": "it came from whom the run acts for",
    "schema": "it is a constant of the tool's schema",
    "composed": "the agent wrote it",
}


class Stray(msgspec.Struct, frozen=True):
    """An argument that none of the places it must come from held; `known` is what these did hold."""

    call: ToolCall
    line: Lineage
    terms: tuple[Term, ...]
    known: tuple[Given, ...]
    came_from: str

    def says(self) -> str:
        """In words: the value, where it must come from, what is known there, and where it came from."""
        places = " or ".join(map(str, self.terms))
        there = f" (there: {', '.join(repr(given.value)[:40] for given in self.known)})" if self.known else ""
        return f"{self.line.path}={self.line.value!r}"[:120] + f" must come from {places}{there}; {self.came_from}"

    def evidence(self, summary: str, key: str) -> Evidence:
        """The finding's evidence at the call."""
        return Evidence(
            summary=summary[:600],
            anchor=self.call.key,
            key=key,
            span_ids=self.call.span_ids,
            details={
                "argument": self.line.path,
                "value": self.line.value,
                "expected_from": [str(term) for term in self.terms],
                "expected": [msgspec.to_builtins(given) for given in self.known],
                "arguments": [msgspec.to_builtins(self.line)],
            },
        )


def strays(call: ToolCall, view: View, path: str, terms: Sequence[Term]) -> Iterator[Stray]:
    """The arguments at a path (`items[].sku`) that came from none of the places. Nothing is said of content that
    the agent words itself, nor where a result that may have held the value was not seen whole."""
    lines = [line for line in lineage(call, view) if argument_path(line.path) == path and line.value is not None]
    for line in lines:
        if comes_from(line, call, terms, view) is None and not unseen(call, terms, view):
            yield Stray(call, line, tuple(terms), expected(call, terms, view), _told(line, view))


def _told(line: Lineage, view: View) -> str:
    event: Any = view.events[line.position] if line.position is not None else None
    if line.source == "result":
        return f"it came from {event.tool_name}" if isinstance(event, ToolCall) else "it came from other results"
    return _FROM[line.source]
