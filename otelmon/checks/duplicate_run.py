"""Two runs handle the same trigger, and both write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from otelmon.checks.lib.deliveries import Handling, earlier_handling, handlings, handlings_of, on_schedule, overlap
from otelmon.checks.lib.pairs import apart
from otelmon.checks.registry import check
from otelmon.checks.view import View
from otelmon.vocabulary.event import Run
from otelmon.vocabulary.finding import Evidence
from otelmon.vocabulary.messages import EffectEntry


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`window_seconds`: how long after the end of a run its trigger still counts as delivered again;
    `nearby_seconds`: how far apart the same words may reach two hosts."""

    window_seconds: float = 900.0
    nearby_seconds: float = 60.0


@check(on="run", name="duplicate_run")
def in_conversation(run: Run, view: View, params: Params) -> Iterator[Evidence]:
    """One message or job was handled by two runs, and both changed something.

    Why it matters: a redelivery, a second worker or a retry of the whole run does everything twice, in its own way.
    """
    all_ = handlings(view)
    place = next((n for n, h in enumerate(all_) if h.run_id == run.run_id), None)
    if place is not None:
        yield from _twice(all_[place], all_[:place], all_, params)


@check(on="request", name="duplicate_run")
def across_conversations(entries: Sequence[EffectEntry], params: Params) -> Iterator[Evidence]:
    """The same for runs of two conversations."""
    all_ = handlings_of(entries)
    for place, handling in enumerate(all_):
        others = [h for h in all_[max(0, place - 200) : place] if h.conversation_id != handling.conversation_id]
        yield from _twice(handling, others, all_, params)


def _twice(
    second: Handling, before: Sequence[Handling], all_: Sequence[Handling], params: Params
) -> Iterator[Evidence]:
    first = earlier_handling(second, before, params.window_seconds, params.nearby_seconds)
    if first is None or (not overlap(first, second) and on_schedule(second.trigger, all_)):
        return
    link = f"trigger {second.trigger}" if second.trigger else "the same message"
    yield Evidence(
        summary=f"{link} was handled by two runs that both wrote, {apart(first.start, second.start)} apart: "
        f"{_named(first)} and {_named(second)}"[:400],
        anchor=second.run_id,
        key="across" if first.conversation_id != second.conversation_id else "",
        span_ids=tuple(dict.fromkeys(str(w["span_id"]) for w in (*second.writes[:5], *first.writes[:5]))),
        severity="critical" if second.destructive else "high",
        tool_name=str(second.writes[0]["tool_name"]) if second.writes else None,
        details={
            "link": link,
            "overlap": overlap(first, second),
            "hosts": sorted({h for h in (first.host, second.host) if h}),
            "other": _facts(first),
            "this": _facts(second),
        },
    )


def _named(handling: Handling) -> str:
    return ", ".join(dict.fromkeys(str(w["tool_name"]) for w in handling.writes[:5]))


def _facts(handling: Handling) -> dict[str, object]:
    return {
        "run_id": handling.run_id,
        "conversation_id": handling.conversation_id,
        "host": handling.host,
        "start_time_unix_nano": handling.start,
        "writes": list(handling.writes),
    }
