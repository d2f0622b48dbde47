"""What a bus refuses, by name: intake that must wait, and a message that can never fit."""

from __future__ import annotations

from otelmon.vocabulary.errors import OtelmonError, Problem, UnreachableError


class BackpressureError(UnreachableError):
    """Nothing of this publish was acknowledged; the same messages may be published again later."""

    retriable = True


class RecordTooLargeError(OtelmonError):
    """A message beyond the bus's limit: publishing it again can not help. `reason` is the counter's word."""

    reason = "record_too_large"
    retriable = False


def disk_low(folder: str, free: int, wanted: int) -> BackpressureError:
    """The disk of the spool has less free space (bytes) than intake keeps back."""
    return BackpressureError(
        Problem(
            folder,
            f"{free} bytes are free on this disk",
            f"at least {wanted} (spool.min_free_bytes)",
            "free space or let the stages catch up; senders are told to retry",
        )
    )


def disk_failed(folder: str, error: OSError) -> BackpressureError:
    """The disk refused a write (full, quota, file size limit, I/O error); what was written was taken back."""
    return BackpressureError(
        Problem(folder, f"the disk refused a write ({error.strerror})", "space to append", "free space, then retry")
    )


def record_too_large(topic: str, size: int, limit: int, setting: str) -> RecordTooLargeError:
    """A message of `size` bytes where `limit` is the most."""
    return RecordTooLargeError(
        Problem(
            topic, f"a message of {size} bytes", f"at most {limit} ({setting})", f"send less at once or raise {setting}"
        )
    )
