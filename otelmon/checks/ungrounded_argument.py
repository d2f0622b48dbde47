"""An identifying value that nobody gave: in no message, no earlier result, no constant of the schema."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from weakref import WeakKeyDictionary

import msgspec

from otelmon.checks.lib.nearness import near_edits
from otelmon.checks.lib.provenance import Lineage, lineage
from otelmon.checks.lib.provenance_roles import leaves
from otelmon.checks.lib.sources import plain_form
from otelmon.checks.lib.values import to_decimal
from otelmon.checks.registry import check
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import Evidence

MAX_SLIP = 2  # edits that near_miss_id reports by default
_TIMES: WeakKeyDictionary[View, Counter[str]] = WeakKeyDictionary()  # how many writes have a value
_ALWAYS = frozenset(("id", "email", "phone"))
_ON_WRITES = _ALWAYS | {"code", "amount", "date", "quantity", "url", "address", "name"}


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`smallest_quantity`: counts below it are defaults, not facts. `reads`: judge reads too."""

    smallest_quantity: int = 11
    reads: bool = True


@check(on="call")
def ungrounded_argument(call: ToolCall, view: View, params: Params) -> Iterator[Evidence]:
    """A call carries an id, amount, date, quantity or address that is in no source.

    Why it matters: an invented id is valid JSON; the call answers 200 and changes the wrong record.
    """
    writes = view.writes(call)
    if call.arguments_fidelity not in ("exact", "decoded", "repaired", "redacted") or not (writes or params.reads):
        return
    lines = lineage(call, view)
    flagged = [line for line in lines if _invented(line, writes, params)]
    if not flagged:
        return
    flagged += [line for line in lines if writes and line.role == "status" and line.source == "none"]
    copied = [line.path for line in flagged if line.source == "tool_description"]
    names = ", ".join(f"{line.path}={line.value!r}"[:80] for line in flagged[:6])
    yield Evidence(
        summary=f"{call.tool_name} was called with values that are in no source: {names}",
        anchor=call.key,
        severity="high"
        if writes and any(line.sure for line in flagged) and not _dropped(call, flagged, view)
        else "medium",
        span_ids=call.span_ids,
        details={
            "argument": _apart(flagged, call, view),
            "arguments": [msgspec.to_builtins(line) for line in flagged],
            "from_tool_description": copied,
            "lineage": [msgspec.to_builtins(line) for line in lines if line not in flagged],
        },
    )


def _dropped(call: ToolCall, flagged: Sequence[Lineage], view: View) -> bool:
    """The tool refused the call, so that nothing happened, and no other write has one of the values."""
    if call.outcome != "failed":
        return False
    times = _TIMES.get(view)
    if times is None:
        writes = (c for c in view.calls if view.writes(c))
        times = _TIMES[view] = Counter(
            form for c in writes for form in {plain_form(value) for _, _, value in leaves(c.arguments)}
        )
    return all(times[plain_form(line.value)] < 2 for line in flagged if line.role in _ON_WRITES)


def _apart(flagged: Sequence[Lineage], call: ToolCall, view: View) -> str:
    """The first value that is no slip of a known id: near_miss_id tells of those, and it replaces a finding
    about the same argument."""
    paths = [line.path for line in flagged if not near_edits(line, call, view, MAX_SLIP)]
    return paths[0] if paths else flagged[0].path


def _invented(line: Lineage, writes: bool, params: Params) -> bool:
    if line.source not in ("none", "tool_description"):
        return False
    if line.role not in (_ON_WRITES if writes else _ALWAYS):
        return False
    if line.role == "quantity":
        number = to_decimal(line.value)
        return number is not None and number >= params.smallest_quantity
    return True
