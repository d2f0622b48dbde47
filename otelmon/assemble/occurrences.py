"""Messages at their places: the tree that message histories make, and questions about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from otelmon.assemble.runs import Place, RunDraft
from otelmon.assemble.slots import Group
from otelmon.vocabulary.reading import Definition, Message, Reading

SHORT_NANOS = 5_000_000
NEWEST = 64  # of equal messages at one place, those looked at


@dataclass(slots=True, eq=False)
class Chain:
    """A line of occurrences without branches; `fork` is the occurrence it branches off."""

    fork: Occurrence | None


@dataclass(slots=True, eq=False)
class Occurrence:
    """One message at one place. `generated` when a model span's output shows its making; `place`
    is the span it is read from; `aside` for text beside the line of the conversation (a summary
    of what was cut off), `asked` when a user message is on or above it."""

    key: int
    message: Message | None
    parent: Occurrence | None
    chain: Chain
    depth: int
    place: Place
    time: int
    generated: Place | None = None
    freshness: int = 0
    aside: bool = False
    repeated: bool = False
    answers: bool = False
    asked: bool = False
    index: int = -1
    turn: int = -1
    group: Group | None = None
    children: dict[int, list[Occurrence]] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class SystemText:
    """A system message at its first place in a run."""

    text: str
    place: Place
    time: int


@dataclass(slots=True, eq=False)
class DefinitionSeen:
    """A tool definition at its first place in a run."""

    definition: Definition
    place: Place
    time: int


@dataclass(slots=True, eq=False)
class ContextText:
    """Text that a span which is no model's brought in: retrieved documents."""

    text: str
    place: Place
    time: int


Item = Occurrence | SystemText | ContextText | DefinitionSeen


def unshown(parent: Occurrence | None, run: RunDraft) -> Group | None:
    """The requests that a model made at this place, when the history that follows leaves its
    message out and shows the results only."""
    if parent is None:
        return None
    for same in parent.children.values():
        for child in reversed(same):
            made = child.generated
            if made is not None and made.run is run and child.message is not None and child.message.requests:
                return child.group
    return None


def choose(same: Sequence[Occurrence], run: RunDraft) -> Occurrence | None:
    """Of equal messages at one place: the one of this run, else the newest."""
    if len(same) < 2:
        return same[0] if same else None
    newest = same[-NEWEST:]
    mine = [child for child in newest if (child.generated or child.place).run is run]
    return (mine or newest)[-1]


def line_up(tip: Occurrence, rest: tuple[int, ...]) -> tuple[int, int] | None:
    """(index of the tip in the rest, how many messages agree backwards from it)."""
    if tip.key not in rest:
        return None
    end = len(rest) - 1 - rest[::-1].index(tip.key)
    length, node = 0, tip
    current: Occurrence | None = node
    while current is not None and length <= end and current.key == rest[end - length]:
        length += 1
        current = current.parent
    return end, length


def one_generation(one: Place, other: Place) -> bool:
    """One model call seen by two instrumentations: different scopes, nearly the same time."""
    a, b = one.reading, other.reading
    if (a.scope_name, a.dialect) == (b.scope_name, b.dialect):
        return False
    return overlapping(a, b)


def overlapping(a: Reading, b: Reading) -> bool:
    """More than 80 % of the shorter span lies inside the other; very short ones begin together."""
    shared = min(a.end_time_unix_nano, b.end_time_unix_nano) - max(a.start_time_unix_nano, b.start_time_unix_nano)
    shorter = min(
        a.end_time_unix_nano - a.start_time_unix_nano,
        b.end_time_unix_nano - b.start_time_unix_nano,
    )
    if shorter <= SHORT_NANOS:
        return abs(a.start_time_unix_nano - b.start_time_unix_nano) <= SHORT_NANOS
    return shared > 0.8 * shorter


def above(ancestor: Occurrence, node: Occurrence) -> bool:
    """Whether one stands above the other on its own way up."""
    chain, depth = node.chain, node.depth
    while True:
        if chain is ancestor.chain:
            return ancestor.depth <= depth
        fork = chain.fork
        if fork is None:
            return False
        chain, depth = fork.chain, fork.depth


def answer_time(node: Occurrence) -> float:
    """When the first answer without requests below this occurrence was there; infinite if never."""
    current: Occurrence | None = node
    while current is not None:
        message = current.message
        if message is not None and message.role == "assistant" and not message.requests:
            return current.time
        newest = list(current.children.values())
        current = newest[-1][-1] if newest else None
    return float("inf")
