"""A message states an id, an amount or a count that is nowhere in the evidence."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from otelmon.checks.lib.stated import said_before, stated_in, unsupported
from otelmon.checks.lib.turns import last_words
from otelmon.checks.registry import check
from otelmon.checks.view import View
from otelmon.vocabulary.event import Run
from otelmon.vocabulary.finding import Evidence


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`every_turn`: judge the last message of each user turn, not only of the run; `counts`: also counts of
    what was done; `smallest_count`: counts below it are not looked at."""

    every_turn: bool = True
    counts: bool = True
    smallest_count: int = 11


@check(on="run")
def unsupported_claim(run: Run, view: View, params: Params) -> Iterator[Evidence]:
    """The agent tells the user a number that no message, result, argument or simple arithmetic gives.

    Why it matters: a confirmation number that does not exist, or a wrong total, is believed like a right one.
    """
    for message in last_words(run, view, params.every_turn):
        items = stated_in(message, params.counts)
        found = [item for item in items if unsupported(item, message, view, params.smallest_count)]
        found = [item for item in found if not said_before(item, message, view)]
        if found:
            names = ", ".join(f"{item.kind} {item.value}" for item in found[:5])
            yield Evidence(
                summary=f"the message states what is nowhere in the evidence: {names}",
                anchor=message.span_id,
                span_ids=(message.span_id,),
                severity="medium",
                details={"stated": [msgspec.to_builtins(item) for item in found[:20]]},
            )
