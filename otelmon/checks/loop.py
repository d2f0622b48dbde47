"""A cycle of calls that goes round without progress."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec

from otelmon.checks.lib.cycles import Limits, cycle_at
from otelmon.checks.lib.pairs import apart, call_facts
from otelmon.checks.lib.repeats import spans
from otelmon.checks.registry import check
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import Evidence


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`repeats`: equal calls in a row that make a loop; `rounds`: rounds of a cycle of several calls;
    `longest`: the longest cycle looked for, in calls; `timer_seconds`: reads at equal distances of at least
    this are polling; `runaway`: rounds from which on nothing but a limit ends it, and it is of severity high."""

    repeats: Annotated[int, msgspec.Meta(ge=2)] = 4
    rounds: Annotated[int, msgspec.Meta(ge=2)] = 3
    longest: Annotated[int, msgspec.Meta(ge=1, le=20)] = 6
    timer_seconds: float = 5.0
    runaway: Annotated[int, msgspec.Meta(ge=2)] = 20


@check(on="call")
def loop(call: ToolCall, view: View, params: Params) -> Iterator[Evidence]:
    """The same calls with the same arguments and the same answers go round and round.

    Why it matters: such an agent stops only at its limit, and pays for every round.
    """
    limits = Limits(params.repeats, params.rounds, params.longest, params.timer_seconds)
    cycle = cycle_at(call, view, limits)
    if cycle is None:
        return
    names = " > ".join(c.tool_name for c in cycle.calls)
    yield Evidence(
        summary=f"{names} went round {cycle.rounds} times with the same arguments and answers, "
        f"{apart(cycle.first.start_time_unix_nano, call.end_time_unix_nano)} for the first of them",
        anchor=call.key,
        span_ids=spans(call, cycle.first, *cycle.calls),
        severity="high" if cycle.rounds >= params.runaway else None,
        details={
            "period": cycle.period,
            "rounds": cycle.rounds,
            "calls": [call_facts(c) for c in cycle.calls],
            "other": call_facts(cycle.first),
        },
    )
