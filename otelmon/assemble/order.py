"""The order of messages: every model span repeats the history, each message happened once.

Messages form a tree of occurrences (a re-run or a regenerated answer branches off). A model span's
input is walked down the tree; what is left over is new and becomes occurrences in the order in
which it is found. Equal messages at different places are different occurrences.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from otelmon.assemble.gather import Line
from otelmon.assemble.occurrences import (
    NEWEST,
    Chain,
    Item,
    Occurrence,
    above,
    answer_time,
    choose,
    line_up,
    one_generation,
    unshown,
)
from otelmon.assemble.runs import Place, RunDraft
from otelmon.assemble.slots import Group, Slot, SlotTable
from otelmon.vocabulary.reading import Message

RECENT = 8
CLIMB = 4
LONG_TEXT = 24


@dataclass(slots=True, eq=False)
class _Recent:
    keys: tuple[int, ...]
    node: Occurrence
    run: RunDraft


class Story:
    """Grows by `enter` (what a span saw) and `leave` (what it said); `items` is the linear order."""

    def __init__(self, messages: Sequence[Message | None]) -> None:
        self._messages = messages
        self._recent: deque[_Recent] = deque(maxlen=RECENT)
        self._seen: set[int] = set()
        self._groups = 0
        self._roots: dict[int, list[Occurrence]] = {}
        self.items: list[Item] = []
        self.unasked: set[str] = set()  # runs that saw a result of a call nobody was seen to ask for
        self.users = 0
        self.from_start = False  # the first model span of the conversation saw a whole history
        self.slots = SlotTable()

    # -- what a span saw -------------------------------------------------------------------------
    def enter(self, line: Line, place: Place, time: int) -> Occurrence | None:
        """Walk the input down the tree; returns the occurrence it ends at."""
        keys, exact = line.keys, line.exact
        if not keys:
            return self._last_of(place.run)
        node, done = self._known(keys, place)
        if done < len(keys) and (node is None or node.children):
            node, done = self._overlap(line, node, done, place, time)
        if done == len(keys) and node is not None and self._asked_again(node, place):
            node, done = node.parent, done - 1
            node = self._grow(node, keys[done], exact[done], place, time)
            done += 1
        for index in range(done, len(keys)):
            node = self._grow(node, keys[index], exact[index], place, time, len(keys) - index)
        if node is not None:
            self._remember(keys, node, place.run)
        return node

    def leave(self, node: Occurrence | None, said: Line, seen: Line, place: Place, echo: bool) -> Occurrence | None:
        """Add the output below the occurrence the input ended at. `echo`: the span (an agent's)
        only repeats what others said, so an equal message that is known is the same one."""
        time = max(place.reading.start_time_unix_nano, place.reading.end_time_unix_nano)
        for key, number in zip(said.keys, said.exact, strict=True):
            known = self._said(node, key, place, echo)
            if known is None:
                known = self._grow(node, key, number, place, time, said=True)
            elif known.generated is None:
                known.generated = known.place = place
                known.time = time
            node = known
        if node is not None and said.keys:
            self._remember(seen.keys + said.keys, node, place.run)
        return node

    # -- finding ---------------------------------------------------------------------------------
    def _last_of(self, run: RunDraft) -> Occurrence | None:
        return next((recent.node for recent in reversed(self._recent) if recent.run is run), None)

    def _remember(self, keys: tuple[int, ...], node: Occurrence, run: RunDraft) -> None:
        for recent in self._recent:
            if recent.run is run and recent.keys == keys[: len(recent.keys)]:
                self._recent.remove(recent)
                break
        self._recent.append(_Recent(keys, node, run))

    def _known(self, keys: tuple[int, ...], place: Place) -> tuple[Occurrence | None, int]:
        """The deepest occurrence the input leads to from the start, and how many messages it took."""
        node, done = self._resume(keys, place.run)
        level = node.children if node else self._roots
        while done < len(keys):
            child = choose(level.get(keys[done], ()), place.run)
            if child is None:
                break
            freshness = len(keys) - done
            if child.generated is None and freshness < child.freshness:
                child.freshness, child.place = freshness, place
            node, level, done = child, child.children, done + 1
        return node, done

    def _resume(self, keys: tuple[int, ...], run: RunDraft) -> tuple[Occurrence | None, int]:
        best: _Recent | None = None
        for recent in self._recent:
            if len(recent.keys) > len(keys) or recent.keys != keys[: len(recent.keys)]:
                continue
            if best is None or (recent.run is run, len(recent.keys)) >= (best.run is run, len(best.keys)):
                best = recent
        return (best.node, len(best.keys)) if best else (None, 0)

    def _overlap(
        self, line: Line, node: Occurrence | None, done: int, place: Place, time: int
    ) -> tuple[Occurrence | None, int]:
        """A history that was cut or summarised: line its rest up with the end of a known line."""
        rest = line.keys[done:]
        best: tuple[int, int, Occurrence] | None = None
        tried: set[int] = set()
        for recent in reversed(self._recent):
            tip: Occurrence | None = recent.node
            for _ in range(CLIMB):
                if tip is None or id(tip) in tried:
                    break
                tried.add(id(tip))
                found = line_up(tip, rest)
                if found and self._convincing(tip, found) and (best is None or found[1] > best[1]):
                    best = (found[0], found[1], tip)
                tip = tip.parent
        if best is None:
            return node, done
        end, length, tip = best
        for index in range(done, done + end - length + 1):
            if line.keys[index] not in self._seen:
                self._aside(tip, line.keys[index], line.exact[index], place, time)
        return tip, done + end + 1

    def _convincing(self, tip: Occurrence, found: tuple[int, int]) -> bool:
        """One message that agrees is little: it must be one that does not repeat by chance."""
        if found[1] >= 2:
            return True
        message = tip.message
        return message is not None and (bool(message.requests) or len(message.text) >= LONG_TEXT)

    def _said(self, node: Occurrence | None, key: int, place: Place, echo: bool) -> Occurrence | None:
        """The occurrence that this output already is: shown by a history before, or made by
        the same generation seen through a second instrumentation."""
        same = (node.children if node else self._roots).get(key, ())
        for child in same[-NEWEST:]:
            if child.generated is None or echo or one_generation(child.generated, place):
                return child
        return None

    def _asked_again(self, node: Occurrence, place: Place) -> bool:
        """The input is exactly a known line that ends in a user message which was answered in
        full before this span began, by another run and not for the same trigger: the user said
        it again."""
        message = node.message
        if message is None or message.role != "user" or not node.children or node.place.run is place.run:
            return False
        mine, theirs = place.reading.trigger, node.place.reading.trigger
        if mine is not None and mine == theirs:
            return False
        answered = False
        for same in node.children.values():
            for child in same:
                if (child.generated or child.place).run is place.run:
                    return False
                answered = answered or answer_time(child) < place.reading.start_time_unix_nano
        return answered

    # -- growing ---------------------------------------------------------------------------------
    def _grow(
        self,
        parent: Occurrence | None,
        key: int,
        number: int,
        place: Place,
        time: int,
        freshness: int = 0,
        said: bool = False,
    ) -> Occurrence:
        siblings = parent.children if parent else self._roots
        chain = parent.chain if parent and not siblings else Chain(parent)
        depth = parent.depth + 1 if parent else 0
        node = Occurrence(key, self._messages[number], parent, chain, depth, place, time, freshness=freshness)
        siblings.setdefault(key, []).append(node)
        self._seen.add(key)
        if said:
            node.generated = place
        node.asked = bool(parent and parent.asked) or (node.message is not None and node.message.role == "user")
        self._file(node, parent)
        if not node.repeated:
            node.index = len(self.items)
            self.items.append(node)
        return node

    def _aside(self, tip: Occurrence, key: int, number: int, place: Place, time: int) -> None:
        node = Occurrence(key, self._messages[number], tip, Chain(tip), tip.depth + 1, place, time, aside=True)
        node.index = len(self.items)
        self._seen.add(key)
        self.items.append(node)

    def _file(self, node: Occurrence, parent: Occurrence | None) -> None:
        """Open slots for what an assistant asks, give a tool message to the slots it answers."""
        message = node.message
        if message is None:
            return
        if message.role == "tool":
            self._answer(node, message, parent)
        elif message.role == "user":
            self.users += node.place.tool is None
        elif message.role == "assistant":
            known = self._repeats(node, message)
            if known is not None:
                node.repeated, node.group = True, known.group
                return
            node.group = self._group_for(node, parent)
            self.slots.add(node, node.group, message.requests)

    def _answer(self, node: Occurrence, message: Message, parent: Occurrence | None) -> None:
        before = parent.group if parent else None
        groups = [group for group in (unshown(parent, node.place.run), before) if group is not None]
        for response in message.responses:
            slot = self.slots.answer(groups, response, node)
            if slot is not None:
                node.group, node.answers = slot.group, True
        if not node.answers:
            node.group = before
            if not node.asked:
                self.unasked.add(node.place.run.run_id)

    def _group_for(self, node: Occurrence, parent: Occurrence | None) -> Group:
        before = parent.group if parent and parent.message and parent.message.role == "assistant" else None
        if before is not None and parent is not None and not parent.repeated:
            one, other = parent.generated, node.generated
            if one is None or other is None or one.reading is other.reading:
                before.last = node
                return before
        self._groups += 1
        return Group(self._groups, node)

    def _repeats(self, node: Occurrence, message: Message) -> Slot | None:
        """A request that is already known by its call id and stands in another line: a history that
        could not be lined up, or a second instrumentation of one generation."""
        for request in message.requests:
            for slot in self.slots.same_call(request)[-16:]:
                if above(slot.node, node) or any(above(alias, node) for alias in slot.aliases[-16:]):
                    continue
                made = slot.node.generated
                if node.generated is None or (made is not None and one_generation(made, node.generated)):
                    slot.aliases.append(node)
                    return slot
            if request.tool_call_id:
                return None
        return None
