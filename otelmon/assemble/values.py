"""Decode what instrumentations write: JSON in JSON, Python reprs, wrappers, cut and hidden content.

Nothing here knows an attribute key. Every function takes untrusted values and raises nothing but
what it names.
"""

from __future__ import annotations

import ast
import json
import math
import re
import warnings
from typing import Any

import msgspec

from otelmon.vocabulary.reading import Fidelity

MAX_DEPTH = 64
MAX_LAYERS = 3
MAX_REPR_BYTES = 64 * 1024

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder(order="sorted").encode
_pack = msgspec.msgpack.Encoder().encode
_REDACTED = re.compile(
    r"^\s*(?:[\[<_(*]{1,2}\s*(?:redacted|scrubbed)(?![a-z])[^{}\n]{0,80}[\]>_)*]|redacted)\s*$", re.IGNORECASE
)
_STARS = re.compile(r"^\*{3,}$")
_HASHED = re.compile(r"^(hmac-)?sha256:[0-9a-f]{16,64}$")
_CUT = re.compile(r"(\.\.\.|…|[\[<(][^\[\]<>()]{0,20}truncated[^\[\]<>()]{0,40}[\]>)])\s*$", re.IGNORECASE)
JSON_START = frozenset('{["-0123456789tfn')


class IncompleteError(ValueError):
    """JSON that ends too early: cut, by somebody."""


class TooDeepError(ValueError):
    """JSON nested deeper than we read."""


class Decoded(msgspec.Struct, frozen=True):
    """A decoded value. `text` is what could not be decoded, or what a repair came from."""

    value: Any = None
    text: str | None = None
    fidelity: Fidelity = "absent"


def parse_json(text: str) -> Any:
    """The JSON value in `text`, integers exact (see `whole`). Raises IncompleteError, TooDeepError or ValueError."""
    try:
        value = _decode(text)
    except RecursionError:
        raise TooDeepError("nested too deep") from None
    except (msgspec.DecodeError, UnicodeError) as error:
        value = _parse_slowly(text, str(error))
    if text.count("{") + text.count("[") > MAX_DEPTH and depth_of(value) > MAX_DEPTH:
        raise TooDeepError("nested too deep")
    try:
        _pack(value)
    except OverflowError:
        return plain(value)
    return value


def shallow(text: str) -> Any:
    """As `parse_json` for text that is nested too deep: "[too deep]" stands where we stop reading, so that what lies
    beside it is not lost. None when not even the fast reader gets to the end."""
    try:
        return plain(_decode(text))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _parse_slowly(text: str, first_error: str) -> Any:
    """The standard library's reader for what the fast one refuses: NaN, 1e400, lone surrogates."""
    try:
        return plain(json.loads(text, parse_constant=str))
    except RecursionError:
        raise TooDeepError("nested too deep") from None
    except ValueError:
        if "truncated" in first_error:
            raise IncompleteError(first_error) from None
        raise ValueError(first_error) from None


def depth_of(value: Any) -> int:
    """Nesting of lists and objects; stops counting a little beyond MAX_DEPTH."""
    level: list[Any] = [value]
    depth = 0
    while level and depth <= MAX_DEPTH + 1:
        inner: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(item.values())
            elif isinstance(item, list):
                inner.extend(item)
        depth += any(isinstance(item, dict | list) for item in level)
        level = inner
    return depth


