"""What of a call's content goes on the wire: everything, hashes, or nothing."""

from __future__ import annotations

import hashlib
import hmac
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from otelmon.vocabulary.canonical import canonical

Level = Literal["full", "hash", "none"]
Redact = Callable[[str, Any], Any]


class Capture(msgspec.Struct, frozen=True):
    """`level` full: values as they are; hash: only hashes, enough to see repeats; none: neither.
    `key` makes the hashes keyed (HMAC), so that short values can not be guessed from them.
    `redact(argument name, value)` may replace a value before anything is written."""

    level: Level = "full"
    key: bytes = b""
    redact: Redact | None = None

    def arguments(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """JSON data of the arguments, redacted."""
        redact = self.redact
        return {name: plain(redact(name, value) if redact else value) for name, value in values.items()}

    def digest(self, value: Any) -> str:
        """`sha256:<hex>` (or `hmac-sha256:<hex>`) over the canonical JSON of a value."""
        data = canonical(value)
        if self.key:
            return "hmac-sha256:" + hmac.new(self.key, data, hashlib.sha256).hexdigest()
        return "sha256:" + hashlib.sha256(data).hexdigest()


def plain(value: Any) -> Any:
    """Any Python value as JSON data; what JSON can not carry becomes its repr."""
    try:
        return msgspec.to_builtins(value, enc_hook=repr, str_keys=True)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def text(value: Any) -> str:
    """JSON text of JSON data. Text that UTF-8 can not carry is replaced, not refused."""
    try:
        return msgspec.json.encode(value).decode()
    except (UnicodeError, TypeError, ValueError):
        return repr(value).encode("utf-8", "replace").decode()


def input_schema(function: Callable[..., Any]) -> dict[str, Any]:
    """JSON Schema of a function's parameters, from its annotations. Parameters whose type has no
    schema are named without one."""
    properties: dict[str, Any] = {}
    required = []
    hints = _hints(function)
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        properties[name] = _schema_of(hints.get(name, Any))
        if parameter.default is parameter.empty:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required}


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return inspect.get_annotations(function, eval_str=True)
    except (NameError, TypeError, SyntaxError):
        return {}


def _schema_of(annotation: Any) -> dict[str, Any]:
    try:
        (schema,), components = msgspec.json.schema_components([annotation], ref_template="#/$defs/{name}")
    except (TypeError, ValueError):
        return {}
    return {**schema, "$defs": components} if components else schema
