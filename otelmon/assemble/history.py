"""What was already read of one trace's message history, so that it is neither decoded nor sent twice.

Model spans repeat the whole conversation so far: history is most of the bytes of real traffic. The
memory is a shortcut only: with it or without it the digests are the same, and every message has
been sent at least once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import msgspec

from otelmon.assemble.values import IncompleteError, parse_json
from otelmon.vocabulary.reading import Message

MAX_KEYS = 16
MAX_PREFIXES = 4
MAX_SEEN = 20_000

Digests = tuple[str, ...]
Reader = Callable[[Any], list[Message]]

_pack = msgspec.msgpack.Encoder().encode


class _Prefix(msgspec.Struct, frozen=True):
    """A JSON array seen before, without its closing bracket."""

    size: int
    hash: int
    digests: Digests


class Batch(msgspec.Struct, frozen=True):
    """Digests in order, the messages not sent before, and whether the array was cut."""

    digests: Digests = ()
    messages: tuple[Message, ...] = ()
    truncated: bool = False

    def __add__(self, other: Batch) -> Batch:
        return Batch(self.digests + other.digests, self.messages + other.messages, self.truncated or other.truncated)


class History:
    """The memory of one trace; its owner drops it with the trace. Bounded: what it forgets is sent
    again, which changes nothing."""

    def __init__(self) -> None:
        self._prefixes: dict[str, list[_Prefix]] = {}
        self._items: dict[Hashable, Digests] = {}
        self._sent: set[tuple[str, int]] = set()

    def send(self, messages: list[Message]) -> Batch:
        """Digests of all, and those of the messages that were not sent yet. Two messages of one
        digest that differ in a detail are both sent: see `preferred`."""
        fresh = []
        for message in messages:
            mark = (message.digest, hash(_pack(message)))
            if mark not in self._sent:
                if len(self._sent) >= MAX_SEEN:
                    self._sent.clear()
                self._sent.add(mark)
                fresh.append(message)
        return Batch(tuple(m.digest for m in messages), tuple(fresh))

    def items(self, fingerprints: list[Hashable], read: Callable[[int], list[Message]]) -> Batch:
        """Messages that come one by one; `read(i)` is only called for a fingerprint not seen yet."""
        digests: list[str] = []
        fresh: list[Message] = []
        for index, fingerprint in enumerate(fingerprints):
            known = self._items.get(fingerprint)
            if known is None:
                batch = self.send(read(index))
                fresh.extend(batch.messages)
                known = batch.digests
                if len(self._items) >= MAX_SEEN:
                    self._items.clear()
                self._items[fingerprint] = known
            digests.extend(known)
        return Batch(tuple(digests), tuple(fresh))

    def array(self, key: str, text: str, read: Reader) -> Batch | None:
        """Messages of the JSON array in `text`; `read` turns one element into messages.

        An array that starts with one seen under the same key is read from there on. None when the
        text is no JSON array; `truncated` when it ends too early, with its whole elements read.
        """
        known, rest = self._known(key, text)
        if known is not None:
            tail = _elements(rest)
            if tail is not None:
                batch = self.send([m for item in tail for m in read(item)])
                batch = Batch(known.digests + batch.digests, batch.messages)
                self._remember(key, text, batch.digests, known)
                return batch
        try:
            items = parse_json(text)
        except IncompleteError:
            whole = whole_elements(text)
            batch = self.send([m for item in whole for m in read(item)])
            return Batch(batch.digests, batch.messages, truncated=True)
        except ValueError:
            return None
        if not isinstance(items, list):
            return None
        batch = self.send([m for item in items for m in read(item)])
        self._remember(key, text, batch.digests, None)
        return batch

    def _known(self, key: str, text: str) -> tuple[_Prefix | None, str]:
        for prefix in reversed(self._prefixes.get(key, [])):
            if len(text) > prefix.size and hash(text[: prefix.size]) == prefix.hash:
                return prefix, text[prefix.size :]
        return None, ""

    def _remember(self, key: str, text: str, digests: Digests, extends: _Prefix | None) -> None:
        if key not in self._prefixes and len(self._prefixes) >= MAX_KEYS:
            self._prefixes.clear()
        size = len(text.rstrip()) - 1
        if not digests or (extends is not None and extends.size == size):
            return
        kept = [p for p in self._prefixes.get(key, []) if p is not extends]
        kept.append(_Prefix(size, hash(text[:size]), digests))
        self._prefixes[key] = kept[-MAX_PREFIXES:]


def _elements(rest: str) -> list[Any] | None:
    """The elements in what follows a known prefix: `]`, or `, element, ... ]`."""
    rest = rest.lstrip()
    if rest.strip() == "]":
        return []
    if not rest.startswith(","):
        return None
    try:
        items = parse_json("[" + rest[1:])
    except ValueError:
        return None
    return items if isinstance(items, list) and items else None


def whole_elements(text: str) -> list[Any]:
    """The elements of a cut JSON array that came through whole. Each is tried once, so the cost is
    linear in the text."""
    items: list[Any] = []
    for start, end in _spans(text):
        try:
            items.append(parse_json(text[start:end]))
        except ValueError:
            break
    return items


def _spans(text: str) -> list[tuple[int, int]]:
    """Where the objects directly inside a JSON array start and end."""
    found: list[tuple[int, int]] = []
    depth, start, quoted, escaped = 0, -1, False, False
    for index, char in enumerate(text):
        if quoted:
            quoted = escaped or char != '"'
            escaped = char == "\\" and not escaped
        elif char == '"':
            quoted = True
        elif char in "[{":
            depth += 1
            if depth == 2:
                start = index
        elif char in "]}":
            depth -= 1
            if depth == 1 and start >= 0:
                found.append((start, index + 1))
    return found


def preferred(one: Message, other: Message) -> Message:
    """Which of two messages with one digest to keep: decided by content, never by order."""
    return max(one, other, key=_pack)
