"""Canonical JSON (RFC 8785) and the hashes made from it."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import rfc8785


def canonical(value: Any) -> bytes:
    """RFC 8785 bytes of a JSON value.

    Values RFC 8785 can not carry (integers beyond 2^53, NaN, non-string keys, lone surrogates)
    fall back to sorted-key JSON text that keeps them apart; the result is always deterministic.
    """
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeError, RecursionError):
        pass
    try:
        return b"x" + msgspec.json.encode(value, order="deterministic")
    except (UnicodeError, TypeError, ValueError, RecursionError):
        return b"r" + repr(value).encode("utf-8", "backslashreplace")


def sha256(value: Any) -> str:
    """`sha256:<hex>` over the canonical JSON of a value."""
    return "sha256:" + hashlib.sha256(canonical(value)).hexdigest()


def short_hash(*parts: str) -> str:
    """32 hex characters over the parts; for ids."""
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
