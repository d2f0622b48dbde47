"""What is known of a call's effect when it returns or raises. Never claims more than is known."""

from __future__ import annotations

import asyncio
import concurrent.futures
from typing import Any

import msgspec

# Words of the wire (`otelmon.call.outcome`).
COMPLETED, FAILED, DENIED = "completed", "failed", "denied"
TIMEOUT, CANCELLED, NOT_STARTED, PENDING = "timeout_unknown", "cancelled_unknown", "not_started", "pending"


class NotStarted(Exception):
    """Raise from a tool when the request certainly never left: repeating it is safe."""


class Denied(Exception):
    """Raise from a tool when a person or a policy refused the call."""


class Pending(msgspec.Struct, frozen=True):
    """Return from a tool whose effect is still under way, around what the model is to see."""

    result: Any


class Outcome(msgspec.Struct, frozen=True):
    """`outcome` and `source` as they go on the wire; `error_type` for `error.type`, None when none."""

    outcome: str
    source: str
    error_type: str | None = None


def of_result(result: object) -> Outcome:
    """The outcome of a call that returned."""
    return Outcome(PENDING if isinstance(result, Pending) else COMPLETED, "return")


def of_exception(error: BaseException) -> Outcome:
    """The outcome of a call that raised. A timeout or a cancellation says nothing about the effect."""
    name = type(error).__name__
    if isinstance(error, NotStarted | ConnectionRefusedError):
        return Outcome(NOT_STARTED, "exception", name)
    if isinstance(error, Denied):
        return Outcome(DENIED, "exception", name)
    if isinstance(
        error, asyncio.CancelledError | concurrent.futures.CancelledError | KeyboardInterrupt | GeneratorExit
    ):
        return Outcome(CANCELLED, "exception", name)
    if _is_timeout(error):
        return Outcome(TIMEOUT, "client_timeout", "timeout")
    return Outcome(FAILED, "exception", name)


def _is_timeout(error: BaseException) -> bool:
    """Every client library has a timeout class of its own; most do not derive from TimeoutError. A
    timeout while connecting is still only a timeout: the request may have been queued."""
    if isinstance(error, TimeoutError):
        return True
    return any("timeout" in base.__name__.lower() for base in type(error).__mro__)
