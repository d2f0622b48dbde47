"""What can go wrong, and the exit code each kind ends a command with.

One form for every message: `where: what is wrong; what was expected; what to do`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

OK, ANSWER_NO, USAGE, UNREACHABLE, BUG = 0, 1, 2, 3, 70


class Problem(msgspec.Struct, frozen=True):
    """One mistake: where it is ("file:line:column" or an option), what is wrong, what was expected,
    what to do. Empty parts are left out of the message."""

    where: str
    wrong: str
    expected: str = ""
    do: str = ""

    def __str__(self) -> str:
        parts = [p for p in (self.wrong, self.expected, self.do) if p]
        return f"{self.where}: " + "; ".join(parts)


class OtelmonError(Exception):
    """A failure that a person can act on. Holds every problem found, not only the first."""

    exit_code = USAGE

    def __init__(self, *problems: Problem) -> None:
        self.problems: Sequence[Problem] = problems
        super().__init__("\n".join(str(p) for p in problems))


class UserError(OtelmonError):
    """Usage, configuration, rule or catalogue mistakes."""


class UnreachableError(OtelmonError):
    """Something needed is not there: a broker, a port that is taken, a locked store, a server."""

    exit_code = UNREACHABLE


class InputError(OtelmonError):
    """A file or request that can not be read. `reason` is the closed word used in counters."""

    def __init__(self, reason: str, *problems: Problem) -> None:
        super().__init__(*problems)
        self.reason = reason
