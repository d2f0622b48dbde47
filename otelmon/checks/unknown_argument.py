"""An argument that the tool's schema does not know, though the schema does not forbid extras."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from rapidfuzz import fuzz, process

from otelmon.checks.lib.declared import undeclared
from otelmon.checks.lib.sameness import is_volatile
from otelmon.checks.registry import check
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import Evidence, Severity

_SHOWN = 20


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`similarity`: how alike (0 to 1) a name must be to one of the schema to count as a slip;
    `ignored`: names that clients and frameworks add by themselves."""

    similarity: float = 0.8
    ignored: tuple[str, ...] = ()


@check(on="call")
def unknown_argument(call: ToolCall, view: View, params: Params) -> Iterator[Evidence]:
    """A key that the schema does not define: most servers drop it without a word.

    Why it matters: what the agent wanted to say with it is lost, and the call still answers 200.
    """
    tool = view.tool(call)
    if tool is None or tool.input_schema is None or not isinstance(call.arguments, dict):
        return
    if call.arguments_fidelity == "truncated":
        return
    extras = [e for e in undeclared(tool.input_schema, call.arguments) if not _added_by_client(e.name, params)]
    if not extras:
        return
    slips = {e.path: near for e in extras if (near := _nearest(e.name, e.unused, params))}
    shown = ", ".join(f"{e.path} (meant: {slips[e.path]}?)" if e.path in slips else e.path for e in extras[:3])
    yield Evidence(
        summary=f"{call.tool_name} was called with arguments that its schema does not know: {shown}",
        anchor=call.key,
        span_ids=(call.span_id,),
        severity=_severity(call, view.effect(call).effect, slip=bool(slips)),
        details={"paths": [e.path for e in extras[:_SHOWN]], "nearest": slips, "outcome": call.outcome},
    )


def _added_by_client(name: str, params: Params) -> bool:
    return name.startswith("_") or is_volatile(name) or name in params.ignored


def _nearest(name: str, unused: tuple[str, ...], params: Params) -> str | None:
    """The argument of the schema that was left out and probably meant."""
    found = process.extractOne(name.lower(), unused, scorer=fuzz.ratio, score_cutoff=params.similarity * 100)
    return found[0] if found else None


def _severity(call: ToolCall, effect: str, slip: bool) -> Severity:
    """A refused call was mended or reported; an accepted slip lost what was meant."""
    if call.outcome in ("failed", "denied") or not slip:
        return "low"
    return "high" if effect == "destructive" else "medium"
