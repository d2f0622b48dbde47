"""When two calls mean the same effect: business arguments, effect key, idempotency key."""

from __future__ import annotations

import hashlib
import math
import re
from decimal import Decimal
from functools import lru_cache
from typing import Any

import msgspec

from otelmon.checks.lib.verbs import words
from otelmon.vocabulary.canonical import canonical
from otelmon.vocabulary.catalogue import Tool
from otelmon.vocabulary.event import ToolCall

_KEY_NAMES = words("""idempotencykey idempotencytoken idempotentkey idempotency xidempotencykey requestid clientrequestid clienttoken
    clientrequesttoken clientreference dedupekey dedupeid dedupkey dedupid deduplicationid deduplicationkey
    messagededuplicationid transactionkey""")
_VOLATILE_NAMES = _KEY_NAMES | words("""correlationid traceid traceparent spanid nonce clienttimestamp requesttimestamp requesttime requestedat clienttime
    attempt attempts retry retrycount retries toolcallid callid meta thought thoughts reasoning chainofthought""")
_MASKED = re.compile(
    r"^[\[<({*_]*\s*(redacted|masked|filtered|hidden|removed)\s*[\])}>*_]*$|^\*{3,}$|^[xX•█]{4,}$", re.I
)
_NUMBER = re.compile(r"^[+-]?\d{1,30}(\.\d{1,30})?$")
_MAX_DEPTH = 32


@lru_cache(maxsize=4096)
def plain_name(name: str) -> str:
    """An argument name without case and separators."""
    return re.sub(r"[\W_]+", "", name).lower()


@lru_cache(maxsize=4096)
def is_volatile(name: str) -> bool:
    """True for an argument that differs between two sendings of one effect."""
    return plain_name(name) in _VOLATILE_NAMES


def business_arguments(call: ToolCall, tool: Tool | None) -> dict[str, object]:
    """The arguments that say what the effect is: all but volatile ones and the idempotency key;
    `identity` of the catalogue wins. Numbers normalised, nulls left out."""
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    schema = tool.input_schema if tool else None
    if tool and tool.identity is not None:
        chosen = {k: arguments[k] for k in tool.identity if k in arguments}
    else:
        left_out = set(tool.volatile) if tool else set()
        if tool and tool.idempotency_key and tool.idempotency_key.argument:
            left_out.add(tool.idempotency_key.argument)
        chosen = {k: v for k, v in arguments.items() if k not in left_out and not is_volatile(k)}
    properties = schema.get("properties") if isinstance(schema, dict) else None
    types = properties if isinstance(properties, dict) else {}
    return {k: _normal(v, types.get(k), 0) for k, v in chosen.items() if v is not None}


def _normal(value: Any, schema: Any, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        return value
    if isinstance(value, dict):
        properties = schema.get("properties") if isinstance(schema, dict) else None
        inner = properties if isinstance(properties, dict) else {}
        return {k: _normal(v, inner.get(k), depth + 1) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        items = schema.get("items") if isinstance(schema, dict) else None
        return [_normal(v, items, depth + 1) for v in value]
    return _normal_scalar(value, schema)


def _normal_scalar(value: Any, schema: Any) -> Any:
    if isinstance(value, str):
        wanted = schema.get("type") if isinstance(schema, dict) else None
        if wanted in ("number", "integer") and _NUMBER.match(value.strip()):
            return _number(value.strip())
        return value
    if isinstance(value, float):
        return int(value) if math.isfinite(value) and value.is_integer() and abs(value) < 2**53 else value
    return value


def _number(text: str) -> int | float:
    exact = Decimal(text)
    return int(exact) if exact == exact.to_integral_value() else float(exact)


def comparable(call: ToolCall) -> bool:
    """True when the recorded arguments can be told equal or different from another call's."""
    if call.arguments_fidelity in ("truncated", "absent"):
        return False
    if call.arguments_fidelity == "hashed":
        return bool(call.arguments_hash)
    if call.arguments is None and not call.arguments_text:
        return False
    return not (call.arguments_fidelity == "redacted" and _any_masked(call.arguments, 0))


def _any_masked(value: Any, depth: int) -> bool:
    if isinstance(value, str):
        return bool(_MASKED.match(value.strip()))
    if depth > _MAX_DEPTH:
        return False
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_any_masked(v, depth + 1) for v in inner)


def effect_key(call: ToolCall, business: dict[str, object]) -> str:
    """Hash of scope (environment, namespace, server) + tool + canonical business arguments. Of a call
    whose arguments can not be compared it is a key of its own."""
    what: Any
    if not comparable(call):
        what = ["only", call.key]
    elif call.arguments_fidelity == "hashed":
        what = ["hash", call.arguments_hash]
    elif isinstance(call.arguments, dict):
        what = business
    else:
        what = ["text", call.arguments if call.arguments is not None else call.arguments_text]
    scope = f"{call.environment}\x1f{call.service_namespace}\x1f{call.server or ''}\x1f{call.tool_name}\x1f"
    return "sha256:" + hashlib.sha256(scope.encode("utf-8", "surrogatepass") + _canonical(what)).hexdigest()


def _canonical(value: Any) -> bytes:
    """RFC 8785 bytes. Many times faster where the quick encoder is known to write the same: no fractions,
    no long numbers, no escaped control characters, nothing beyond ASCII."""
    if _has_plain_numbers(value):
        try:
            text = _encoder.encode(value)
        except (TypeError, ValueError, UnicodeError):
            return canonical(value)
        if text.isascii() and b"\\u" not in text:
            return text
    return canonical(value)


_encoder = msgspec.json.Encoder(order="deterministic")


def _has_plain_numbers(value: Any) -> bool:
    if isinstance(value, str | bool) or value is None:
        return True
    if isinstance(value, int):
        return -(2**53) < value < 2**53
    if isinstance(value, dict):
        return all(isinstance(k, str) and _has_plain_numbers(v) for k, v in value.items())
    return isinstance(value, list) and all(map(_has_plain_numbers, value))


def idempotency_key_of(call: ToolCall, tool: Tool | None) -> str | None:
    """The idempotency key the call was sent with: said by the shim, in the argument the catalogue
    names, in an argument with a well-known name, or in the headers of its HTTP requests (the same
    in each of them)."""
    if call.idempotency_key:
        return call.idempotency_key
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    named = tool.idempotency_key.argument if tool and tool.idempotency_key else None
    for name, value in arguments.items():
        if (
            (name == named or plain_name(name) in _KEY_NAMES)
            and isinstance(value, str | int)
            and value not in ("", None)
        ):
            return str(value)
    headers = {request.idempotency_key for request in call.http}
    return headers.pop() if len(headers) == 1 else None
