"""Conditions on a call, written by operators in CEL: `call.arguments.amount > 100`.

The only variable is `call`. Its fields are checked when an expression is loaded; what only shows when
it runs (an argument that is not there, text compared with a number) makes it false and is counted.
"""

from __future__ import annotations

import logging
import re
import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Set
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

import cel

from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall

MAX_LENGTH = 2_000
MAX_LOOPS = 2
ONLY_CALL = frozenset(("call",))
MAX_LOOPED = 500  # things in one list or map of the arguments, where a loop may stand in a loop
FIELDS: dict[str, Any] = {
    "name": "",
    "arguments": {},
    "agent": "",
    "principal": "",
    "environment": "",
    "service": "",
    "server": "",
    "effect": "",
    "repeat": "",
    "outcome": "",
    "model": "",
    "approved": False,
    "idempotency_key": "",
    "turn": 0,
    "beside": 0,
    "message": "",
}
"""The fields of `call` and an empty value of each one's type."""
CALL_FIELDS: Mapping[str, Collection[str]] = {"call": tuple(FIELDS)}

_FUNCTIONS = frozenset(
    (
        *("bytes", "double", "int", "string", "type", "uint", "timestamp", "duration"),
        *("all", "exists", "exists_one", "filter", "map", "has", "size", "dyn"),
        *("contains", "startsWith", "endsWith", "matches", "getDate", "getDayOfMonth", "getDayOfWeek"),
        *("getDayOfYear", "getFullYear", "getHours", "getMilliseconds", "getMinutes", "getMonth", "getSeconds"),
        *("sum", "least", "greatest", "lower"),
    )
)
_STRING = re.compile(r"""'''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_LOOP = re.compile(r"\.\s*(?:all|exists|exists_one|map|filter)\s*\(\s*(\w+)\s*,")

When = Callable[[ToolCall, View], bool]

logging.getLogger("cel").setLevel(logging.ERROR)  # each undecided condition would be a line; they are counted instead


def _sum(numbers: list[Any]) -> float:
    return float(sum(numbers))


def _least(values: list[Any]) -> Any:
    return min(values)


def _greatest(values: list[Any]) -> Any:
    return max(values)


def _lower(text: str) -> str:
    return text.lower()


def context_of(values: Mapping[str, Any]) -> cel.Context:
    """What an expression is asked with: these variables, and our functions over lists and texts."""
    context = cel.Context(dict(values))
    context.add_function("sum", _sum)
    context.add_function("least", _least)
    context.add_function("greatest", _greatest)
    context.add_function("lower", _lower)
    return context


class _Tally(threading.local):
    """How many conditions this thread could not decide so far: who asks a rule sees what it cost."""

    undecided = 0


_TALLY = _Tally()


def not_decided(failures: Counter[str], kind: str) -> None:
    """Count a condition that could not be decided, and why."""
    failures[kind] += 1
    _TALLY.undecided += 1


def undecided_here() -> int:
    """Conditions that this thread could not decide so far."""
    return _TALLY.undecided


class ExpressionError(ValueError):
    """An expression that can not be used; `mistakes` are pairs of what is wrong and what to do."""

    def __init__(self, text: str, mistakes: list[tuple[str, str]]) -> None:
        self.mistakes = mistakes
        super().__init__(f"{text}: " + "; ".join(wrong for wrong, _ in mistakes))


class _Condition:
    """A compiled expression. `failures` counts why it could not be decided, by kind of error."""

    def __init__(self, text: str) -> None:
        self._program = cel.compile(text)
        self._nests = loops_in(text) > 1
        self.failures: Counter[str] = Counter()

    def __call__(self, call: ToolCall, view: View) -> bool:
        if self._nests and widest(call.arguments) > MAX_LOOPED:
            not_decided(self.failures, "too_large")
            return False
        try:
            return self._program.execute(context_of({"call": call_fields(call, view)})) is True
        except Exception as error:  # noqa: BLE001 - the library raises many kinds; each one means "can not be decided"
            not_decided(self.failures, type(error).__name__)
            return False


def widest(value: Any) -> int:
    """The size of the largest list or map in a value."""
    widest, left = 0, [value]
    while left:
        item = left.pop()
        if isinstance(item, dict | list):
            widest = max(widest, len(item))
            left.extend(item.values() if isinstance(item, dict) else item)
    return widest


@lru_cache(maxsize=1_000)
def compile_when(text: str) -> When:
    """The condition as a function of a call and its conversation. Raises ExpressionError."""
    mistakes = expression_mistakes(text)
    if mistakes:
        raise ExpressionError(text, mistakes)
    return _Condition(text)


def undecided(text: str) -> int:
    """How often this condition could not be decided since the process started."""
    condition = compile_when(text)
    return condition.failures.total() if isinstance(condition, _Condition) else 0


def call_fields(call: ToolCall, view: View) -> dict[str, Any]:
    """What an expression sees of a call; the keys are those of FIELDS."""
    effect = view.effect(call)
    return {
        "name": call.tool_name,
        "arguments": call.arguments if call.arguments is not None else {},
        "agent": call.agent_name or "",
        "principal": call.principal or "",
        "environment": call.environment,
        "service": call.service_name,
        "server": call.server or "",
        "effect": effect.effect,
        "repeat": effect.repeat,
        "outcome": call.outcome,
        "model": call.model or "",
        "approved": call.approval is not None and call.approval.decision in ("approved", "auto"),
        "idempotency_key": view.idempotency_key(call) or "",
        "turn": call.turn,
        "beside": view.asked_beside(call),
        "message": view.message_beside(call),
    }


def expression_mistakes(
    text: str,
    names: Set[str] = ONLY_CALL,
    loops: int = MAX_LOOPS,
    answer: bool = True,
    fields: Mapping[str, Collection[str]] = CALL_FIELDS,
) -> list[tuple[str, str]]:
    """What is wrong with an expression, as pairs of the mistake and what to do; empty when it is fine.
    `names` are the variables it may use, `loops` how many loops; `answer`: it must give true or false;
    `fields`: the fields of those variables that have no others."""
    if len(text) > MAX_LENGTH:
        return [(f"the expression has {len(text)} characters", f"at most {MAX_LENGTH} are read")]
    try:
        program = cel.compile(text)
    except ValueError as error:
        return [(_syntax(str(error)), "see the CEL language definition")]
    bare = without_texts(text)
    found = [*_name_mistakes(program, bare, names), *_field_mistakes(bare, fields)]
    if loops_in(text) > loops:
        found.append((f"more than {loops} loops (all, exists, map, filter)", "write it with fewer"))
    return found or _type_mistakes(program, answer)


def loops_in(text: str) -> int:
    """How many loops an expression has."""
    return len(_LOOP.findall(without_texts(text)))


def without_texts(text: str) -> str:
    """An expression with every text in it left empty: what stands in quotes is no name."""
    return _STRING.sub("''", text)


def _name_mistakes(program: Any, bare: str, names: Set[str]) -> list[tuple[str, str]]:
    bound = set(_LOOP.findall(bare))
    types = {"int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type", "type"}
    found = [
        (f"unknown variable {name}", "the only variable is call" if names == ONLY_CALL else _guess(name, names))
        for name in program.variables()
        if name not in names and name not in bound and name not in types
    ]
    unknown = (n for n in program.functions() if n.isidentifier() and not n.startswith("_") and n not in _FUNCTIONS)
    return [*found, *((f"unknown function {name}", _guess(name, _FUNCTIONS)) for name in unknown)]


def _field_mistakes(bare: str, fields: Mapping[str, Collection[str]]) -> list[tuple[str, str]]:
    bound, found = set(_LOOP.findall(bare)), []
    for name, known in fields.items():
        if name in bound:
            continue
        if re.search(rf"(?<![\w.]){name}\s*\[", bare):
            found.append((f"{name}[...] can not be checked", f"write {name}.<field>"))
        used = dict.fromkeys(re.findall(rf"(?<![\w.]){name}\s*\.\s*(\w+)", bare))
        found += [(f"{name} has no field {field}", _guess(field, known)) for field in used if field not in known]
    return found


def _type_mistakes(program: Any, truth: bool) -> list[tuple[str, str]]:
    """Runs it once on an empty call: a type error there is one for every call, and so is a wrong kind of
    answer. That an argument is missing there says nothing."""
    try:
        answer = program.execute(context_of({"call": FIELDS}))
    except TypeError:
        return [("compares values of different types", "convert with string(), int() or double()")]
    except Exception:  # noqa: BLE001 - an argument that this empty call does not have
        return []
    return (
        []
        if isinstance(answer, bool) or not truth
        else [(f"gives {type(answer).__name__}", "write a condition: true or false")]
    )


def _syntax(error: str) -> str:
    """The parser's first complaint with its column, without the picture under it."""
    found = re.search(r"<input>:(\d+):(\d+): (?:Syntax error: )?([^\n]*)", error)
    if found is None:
        return "is not CEL"
    return f"is not CEL at column {found[2]}: {found[3].split(' expecting ')[0]}"


def _guess(name: str, known: Any) -> str:
    near = get_close_matches(name, list(known), n=1)
    return f"did you mean {near[0]}?" if near else f"known: {', '.join(sorted(known))}"
