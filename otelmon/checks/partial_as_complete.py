"""A result that is only a part is used as if it were everything."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from otelmon.checks.lib.paging import Listing, unfinished
from otelmon.checks.lib.pairs import call_facts
from otelmon.checks.lib.repeats import spans
from otelmon.checks.lib.turns import last_words
from otelmon.checks.lib.wholeness import derived_from, treated_as_whole
from otelmon.checks.registry import check
from otelmon.checks.view import View
from otelmon.vocabulary.event import Run, ToolCall
from otelmon.vocabulary.finding import Evidence


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`every_turn`: judge the last message of each user turn, not only of the run."""

    every_turn: bool = True


@check(on="call", name="partial_as_complete")
def write_on_a_part(call: ToolCall, view: View, params: Params) -> Iterator[Evidence]:  # noqa: ARG001
    """A write was decided on a page of a list of which the rest was never fetched.

    Why it matters: what "is not there" may stand on the next page, and "all" are then only the first few.
    """
    if not view.writes(call) or call.outcome in ("failed", "denied"):
        return
    for listing in unfinished(call.position, view):
        why = derived_from(listing, call, view)
        if why:
            page = listing.pages[-1]
            yield Evidence(
                summary=f"{call.tool_name} was decided on a part of {page.tool_name} ({listing.part.said}): {why}",
                anchor=call.key,
                span_ids=spans(call, page),
                severity="high",
                details={"this": call_facts(call), **_facts(listing), "why": why},
            )
            return


@check(on="run", name="partial_as_complete")
def answer_on_a_part(run: Run, view: View, params: Params) -> Iterator[Evidence]:
    """An answer speaks of all there is, and only a part of the list was fetched."""
    for message in last_words(run, view, params.every_turn):
        asked = view.latest_user_message(message)
        for listing in reversed(unfinished(message.position, view)):
            page = listing.pages[-1]
            if asked is not None and page.position < asked.position:
                continue
            said = treated_as_whole(listing, message, view)
            if said:
                yield Evidence(
                    summary=f"the message says {said[:120]!r}, but {page.tool_name} gave only a part ({listing.part.said})",
                    anchor=message.span_id,
                    span_ids=(message.span_id, *page.span_ids),
                    severity="medium",
                    details={"claim": said, **_facts(listing)},
                )
                break


def _facts(listing: Listing) -> dict[str, object]:
    return {
        "other": call_facts(listing.pages[-1]),
        "pages": len(listing.pages),
        "seen": listing.seen,
        "total": listing.part.total,
        "says": listing.part.said,
    }
