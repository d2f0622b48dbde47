"""Counting what is refused or left out, by a reason from a closed set, with one example of each for the sender."""

from __future__ import annotations

from otelmon.vocabulary.errors import InputError, Problem

SPAN_REASONS = (
    "invalid_trace_id",
    "invalid_span_id",
    "invalid_parent_span_id",
    "invalid_time",
    "invalid_value",
    "invalid_span",
    "invalid_resource",
    "resource_too_large",
    "span_too_large",
    "too_deep",
)
"""Why one span is refused; its neighbours are kept."""

FILTERED_REASONS = ("no_agent_content", "no_trace_context")
"""Why a log record is left out: it says nothing of a span (no trace id and span id), or nothing of an agent."""

REQUEST_REASONS = (
    "busy",
    "disconnected",
    "invalid_compression",
    "invalid_json",
    "invalid_protobuf",
    "timeout",
    "too_deep",
    "too_large",
    "unauthenticated",
    "unknown_format",
    "unsupported_encoding",
    "unsupported_signal",
    "unsupported_type",
)
"""Why a request, a file or a line is refused as a whole; `busy` is for now only."""


class Tally:
    """Refused spans of one request by reason, the first example of each, and how many spans came."""

    def __init__(self, max_spans: int = 1 << 62, noun: str = "spans") -> None:
        self._max_spans = max_spans
        self._noun = noun
        self.filtered: dict[str, int] = {}
        self.received = 0
        self.repaired = 0
        self.rejected: dict[str, int] = {}
        self._examples: dict[str, str] = {}

    def reject(self, reason: str, example: str, count: int = 1) -> None:
        """Count spans under a reason of SPAN_REASONS. `example` names one of them and what is wrong."""
        if count:
            self.rejected[reason] = self.rejected.get(reason, 0) + count
            self._examples.setdefault(reason, example)

    def leave_out(self, reason: str, count: int = 1) -> None:
        """Count items under a reason of FILTERED_REASONS: nothing is wrong with them."""
        if count:
            self.filtered[reason] = self.filtered.get(reason, 0) + count

    def expect(self, spans: int) -> None:
        """Before work is done for each of them. Raises InputError `too_large` when there are too many:
        a span that is left empty takes two bytes in a body and a hundred times that in memory."""
        if spans > self._max_spans:
            problem = Problem(
                "body", f"{spans} {self._noun}", f"at most {self._max_spans} a request", "send fewer at once"
            )
            raise InputError("too_large", problem)

    @property
    def message(self) -> str:
        """What the sender is told; "" when nothing was refused or repaired."""
        parts = [f"{reason} {count} ({self._examples[reason]})" for reason, count in sorted(self.rejected.items())]
        total = sum(self.rejected.values())
        text = f"{total} of {self.received} {self._noun} refused: " + ", ".join(parts) if parts else ""
        if self.repaired:
            note = f"invalid text replaced by U+FFFD in {self.repaired} places"
            text = f"{text}; {note}" if text else note
        return text
