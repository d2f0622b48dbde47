"""Values from the bytes that a fuzzer gives: short bytes make small values, and every change of them is a change here.

Unlike atheris' own provider this runs without instrumentation, so that a crash file can be read anywhere.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, TypeVar

T = TypeVar("T")

WORDS = (
    "", "A-1", "W-7788", "12.50", "2026-03-04", "yes", "Done.", "I have refunded order A-1.", "not found", "null", "NaN",
    "Error: timed out", '{"error": null}', '{"isError": true}', "[]", "{", "DELETE FROM users", "rm -rf /tmp/x", "'",
    '"{\\"a\\": 1}"', "{'a': (1, 2)}", "[REDACTED]", "sha256:0123456789abcdef", "cut...", "\ud83e", "\u0000", "\u202e",
    "ann@example.com", "1e400", "-0", "9" * 30, "Bestellung 12,50 EUR am 4. M\u00e4rz", "\u8fd4\u91d1\u3057\u307e\u3057\u305f\u3002",
)  # fmt: skip
MAX_DEPTH = 6


class Take:
    """Reads values off the front of bytes; zeros when they are used up."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def left(self) -> int:
        return max(0, len(self._data) - self._at)

    def raw(self, size: int) -> bytes:
        part = self._data[self._at : self._at + size]
        self._at += size
        return part

    def byte(self) -> int:
        return (self.raw(1) or b"\0")[0]

    def below(self, most: int) -> int:
        """A number from 0 up to, not including, `most` (at most 65,536)."""
        return (self.byte() if most <= 256 else self.byte() << 8 | self.byte()) % most

    def one(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]

    def rest(self) -> bytes:
        return self.raw(self.left)

    def text(self, surrogates: bool = False) -> str:
        """A known word, or what the bytes say. `surrogates`: half a pair may stay in it."""
        kind = self.byte()
        if kind < 128:
            word = WORDS[kind % len(WORDS)]
        elif kind < 250:
            word = self.raw(kind % 24).decode("utf-8", "replace")
        else:
            word = self.raw(self.below(2000)).decode("utf-8", "replace")
        return word if surrogates else word.encode("utf-8", "replace").decode()

    def number(self) -> int | float:
        kind = self.byte()
        if kind < 128:
            return kind - 40
        if kind < 192:
            return int.from_bytes(self.raw(8).ljust(8, b"\0"), "big", signed=True)
        if kind < 224:
            return float(struct.unpack(">d", self.raw(8).ljust(8, b"\0"))[0])
        return int.from_bytes(self.raw(20), "big")

    def value(self, depth: int = 0) -> Any:
        """Anything JSON can hold, and NaN."""
        kind = self.below(8 if depth < MAX_DEPTH and self.left else 4)
        if kind == 0:
            return self.one((None, True, False))
        if kind == 1:
            return self.number()
        if kind < 4:
            return self.text()
        if kind < 6:
            return [self.value(depth + 1) for _ in range(self.below(5))]
        return {self.text(): self.value(depth + 1) for _ in range(self.below(5))}
