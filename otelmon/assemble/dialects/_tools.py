"""A tool span's call, from the raw values that a dialect picked."""

from __future__ import annotations

from typing import Any

import msgspec

from otelmon.assemble.dialects._errors import error_message, error_type, signals
from otelmon.assemble.dialects._fields import call_id_of, canonical_name, value_limit, was_cut
from otelmon.assemble.dialects._messages import langchain_fields, opened
from otelmon.assemble.values import (
    JSON_START,
    Decoded,
    IncompleteError,
    compact,
    decode_arguments,
    decode_payload,
    ends_in_cut_marker,
    hidden,
    parse_json,
    plain,
)
from otelmon.vocabulary.reading import Fidelity, ToolFields
from otelmon.vocabulary.span import Span


class Result(msgspec.Struct, frozen=True):
    """A tool result: the text the model saw, its decoded payload, and what its wrapper said."""

    text: str | None = None
    value: Any = None
    fidelity: Fidelity = "absent"
    is_error: bool | None = None
    call_id: str | None = None


def arguments(span: Span, raw: Any, scalar: bool = False) -> Decoded:
    """Arguments of a tool span. Absent ones count as cut when the span lost attributes."""
    if raw is None:
        return Decoded(None, None, "truncated" if span.dropped_attributes_count else "absent")
    decoded = decode_arguments(raw, scalar=scalar)
    undecoded = decoded.value is None and decoded.text is not None and decoded.fidelity == "exact"
    if undecoded and isinstance(raw, str) and was_cut(span, raw):
        return decode_arguments(raw, cut=True, scalar=scalar)
    return decoded


def result(span: Span, raw: Any) -> Result:
    """The result of a tool span, unwrapped."""
    if raw is None:
        return Result(fidelity="truncated" if span.dropped_attributes_count else "absent")
    if isinstance(raw, bytes | bytearray):
        raw = bytes(raw).decode("utf-8", "replace")
    if not isinstance(raw, str):
        return _opened(plain(raw), None)
    stand_in = hidden(raw)
    if stand_in:
        return Result(raw, None, stand_in)
    try:
        value = parse_json(raw) if raw[:1] in JSON_START else None
    except IncompleteError:
        return Result(raw, None, "truncated" if was_cut(span, raw) else "exact")
    except ValueError:
        if raw[:1] in ("{", "[") and ends_in_cut_marker(raw):
            return Result(raw, None, "truncated")
        value = decode_payload(raw)
    if value is None and len(raw) == value_limit(span):
        return Result(raw, None, "truncated")
    if isinstance(value, str):
        return Result(value, decode_payload(value), "decoded")
    return _opened(value, raw)


def _opened(value: Any, raw: str | None) -> Result:
    """A decoded result without its wrapper; `raw` is the text it came from, None if structured."""
    wrapped = opened(value)
    if wrapped is None:
        return Result(compact(value) if raw is None else raw, value, "exact")
    text, failed = wrapped
    message = langchain_fields(value)
    call_id = None if message is None else call_id_of(message.get("tool_call_id"))
    inner = value.get("structuredContent") if isinstance(value, dict) else None
    return Result(text, decode_payload(text) if inner is None else inner, "decoded", failed, call_id)


def fields(
    span: Span,
    raw_name: str,
    *,
    name: str | None = None,
    call_id: str | None = None,
    called: Decoded,
    returned: Result,
    server: str | None = None,
    description: str = "",
    extra: tuple[str, ...] = (),
) -> ToolFields:
    """Everything a tool span says of its call, signals of trouble included."""
    tool, prefix = canonical_name(name if name is not None else raw_name)
    marks = (*extra, "is_error") if returned.is_error else extra
    failed = error_type(span)
    return ToolFields(
        name=tool,
        raw_name=raw_name,
        call_id=call_id or returned.call_id,
        arguments=called.value,
        arguments_text=called.text,
        arguments_fidelity=called.fidelity,
        result=returned.value,
        result_text=returned.text,
        result_fidelity=returned.fidelity,
        error_type=failed,
        error_message=error_message(span),
        signals=signals(span, failed, returned.text, marks),
        server=server or prefix,
        description=description,
    )
