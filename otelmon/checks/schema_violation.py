"""Arguments that break the tool's JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from otelmon.checks.lib.lossless import lossless
from otelmon.checks.lib.refusals import refused_arguments
from otelmon.checks.lib.schema import NotEvaluableError, Violation, violations
from otelmon.checks.registry import NoParams, check
from otelmon.checks.view import View
from otelmon.vocabulary.catalogue import Effect
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import Evidence, Severity

_EXTRAS = frozenset(("additionalProperties", "unevaluatedProperties"))
_MAX_TEXT = 4_000


@check(on="call")
def schema_violation(call: ToolCall, view: View, params: NoParams) -> Iterator[Evidence]:  # noqa: ARG001
    """The arguments of a call fail the JSON Schema of its tool, the published one or that of its server.

    Why it matters: a refused call costs a turn; one that a lenient server took may have done something
    else than was meant.
    """
    tool = view.tool(call)
    if tool is None or tool.input_schema is None or call.arguments is None:
        return
    if call.arguments_fidelity in ("redacted", "truncated", "hashed", "absent"):
        return
    try:
        found = _judged(call, tool.input_schema)
    except NotEvaluableError:
        return
    found = found or _refused(call)
    if not found:
        return
    shown = ", ".join(f"{v.path or 'arguments'}: {v.expected}" for v in found[:3])
    yield Evidence(
        summary=f"{call.tool_name} was called with arguments that break its schema: {shown}",
        anchor=call.key,
        span_ids=(call.span_id,),
        severity=_severity(call, found, view.effect(call).effect, tool.input_schema),
        details={
            "violations": [{"path": v.path, "keyword": v.keyword, "expected": v.expected} for v in found],
            "accepted": call.outcome == "succeeded",
            "outcome": call.outcome,
        },
    )


def _judged(call: ToolCall, schema: dict[str, Any]) -> list[Violation]:
    arguments = call.arguments
    if call.arguments_fidelity == "repaired" and isinstance(arguments, dict):
        # The model sent the object as a string inside a string; whoever recorded it unpacked it.
        return [] if call.outcome == "succeeded" else [_DOUBLE_ENCODED]
    found = violations(schema, arguments)
    if found and isinstance(arguments, str) and isinstance(_decoded(arguments), dict):
        return [_DOUBLE_ENCODED]
    if found and _recorders_fault(call) and _equal(call, schema):
        return []
    if call.outcome == "succeeded":
        # A parameter the server took is newer than the catalogue, not wrong.
        found = [v for v in found if v.keyword not in _EXTRAS]
    return found


def _refused(call: ToolCall) -> list[Violation]:
    """What the server's own validator says of arguments that the published schema allows."""
    if call.outcome != "failed":
        return []
    words = {"missing": "is required", "unknown": "is not known", "wrong": "is of another form"}
    named = refused_arguments(f"{call.error_message or ''}\n{(call.result_text or '')[:_MAX_TEXT]}", call.arguments)
    return [Violation("", "server", f"{each.path} {words[each.kind]}, says the server") for each in named]


def _recorders_fault(call: ToolCall) -> bool:
    """A recorder may write numbers or objects as text; the server that refused the call saw what was sent."""
    return call.arguments_fidelity == "decoded" and call.outcome not in ("failed", "denied")


_DOUBLE_ENCODED = Violation("", "type", 'the object is encoded as a JSON string; an "object" is expected')


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _equal(call: ToolCall, schema: dict[str, Any]) -> bool:
    """Whether nothing but the way of writing was wrong: `"5"` for 5."""
    try:
        return not violations(schema, lossless(call.arguments, schema))
    except NotEvaluableError:
        return False


def _severity(call: ToolCall, found: Sequence[Violation], effect: Effect, schema: dict[str, Any]) -> Severity:
    """Refused: the agent was told, low. Taken by the server although wrong: low too, unless something
    that can not be taken back landed, and landed as something else than was written. Not known: medium."""
    if effect == "destructive" and call.outcome in ("succeeded", "unknown"):
        return "low" if call.outcome == "succeeded" and _equal(call, schema) else "high"
    if _DOUBLE_ENCODED in found:
        return "medium"
    return "low" if call.outcome in ("failed", "denied", "succeeded") else "medium"
