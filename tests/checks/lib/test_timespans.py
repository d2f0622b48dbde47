"""Claims about spans of time, in three languages."""

from __future__ import annotations

from datetime import timedelta

import pytest

from otelmon.checks.lib.instants import instants_in
from otelmon.checks.lib.timespans import Known, contradicted, spans_claimed

NOW = instants_in("2024-05-15 15:00:00")[0]


@pytest.mark.parametrize(
    ("text", "kind", "hours"),
    [
        ("It was made within the last 24 hours.", "within", 24),
        ("It falls within the 24-hour window.", "within", 24),
        ("It was ordered less than 3 days ago.", "within", 72),
        ("It was not made within the last 24 hours.", "beyond", 24),
        ("It was made more than 2 weeks ago.", "beyond", 336),
        ("Se hizo en las últimas 24 horas.", "within", 24),
        ("Se hizo hace más de 30 días.", "beyond", 720),
        ("Sie wurde innerhalb der letzten 14 Tage bestellt.", "within", 336),
        ("Sie wurde vor mehr als 24 Stunden gebucht.", "beyond", 24),
    ],
)
def test_what_is_claimed(text: str, kind: str, hours: int) -> None:
    (span,) = spans_claimed(text)
    assert (span.kind, span.length) == (kind, timedelta(hours=hours))


@pytest.mark.parametrize(
    "text",
    [
        "Was it made within the last 24 hours?",
        "You can cancel if it was made within the last 24 hours.",
        "The refund will be paid within 7 days.",
        "It is eligible when:\n- it was made within the last 24 hours",
        "Made within the last 24 hours: no, on May 1.",
        "Wenn sie innerhalb der letzten 14 Tage bestellt wurde, geht es.",
        "Se puede si se hizo en las últimas 24 horas.",
        "Your trip on May 1 is over. You get a mail within 24 hours.",
        "Refunds are paid within 7 days.",
        "The refund for May 1 is processed within 24 hours.",
        "Please answer within 24 hours.",
        "Die Erstattung wird innerhalb von 14 Tagen überwiesen.",
        "El reembolso llega en 5 días.",
    ],
)
def test_rules_questions_and_plans_claim_nothing(text: str) -> None:
    assert spans_claimed(text) == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("Made on 2024-05-14 09:00, within the last 24 hours.", True),
        ("Made on 2024-05-14 16:00, within the last 24 hours.", False),
        ("Made on May 14, within the last 24 hours.", False),  # in the evening, perhaps
        ("Made on May 12, within the last 24 hours.", True),
        ("Made on May 12 for May 16, within the last 24 hours.", False),  # the other day may be meant
        ("Made on May 15, 2024, at 16:00, less than 24 hours ago.", False),
        ("I see it was ordered May 1. It was made within the last 24 hours.", True),
        ("It was ordered on May 1, and paid within 2 days.", False),  # when it was paid is not said
        ("It was ordered on May 1 and delivered within 3 days, on May 13.", True),
        ("It was ordered on May 10 and delivered within 3 days, on May 13.", False),
        ("Your trip on May 2 was changed within the last 24 hours.", False),
        ("Der Vertrag wurde am 1. März 2024 erstellt und liegt innerhalb der 14 Tage.", True),
        ("I see May 1. It was made within the last 24 hours.", False),  # May 1 may be anything
        ("Your trip on June 20 was booked within the last 24 hours.", False),  # the day of the trip
        ("Your trip is on June 20. It was booked within the last 24 hours.", False),
        ("Made within the last 24 hours.", False),  # nothing says when
        ("Made on 2024-05-14 16:00, more than 24 hours ago.", True),
        ("Made on 2024-05-14, more than 24 hours ago.", False),
    ],
)
def test_only_what_no_reading_makes_true_is_wrong(text: str, wrong: bool) -> None:
    (span,) = spans_claimed(text)
    assert bool(contradicted(span, NOW, Known())) is wrong


def test_the_evidence_makes_a_bare_day_exact() -> None:
    (span,) = spans_claimed("Made on May 14, within the last 24 hours.")
    morning, evening = instants_in("2024-05-14 09:00 2024-05-14 20:00")
    assert contradicted(span, NOW, Known((morning,)))
    assert not contradicted(span, NOW, Known((morning, evening)))


def test_the_record_that_is_named_says_when() -> None:
    (span,) = spans_claimed("Made within the last 24 hours.")
    old = instants_in("2024-05-01 09:00 2024-05-16")
    assert contradicted(span, NOW, Known(old[:1], of_named=True))
    assert not contradicted(span, NOW, Known(old[:1]))  # of some record
    assert not contradicted(span, NOW, Known(old, of_named=True))  # a day of it is near
