"""What both doors call: decode, check, pack, publish, count, and only then acknowledge."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from otelmon.receive import otlp
from otelmon.receive.pack import Packed, PartitionOf
from otelmon.receive.signals import METRICS_NOT_STORED, Signal, count
from otelmon.vocabulary.config import ReceiveConfig
from otelmon.vocabulary.errors import InputError, UnreachableError

__all__ = ["Answer", "Intake", "Packed", "Receiver"]

RETRY_AFTER_S = 1
REQUESTS_IN_MEMORY = 4
"""Largest requests held at once; beyond it senders are told to come back."""

TOO_MANY = "too many requests at once, send the same again"


class Intake(msgspec.Struct, frozen=True, kw_only=True):
    """The account of one request. `received` = published + sum(`rejected`) + sum(`filtered`), in spans, log
    records or data points; filtered are log records that say nothing of any span. `refused` is the reason a whole request was not taken ("busy": the sender comes back),
    else "". `body_bytes` is the size after decompression, `repaired` counts texts that were not Unicode."""

    signal: Signal
    received: int = 0
    rejected: dict[str, int] = {}
    filtered: dict[str, int] = {}
    refused: str = ""
    body_bytes: int = 0
    repaired: int = 0
    observed_unix_nano: int


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a door tells the sender: `accepted` (perhaps not every span: `rejected`, `message`),
    `refused` for good (`reason`), or `busy`: nothing was taken, send the same again."""

    outcome: Literal["accepted", "refused", "busy"]
    signal: Signal = "traces"
    rejected: int = 0
    reason: str = ""
    message: str = ""


Publish = Callable[[Sequence[Packed], int], None]
OnAccount = Callable[[Intake], None]
Redact = Callable[[Any], Any]


class Receiver:
    """Turns request bodies into durable messages. Used by many threads at once.

    `publish(messages, received_unix_nano)` returns when they are durable and raises UnreachableError
    or OSError when they can not be kept now. `now()` is nanoseconds since the epoch, read once a
    request. `on_account` is called for every request, after publishing and before the answer.
    `redact` takes and gives an ExportTraceServiceRequest or ExportLogsServiceRequest; nothing is published that has not passed it.
    """

    def __init__(
        self,
        config: ReceiveConfig,
        publish: Publish,
        partition_of: PartitionOf,
        now: Callable[[], int],
        on_account: OnAccount,
        redact: Redact | None = None,
    ) -> None:
        self.config = config
        self._publish = publish
        self._partition_of = partition_of
        self._now = now
        self._on_account = on_account
        self._redact = redact
        self.room = Room(REQUESTS_IN_MEMORY * config.max_request_bytes)

    def accept(self, body: bytes, content_type: str, signal: Signal = "traces") -> Answer:
        """Take one request body, not compressed. What is answered `accepted` is durable."""
        received_at = self._now()
        if not self.room.take(len(body)):
            return self.busy(signal, TOO_MANY)
        try:
            answer, intake = self._take(body, content_type, signal, received_at)
            self._on_account(intake)
        except InputError as error:
            return self.refuse(error, signal, len(body))
        except (UnreachableError, OSError) as error:
            return self.busy(signal, f"not taken, send the same again: {error}")
        finally:
            self.room.give(len(body))
        return answer

    def busy(self, signal: Signal, message: str) -> Answer:
        """Count and answer a request that the sender must send again."""
        self._count(Intake(signal=signal, refused="busy", observed_unix_nano=self._now()))
        return Answer(outcome="busy", signal=signal, reason="busy", message=message)

    def refuse(self, error: InputError, signal: Signal, body_bytes: int = 0) -> Answer:
        """Count and answer a request that is wrong as a whole."""
        self._count(Intake(signal=signal, refused=error.reason, body_bytes=body_bytes, observed_unix_nano=self._now()))
        return Answer(outcome="refused", signal=signal, reason=error.reason, message=str(error))

    def _count(self, intake: Intake) -> None:
        try:
            self._on_account(intake)
        except (UnreachableError, OSError):
            return  # no span was taken: the answer stands, and the account of spans stays right

    def _take(self, body: bytes, content_type: str, signal: Signal, received_at: int) -> tuple[Answer, Intake]:
        if signal == "metrics":
            number = count(body, content_type)
            rejected = {"unsupported_signal": number} if number else {}
            answer = Answer(outcome="accepted", signal=signal, rejected=number, message=METRICS_NOT_STORED)
            intake = Intake(signal=signal, received=number, rejected=rejected, observed_unix_nano=received_at)
            return answer, intake
        shape = otlp.LOGS if signal == "logs" else otlp.TRACES
        parsed = otlp.read(body, content_type, self.config, shape)
        request, encoded = parsed.request, parsed.encoded
        if self._redact:
            request, encoded = self._redact(request), None
        messages = otlp.messages(request, self._partition_of, self.config.message_bytes, encoded, shape)
        if messages:
            self._publish(messages, received_at)
        number = sum(parsed.rejected.values())
        answer = Answer(outcome="accepted", signal=signal, rejected=number, message=parsed.message)
        intake = Intake(
            signal=signal,
            received=parsed.received,
            rejected=parsed.rejected,
            filtered=parsed.filtered,
            body_bytes=len(body),
            repaired=parsed.repaired,
            observed_unix_nano=received_at,
        )
        return answer, intake


class Room:
    """A bound on bytes held, shared by threads."""

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        """Hold so many bytes; False when there is no room."""
        with self._lock:
            if size > self._left:
                return False
            self._left -= size
            return True

    def give(self, size: int) -> None:
        """Let go of bytes that were taken."""
        with self._lock:
            self._left += size
