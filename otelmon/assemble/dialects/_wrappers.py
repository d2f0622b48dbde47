"""Wrappers that instrumentations put around the arguments of a call."""

from __future__ import annotations

from typing import Any

import msgspec

from otelmon.assemble.dialects._fields import call_id_of
from otelmon.assemble.values import Decoded, decode_arguments

_CALL_KEYS = {"args", "kwargs", "sanitize_inputs_outputs"}
_CHAIN_KEYS = {"input_str", "inputs", "tags", "metadata", "kwargs"}
_STARTS = ('{"args"', '{"kwargs"', '{"input_str"', '{"inputs"', '{"tool_name"')


def unwrap(decoded: Decoded) -> tuple[Decoded, str | None]:
    """(arguments without their wrapper, call id when the wrapper holds one).

    Shapes: `{args, kwargs}` of a decorated function, `{input_str, inputs, kwargs}` of LangChain,
    `{tool_name, arguments}` of MCP. A wrapper that can not be decoded was cut on its way: the model
    never wrote it.
    """
    value = decoded.value
    if value is None and decoded.text is not None and decoded.text.lstrip().startswith(_STARTS):
        return msgspec.structs.replace(decoded, fidelity="truncated"), None
    if not isinstance(value, dict):
        return decoded, None
    keys = value.keys()
    if keys <= _CHAIN_KEYS and ("inputs" in keys or "input_str" in keys):
        kwargs = value.get("kwargs")
        return _chain(value), call_id_of(kwargs.get("tool_call_id")) if isinstance(kwargs, dict) else None
    if keys <= _CALL_KEYS and isinstance(value.get("kwargs"), dict) and isinstance(value.get("args", []), list):
        return _call(value.get("args", []), value["kwargs"]), None
    if keys == {"tool_name", "arguments"}:
        return _outside(decode_arguments(value["arguments"])), None
    return decoded, None


def _outside(decoded: Decoded) -> Decoded:
    """What came out of a wrapper is at best "decoded"."""
    return msgspec.structs.replace(decoded, fidelity="decoded") if decoded.fidelity == "exact" and decoded.value is not None else decoded  # fmt: skip


def _chain(value: dict[str, Any]) -> Decoded:
    inputs = value.get("inputs")
    if inputs is not None:
        return _outside(decode_arguments(inputs, scalar=True))
    return _outside(decode_arguments(value.get("input_str"), scalar=True))


def _call(positional: list[Any], named: dict[str, Any]) -> Decoded:
    if not positional:
        return Decoded(named, None, "decoded")
    if named:
        return Decoded(named | {"args": positional}, None, "decoded")
    if len(positional) > 1:
        return Decoded(positional, None, "decoded")
    only = positional[0]
    if isinstance(only, str) and only.lstrip()[:1] not in ("{", "[", '"'):
        return Decoded(only, None, "decoded")
    return _outside(decode_arguments(only))
