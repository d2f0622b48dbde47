"""Span -> Reading, and log record -> Reading: the one door to the dialects."""

from __future__ import annotations

from otelmon.assemble.dialects import Dialect, _log_records, dialects
from otelmon.assemble.dialects.otelmon import overlay
from otelmon.assemble.history import History
from otelmon.vocabulary.reading import Reading
from otelmon.vocabulary.span import LogRecord, Span


def dialect_of(span: Span) -> Dialect:
    """The dialect with the strongest marker on this span; the last one takes any span."""
    return next(dialect for dialect in dialects() if dialect.matches(span))


def read_span(span: Span, history: History) -> Reading:
    """One span in our words; `history` is the memory of its trace. Never fails: what can not be
    read is absent, and said so in `content` and in the fidelity of arguments and result."""
    return overlay(span, dialect_of(span).read(span, history))


def read_log_record(record: LogRecord, history: History) -> Reading | None:
    """What a log record adds to the span it names; None when it carries nothing of an agent."""
    return _log_records.read(record, history)


def names_agent_event(record: LogRecord) -> bool:
    """Whether the record's name is one that `read_log_record` knows; much cheaper than reading it."""
    return _log_records.known(record)


def carries_agent_content(record: LogRecord) -> bool:
    """Whether `read_log_record` makes a reading of it."""
    return _log_records.carries(record)
