"""Text in a tool's result or description that tries to direct the agent, and whether the agent followed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from otelmon.checks.lib.directing import Direction
from otelmon.checks.lib.following import Act, following, past_known
from otelmon.checks.lib.unrequested import unrequested
from otelmon.checks.registry import check
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall, ToolDefinition
from otelmon.vocabulary.finding import Evidence, Severity

_IRREVERSIBLE = ("destructive", "external_send")
_SHOWN = 5  # acts named in one piece of evidence


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`min_weight`: how heavy the signs in a result are that nobody followed, to be worth a finding: one that
    people never write to each other counts 2 or 3, pressure and marks 1. `resisted`: report those at all. `plain_orders`:
    also orders in ordinary prose, once a write that the user did not ask for carries them out."""

    min_weight: int = 4
    resisted: bool = True
    plain_orders: bool = True


@check(on="call", name="tool_poisoning")
def tool_poisoning(call: ToolCall, view: View, params: Params) -> Iterator[Evidence]:
    """The result of the call holds text that orders the agent about: it speaks to the machine instead of being
    data, sets other orders aside, asks to keep things from the user, or speaks of the agent's task. High when a
    later call carries out what it says, at most medium when none does.

    Why it matters: whoever can write into a page, a mail or a ticket that the agent reads would otherwise act
    with the agent's rights.
    """
    found = following(view).by_anchor.get(call.key, ())
    if found:
        yield from _evidence(call.key, f"the result of {call.tool_name}", found, view, params, call.run_id)
    elif params.plain_orders:
        yield from _obeyed(call, view)


def _obeyed(call: ToolCall, view: View) -> Iterator[Evidence]:
    """An order in plain data, that nobody but the agent carried out unasked."""
    done = unrequested(view).by_source.get(call.key, ())
    if done:
        act = done[0]
        yield Evidence(
            summary=f"{act.call.tool_name} does what the result of {call.tool_name} orders, and the user did not ask "
            f"for: {_short(act.direction.passage.quote)!r}",
            anchor=call.key,
            severity=_severity(done, view, call.run_id, most="high"),
            span_ids=tuple(each.call.span_id for each in done[:_SHOWN]),
            details={
                "quote": act.direction.passage.quote,
                "signs": ["order"],
                "followed": True,
                "acts": [described(each) for each in done[:_SHOWN]],
            },
        )


@check(on="definition", name="tool_poisoning")
def tool_poisoning_of_definition(definition: ToolDefinition, view: View, params: Params) -> Iterator[Evidence]:
    """The same in the description of a tool, or of its arguments."""
    anchor = f"tool:{definition.name}"
    found = [d for d in following(view).by_anchor.get(anchor, ()) if d.position == definition.position]
    if found:
        yield from _evidence(anchor, f"the description of {definition.name}", found, view, params, definition.run_id)


def _evidence(
    anchor: str, place: str, found: Sequence[Direction], view: View, params: Params, run_id: str
) -> Iterator[Evidence]:
    known = following(view).by_direction
    acts = [act for direction in found for act in known.get(direction.key, ())]
    strongest = max(found, key=lambda d: (not d.passage.plain, d.passage.weight))
    # What only a description names was looked up for no user: that is to follow it.
    sinks = [act for act in acts if act.sink or act.direction.where == "definition"]
    light = strongest.passage.plain or strongest.passage.weight < params.min_weight
    if not acts and (light or not params.resisted):
        return
    if sinks:
        said = f"{place} directs the agent, and {sinks[0].call.tool_name} carries it out"
    elif acts:
        said = f"{place} directs the agent, and {acts[0].call.tool_name} looks up what it names"
    else:
        said = f"{place} tries to direct the agent; no later call carries it out"
    yield Evidence(
        summary=f"{said}: {_short(strongest.passage.quote)!r}",
        anchor=anchor,
        severity=_severity(sinks, view, run_id) if acts else "low" if _harmless(strongest) else "medium",
        span_ids=tuple(act.call.span_id for act in (sinks or acts)[:_SHOWN]),
        details={
            "quote": strongest.passage.quote,
            "signs": sorted({kind for direction in found for kind in direction.passage.kinds}),
            "orders": [order[:200] for order in strongest.passage.orders[:_SHOWN]],
            "followed": bool(sinks),
            "acts": [described(act) for act in (sinks or acts)[:_SHOWN]],
        },
    )


def _harmless(direction: Direction) -> bool:
    """A text that is there to instruct the agent, or that speaks about such attacks."""
    return direction.expected or "discussing" in direction.passage.kinds


def _severity(sinks: Sequence[Act], view: View, run_id: str, most: Severity = "critical") -> Severity:
    """High when followed, and nothing else explains it; where the past of the conversation is not known the user may have said it."""
    sure = [act for act in sinks if act.sure]
    if sure and past_known(view, run_id):
        gone = any(view.effect(a.call).effect in _IRREVERSIBLE and a.call.outcome != "failed" for a in sure)
        return most if gone else "high"
    return "medium"


def described(act: Act) -> dict[str, object]:
    """An act as JSON data for people: the call, and the value or the tool that gives it away."""
    return {"tool": act.call.tool_name, "call": act.call.key, "how": act.how, "argument": act.path, "value": act.value[:200]}  # fmt: skip


def _short(quote: str) -> str:
    return quote if len(quote) <= 140 else quote[:139] + "…"
