"""Arguments that are no JSON."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from otelmon.checks.lib.requests import request_of
from otelmon.checks.registry import NoParams, check
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import Evidence
from otelmon.vocabulary.reading import Fidelity

_TELEMETRY = ("truncated", "redacted", "hashed")
# Lengths at which recorders cut attribute values.
_LIMITS = frozenset((128, 255, 256, 500, 512, 1000, 1024, 2000, 2048, 4000, 4095, 4096, 8000, 8192, 10_000, 12_000,
                     16_000, 16_384, 32_000, 32_768, 65_535, 65_536, 100_000))  # fmt: skip


@check(on="call")
def unparseable_arguments(call: ToolCall, view: View, params: NoParams) -> Iterator[Evidence]:  # noqa: ARG001
    """The model's arguments could not be read as JSON.

    Why it matters: a framework then refuses the call, or runs it with no arguments at all.
    """
    text, where = _broken_text(call, view)
    if text is None or (call.outcome == "succeeded" and where == "call"):
        return
    kind = _kind(text)
    yield Evidence(
        summary=f"the arguments of {call.tool_name} are not JSON: {kind}",
        anchor=call.key,
        span_ids=(call.span_id,),
        details={"kind": kind, "where": where, "length": len(text), "outcome": call.outcome},
    )


def _broken_text(call: ToolCall, view: View) -> tuple[str | None, str]:
    """The text that could not be decoded, and whether the call or only the model's request shows it."""
    if call.arguments is None and _is_models_fault(call.arguments_text, call.arguments_fidelity):
        return call.arguments_text, "call"
    if isinstance(call.arguments, str) and _past_repair(call.arguments):
        return call.arguments, "call"
    if call.arguments in (None, {}):  # many frameworks run a broken call with nothing
        request = request_of(call, view)
        if (
            request
            and request.arguments is None
            and _is_models_fault(request.arguments_text, request.fidelity)
            and not _is_complete(request.arguments_text)
        ):
            return request.arguments_text, "request"
    return None, ""


def _is_models_fault(text: str | None, fidelity: Fidelity) -> bool:
    if not text or not text.strip() or fidelity in _TELEMETRY or len(text) in _LIMITS:
        return False
    return text.lstrip()[0] in "{[\"'`" or not text.isprintable() or "{" in text


def _is_complete(text: str | None) -> bool:
    try:
        msgspec.json.decode(text or "")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True


def _past_repair(text: str) -> bool:
    """Text that begins like an encoded object but does not decode to one."""
    return text.lstrip()[:1] in ("{", "[", '"') and not _is_complete(text)


def _kind(text: str) -> str:
    stripped = text.strip()
    if stripped[:1] == '"':
        return "encoded twice, past repair"
    if stripped.count("{") > stripped.count("}") or stripped.count("[") > stripped.count("]"):
        return "cut before its end"
    if stripped.count('"') % 2:
        return "an open quotation"
    return "broken"
