"""How a check is declared and found.

    @check(on="call")
    def redundant_read(call: ToolCall, view: View, params: Params) -> Iterator[Evidence]: ...

`on` says what it is asked about: every "call", every "final" assistant message of a closed run,
every "run" that closed, every "definition", or a history of the ledger (then the arguments are `(entries, params)`):
the writes of one "effect", of one "request" (a trigger, or the same words), of one idempotency "key", or the versions
of one "tool" by first sight. One check name may have one function per anchor
kind (give `name=`). Laws: no clock, no I/O, no randomness, no globals; the same view gives the same
evidence. Built-in checks are the modules of this package; nothing is registered by hand. Checks of a
plug-in are kept apart by the top package they stand in: they join only where they are asked for.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, get_type_hints

import msgspec

import otelmon.checks
from otelmon.vocabulary.finding import Evidence

On = Literal["call", "final", "run", "definition", "effect", "tool", "request", "key"]
Function = Callable[..., Iterator[Evidence]]


class NoParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of a check that has none."""


class Check(msgspec.Struct, frozen=True):
    """A check: its functions by anchor kind, and the type of its parameters."""

    name: str
    functions: dict[On, Function]
    params_type: type[msgspec.Struct]
    doc: str


OURS = "otelmon"
_DECLARED: dict[str, dict[str, Check]] = {OURS: {}}  # by top package


def check(on: On, name: str | None = None) -> Callable[[Function], Function]:
    """Declare a function as (a part of) the check called `name`, by default the function's name."""

    def declare(function: Function) -> Function:
        label = name or function.__name__
        hints = get_type_hints(function)
        params = hints.get("params", NoParams)
        beside = _DECLARED.setdefault(function.__module__.partition(".")[0], {})
        known = beside.get(label)
        functions = {**(known.functions if known else {}), on: function}
        if known and known.params_type is not params:
            raise TypeError(f"check {label}: its functions take different parameters")
        doc = known.doc if known else (function.__doc__ or "")
        beside[label] = Check(label, functions, params, doc)
        return function

    return declare


def load_checks(more: Mapping[str, Check] | None = None) -> dict[str, Check]:
    """All built-in checks by name, and those of plug-ins that are given as `more`."""
    for module in pkgutil.iter_modules(otelmon.checks.__path__):
        if not module.ispkg:
            importlib.import_module(f"otelmon.checks.{module.name}")
    return dict(sorted({**(more or {}), **_DECLARED[OURS]}.items()))


def declared_in(package: str) -> dict[str, Check]:
    """Checks that the modules of a top package have declared so far, by name."""
    return dict(sorted(_DECLARED.get(package, {}).items()))


def run_check(function: Function, *arguments: Any) -> list[Evidence]:
    """All evidence of one call of a check."""
    return list(function(*arguments))