def plain(value: Any, depth: int = 0) -> Any:
    """A value made of JSON types only: text keys, no tuples, sets, bytes, NaN or lone surrogates."""
    if isinstance(value, str):
        return clean_text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return whole(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if depth > MAX_DEPTH:
        return "[too deep]"
    if isinstance(value, dict):
        return {clean_text(k) if isinstance(k, str) else str(k): plain(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v, depth + 1) for v in value]
    if isinstance(value, set | frozenset):
        return sorted((plain(v, depth + 1) for v in value), key=repr)
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", "replace")
    return repr(value)


def whole(value: int) -> int | str:
    """An integer that the bus can carry; beyond 64 bits its digits as text, so that it stays exact."""
    return int(value) if -(2**63) <= value < 2**64 else _digits(value)


def _digits(value: int) -> str:
    try:
        return str(value)
    except ValueError:  # Python writes no number of more than 4,300 digits
        return hex(value)


def clean_text(text: str) -> str:
    """Text that is valid UTF-8: surrogate pairs joined, lone surrogates replaced."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def compact(value: Any) -> str:
    """Compact JSON text of a plain value, keys as they came."""
    return msgspec.json.encode(value).decode()


def stable_bytes(value: Any) -> bytes:
    """Bytes that are equal for equal plain values (keys sorted); much faster than RFC 8785, used
    where the hash never leaves the pipeline."""
    return _encode(value)


def parse_repr(text: str) -> Any:
    """The value of a Python literal of at most 64 KB. Raises ValueError."""
    stripped = text.strip()
    if len(stripped) > MAX_REPR_BYTES or stripped[:1] not in ("{", "[", "(", "'"):
        raise ValueError("not a literal")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = ast.literal_eval(stripped)
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError("not a literal") from error
    return plain(value)


def hidden(text: str) -> Fidelity | None:
    """ "redacted" or "hashed" when the producer put a stand-in in place of the content."""
    if len(text) > 120:
        return None
    if _HASHED.match(text):
        return "hashed"
    if _REDACTED.match(text) or _STARS.match(text):
        return "redacted"
    return None


def ends_in_cut_marker(text: str) -> bool:
    """True when a producer marked that it cut the text."""
    return bool(_CUT.search(text[-80:]))


def looks_cut(text: str, others: list[int], dropped: int) -> bool:
    """Whether a telemetry limit, not the model, cut this text.

    `others` are the lengths of all text attributes of the span: a value-length limit leaves none
    longer than the cut one, and limits are round numbers or hit several attributes at once.
    """
    if ends_in_cut_marker(text) or dropped > 0:
        return True
    size = len(text)
    if size < 32 or any(other > size for other in others):
        return False
    return others.count(size) > 1 or any(is_round(n) for n in (size, len(text.encode("utf-8", "replace"))))


def is_round(size: int) -> bool:
    """A number that people choose as a limit: a power of two (less one), or hundreds."""
    return size & (size - 1) == 0 or size & (size + 1) == 0 or size % 100 == 0 or size % 1024 == 0


def decode_arguments(raw: Any, *, cut: bool = False, scalar: bool = False) -> Decoded:
    """Arguments as written by a dialect: a structured value, or text that holds JSON.

    One layer of JSON is the wire's; a second one that opens to a value was added by the model and
    makes the fidelity "repaired", with the text kept. Text that opens to nothing is kept with the
    value None: fidelity "exact" (the model broke it), or "truncated" when `cut` says that a limit
    did. `scalar`: this dialect writes a lone argument bare, so such text is the value itself.
    """
    if raw is None:
        return Decoded()
    if isinstance(raw, bytes | bytearray):
        raw = bytes(raw).decode("utf-8", "replace")
    if not isinstance(raw, str):
        return Decoded(plain(raw), None, "exact")
    stand_in = hidden(raw)
    if stand_in:
        return Decoded(None, raw, stand_in)
    if not raw.strip():
        return Decoded({}, None, "decoded")
    return _decode_text(raw, cut, scalar)


def _decode_text(raw: str, cut: bool, scalar: bool) -> Decoded:
    try:
        value = parse_json(raw)
    except TooDeepError:
        return Decoded(None, raw, "truncated")
    except IncompleteError:
        return _undecoded(raw, "truncated" if cut else "exact", scalar)
    except ValueError:
        return _undecoded(raw, "truncated" if cut and ends_in_cut_marker(raw) else "exact", scalar)
    if value is None:
        return Decoded({}, None, "decoded")
    if not isinstance(value, str) or raw.lstrip()[:1] != '"':  # a number beyond 64 bits is its digits, not a text
        return Decoded(value, None, "exact")
    return _open_layers(raw, value, scalar)


def _open_layers(raw: str, value: str, scalar: bool) -> Decoded:
    inner: Any = value
    for _ in range(MAX_LAYERS - 1):
        try:
            inner = parse_json(inner)
        except ValueError:
            break
        if not isinstance(inner, str):
            break
    if isinstance(inner, dict | list):
        return Decoded(inner, raw, "repaired")
    return Decoded(value, None if scalar else raw, "decoded" if scalar else "exact")


def _undecoded(raw: str, fidelity: Fidelity, scalar: bool) -> Decoded:
    if fidelity == "truncated":
        return Decoded(None, raw, "truncated")
    try:
        return Decoded(parse_repr(raw), None, "decoded")
    except ValueError:
        pass
    if scalar and raw.lstrip()[:1] not in ("{", "["):
        return Decoded(raw, None, "decoded")
    return Decoded(None, raw, fidelity)


def decode_payload(text: str) -> Any:
    """The JSON (or Python repr) object in a result's text, up to three layers; None when the text
    is just text."""
    value: Any = text
    for _ in range(MAX_LAYERS):
        if not isinstance(value, str) or value.lstrip()[:1] not in JSON_START:
            break
        try:
            value = parse_json(value)
        except IncompleteError:
            break
        except ValueError:
            try:
                value = parse_repr(value)
            except ValueError:
                break
    return None if value is text else value


def bind(arguments: Any, schema: dict[str, Any] | None) -> Any:
    """Positional arguments given their names: a bare scalar when the tool has one property, a list
    when it has at least as many. Anything else is returned as it is."""
    if schema is None or isinstance(arguments, dict) or arguments is None:
        return arguments
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not properties:
        return arguments
    names = list(properties)
    if isinstance(arguments, list):
        return dict(zip(names, arguments, strict=False)) if 0 < len(arguments) <= len(names) else arguments
    return {names[0]: arguments} if len(names) == 1 else arguments
