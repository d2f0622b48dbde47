"""The result says that something else was done than was asked for."""

from __future__ import annotations

from collections.abc import Iterator

from otelmon.checks.lib.echo import Differs, differences
from otelmon.checks.lib.pairs import call_facts
from otelmon.checks.registry import NoParams, check
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import Evidence


@check(on="call")
def effect_mismatch(call: ToolCall, view: View, params: NoParams) -> Iterator[Evidence]:  # noqa: ARG001
    """The result repeats a business value of the call with another value: amount, record, state, recipient.

    Why it matters: the call looks successful, and 50 were refunded where 500 were owed.
    """
    if call.outcome not in ("succeeded", "pending") or call.arguments_fidelity not in ("exact", "decoded", "repaired"):
        return
    found: list[Differs] = []
    for item in differences(call, view):
        if item.argument not in {known.argument for known in found}:
            found.append(item)
    if not found or (view.effect(call).effect == "unknown"):
        return
    first = found[0]
    yield Evidence(
        summary=f"{call.tool_name} was asked for {first.argument}={first.sent!r}, and the result says "
        f"{first.field}={first.said!r}"[:400],
        anchor=call.key,
        span_ids=call.span_ids or (call.span_id,),
        severity="medium" if all(d.as_before for d in found) else None,
        details={
            "this": call_facts(call),
            "differs": [
                {"argument": d.argument, "sent": _shown(d.sent), "field": d.field, "said": _shown(d.said)}
                for d in found
            ],
        },
    )


def _shown(value: object) -> object:
    return value if isinstance(value, bool | int | float | str | list) else str(value)
