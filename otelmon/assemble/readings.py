"""Span -> Reading: the one door to the dialects."""

from __future__ import annotations

from otelmon.assemble.dialects import Dialect, dialects
from otelmon.assemble.dialects.otelmon import overlay
from otelmon.assemble.history import History
from otelmon.vocabulary.reading import Reading
from otelmon.vocabulary.span import Span


def dialect_of(span: Span) -> Dialect:
    """The dialect with the strongest marker on this span; the last one takes any span."""
    return next(dialect for dialect in dialects() if dialect.matches(span))


def read_span(span: Span, history: History) -> Reading:
    """One span in our words; `history` is the memory of its trace. Never fails: what can not be
    read is absent, and said so in `content` and in the fidelity of arguments and result."""
    return overlay(span, dialect_of(span).read(span, history))
