"""What tests of this folder share: rules around checks that exist only here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from otelmon.checks.registry import Check, On
from otelmon.checks.view import View
from otelmon.rules.catalogue import catalogue_of
from otelmon.rules.model import Need, Rule
from otelmon.rules.notation import TestCase
from otelmon.rules.scene import Scene, build
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import Evidence, Family, Severity
from otelmon.vocabulary.messages import EffectEntry


class Limit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of the check below: `limit` is used, `unused` is not."""

    limit: int = 100
    unused: int = 7
    strict: bool = True
    words: tuple[str, ...] = ("pay",)


def too_dear(call: ToolCall, view: View, params: Limit) -> Iterator[Evidence]:
    """A call with an amount above the limit."""
    amount = call.arguments.get("amount", 0)
    above = amount > params.limit if params.strict else amount >= params.limit
    if call.tool_name in params.words and above:
        yield Evidence(summary=f"{amount} is more than {params.limit}", anchor=call.key)


def every_call(call: ToolCall, view: View, params: Any) -> Iterator[Evidence]:
    """Evidence at every call."""
    yield Evidence(summary="a call", anchor=call.key)


def rule(
    function: Callable[..., Iterator[Evidence]] = every_call,
    rule_id: str = "example",
    *,
    on: On = "call",
    functions: dict[On, Callable[..., Iterator[Evidence]]] | None = None,
    params: msgspec.Struct | None = None,
    severity: Severity = "medium",
    family: Family = "policy",
    needs: tuple[Need, ...] = (),
    wins_over: tuple[str, ...] = (),
    severity_fixed: bool = False,
    tests: tuple[TestCase, ...] = (),
) -> Rule:
    """A rule around a function."""
    values = params or Limit()
    return Rule(
        id=rule_id,
        title=rule_id,
        status="test",
        severity=severity,
        family=family,
        description="",
        check=Check(rule_id, functions or {on: function}, type(values), ""),
        params=values,
        scope="run",
        needs=needs,
        tags=(),
        references=(),
        false_positives=(),
        runbook="",
        version="v1",
        wins_over=wins_over,
        raw={"params": msgspec.to_builtins(values)},
        severity_fixed=severity_fixed,
        tests=tests,
    )


def case(events: Sequence[dict[str, Any]], fires: Sequence[Any] = (), **more: Any) -> TestCase:
    """An inline test from data, as a file would hold it."""
    return msgspec.convert({"name": "a test", "events": list(events), "fires": list(fires), **more}, TestCase)


def scene(*events: dict[str, Any], catalogue: dict[str, Any] | None = None, **more: Any) -> Scene:
    """The conversations of some events."""
    return build(case(events, **more), catalogue_of(catalogue) if catalogue is not None else None)


def view(*events: dict[str, Any], catalogue: dict[str, Any] | None = None, **more: Any) -> View:
    """The only conversation of some events."""
    (only,) = scene(*events, catalogue=catalogue, **more).views
    return only


def entry(**facts: Any) -> EffectEntry:
    """An entry of the effect ledger."""
    usual: dict[str, Any] = {
        "effect_key": "k", "anchor": "t:1", "trace_id": "t", "span_id": "1", "run_id": "t:0", "conversation_id": "c",
        "tool_name": "pay", "tool_call_id": None, "effect": "write", "repeat": "additive", "outcome": "succeeded",
        "idempotency_key": None, "arguments": {}, "arguments_hash": "", "result_digest": "", "request_digest": "",
        "turn": 1, "asked": 1, "identifying": True, "state_changed": False, "trigger": None, "host": "",
        "agent_name": "a", "service_name": "s", "environment": "prod", "start_time_unix_nano": 1, "end_time_unix_nano": 2,
    }  # fmt: skip
    return EffectEntry(**{**usual, **facts})
