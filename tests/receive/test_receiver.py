"""A request is acknowledged only when its spans are durable, and every span is accounted for."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from otelmon.receive.otlp import JSON, PROTOBUF
from otelmon.receive.receiver import REQUESTS_IN_MEMORY, Room
from otelmon.vocabulary.errors import Problem, UnreachableError
from tests.receive.build import a_group, a_span, as_json, as_protobuf, many
from tests.receive.conftest import Sink

MIXED = [a_group(a_span(), a_span(trace=b""), a_span(span=b"", name="x"))]


def test_what_is_accepted_was_published(sink: Sink) -> None:
    answer = sink.receiver().accept(as_protobuf(many(1000)), PROTOBUF)
    assert (answer.outcome, answer.rejected, answer.message) == ("accepted", 0, "")
    assert len({span.span_id for span in sink.spans}) == 1000
    [account] = sink.accounts
    assert (account.signal, account.received, account.rejected, account.refused) == ("traces", 1000, {}, "")
    assert account.body_bytes == len(as_protobuf(many(1000)))


def test_the_time_of_receipt_is_read_once_a_request(sink: Sink) -> None:
    receiver = sink.receiver(message_bytes=2000)
    receiver.accept(as_protobuf(many(50)), PROTOBUF)
    receiver.accept(as_protobuf(many(50)), PROTOBUF)
    first, second = {at for _, at in sink.published}
    assert len(sink.published) > 10
    assert [account.observed_unix_nano for account in sink.accounts] == sorted([first, second])


@pytest.mark.parametrize(("encode", "content_type"), [(as_protobuf, PROTOBUF), (as_json, JSON)])
def test_bad_spans_are_counted_and_told_and_the_rest_published(sink: Sink, encode: Any, content_type: str) -> None:
    answer = sink.receiver().accept(encode(MIXED), content_type)
    assert (answer.outcome, answer.rejected) == ("accepted", 2)
    assert "2 of 3 spans refused: invalid_span_id 1" in answer.message
    assert [span.name for span in sink.spans] == ["work"]
    [account] = sink.accounts
    assert account.received == 3
    assert account.rejected == {"invalid_trace_id": 1, "invalid_span_id": 1}


def test_a_request_without_a_good_span_publishes_nothing(sink: Sink) -> None:
    receiver = sink.receiver()
    assert receiver.accept(as_protobuf([a_group(a_span(trace=b""))]), PROTOBUF).rejected == 1
    assert receiver.accept(b"", PROTOBUF).outcome == "accepted"
    assert sink.published == []


@pytest.mark.parametrize(
    ("body", "content_type", "reason"),
    [
        (b"nonsense", PROTOBUF, "invalid_protobuf"),
        (b"{", JSON, "invalid_json"),
        (b"", "text/plain", "unsupported_type"),
        (b"x" * 101, PROTOBUF, "too_large"),
    ],
)
def test_a_request_that_can_not_be_read_is_refused_for_good(
    sink: Sink, body: bytes, content_type: str, reason: str
) -> None:
    answer = sink.receiver(max_request_bytes=100).accept(body, content_type)
    assert (answer.outcome, answer.reason) == ("refused", reason)
    assert answer.message
    assert sink.refused == {reason: 1}
    assert sink.accounts[0].received == 0


@pytest.mark.parametrize(
    "error", [UnreachableError(Problem("bus", "is away")), OSError(28, "No space left"), TimeoutError()]
)
def test_when_the_bus_can_not_take_them_the_sender_keeps_its_spans(sink: Sink, error: Exception) -> None:
    receiver = sink.receiver()
    sink.error = error
    answer = receiver.accept(as_protobuf(many(3)), PROTOBUF)
    assert (answer.outcome, answer.reason) == ("busy", "busy")
    assert sink.refused == {"busy": 1}
    assert sum(account.received for account in sink.accounts) == 0
    sink.error = None
    assert receiver.accept(as_protobuf(many(3)), PROTOBUF).outcome == "accepted"
    assert len(sink.spans) == 3


def test_a_mistake_of_ours_is_not_hidden_as_back_pressure(sink: Sink) -> None:
    sink.error = KeyError("bug")
    with pytest.raises(KeyError):
        sink.receiver().accept(as_protobuf(many(1)), PROTOBUF)


def test_when_the_account_can_not_be_kept_nothing_is_acknowledged(sink: Sink) -> None:
    receiver = sink.receiver()

    def fail(_: object) -> None:
        raise UnreachableError(Problem("bus", "is away"))

    receiver._on_account = fail
    assert receiver.accept(as_protobuf(many(1)), PROTOBUF).outcome == "busy"
    assert receiver.accept(b"{", JSON).outcome == "refused"


def test_requests_beyond_the_memory_come_back_later(sink: Sink) -> None:
    body = as_protobuf(many(1))
    receiver = sink.receiver(max_request_bytes=len(body))
    sink.gate.clear()
    outcomes: list[str] = []
    threads = [
        threading.Thread(target=lambda: outcomes.append(receiver.accept(body, PROTOBUF).outcome))
        for _ in range(REQUESTS_IN_MEMORY)
    ]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert sink.waiting.acquire(timeout=10)
    assert receiver.accept(body, PROTOBUF).outcome == "busy"
    sink.gate.set()
    for thread in threads:
        thread.join(10)
    assert outcomes == ["accepted"] * REQUESTS_IN_MEMORY
    assert receiver.accept(body, PROTOBUF).outcome == "accepted"


def test_room_is_given_back_after_every_kind_of_answer(sink: Sink) -> None:
    body = as_protobuf(many(1))
    receiver = sink.receiver(max_request_bytes=len(body))
    for error in [OSError("full"), None] * 20:
        sink.error = error
        receiver.accept(body, PROTOBUF)
        receiver.accept(b"?" * len(body), PROTOBUF)
    assert receiver.room.take(REQUESTS_IN_MEMORY * len(body))
    assert not receiver.room.take(1)


def test_room_holds_no_more_than_its_limit() -> None:
    room = Room(10)
    assert room.take(10)
    assert not room.take(1)
    room.give(4)
    assert not room.take(5)
    assert room.take(4)


def test_redaction_sees_every_request_before_it_is_published(sink: Sink) -> None:
    def redact(request: Any) -> Any:
        for span in request.resource_spans[0].scope_spans[0].spans:
            span.name = "redacted"
        return request

    receiver = sink.receiver(redact)
    for encode, content_type in ((as_protobuf, PROTOBUF), (as_json, JSON)):
        receiver.accept(encode([a_group(a_span(name="secret"))]), content_type)
    assert [span.name for span in sink.spans] == ["redacted", "redacted"]


def test_replaced_text_is_counted(sink: Sink) -> None:
    body = as_json([a_group(a_span(name="@@"))]).replace(b"@@", b"\\ud800")
    answer = sink.receiver().accept(body, JSON)
    assert (answer.rejected, answer.message) == (0, "invalid text replaced by U+FFFD in 1 places")
    assert sink.accounts[0].repaired == 1
    assert [span.name for span in sink.spans] == ["\ufffd"]


def test_metrics_are_counted_and_not_stored(sink: Sink) -> None:
    receiver = sink.receiver()
    metrics = {
        "resourceMetrics": [{"scopeMetrics": [{"metrics": [{"gauge": {"dataPoints": [{}, {}]}}, {"name": "x"}]}]}]
    }
    assert receiver.accept(json.dumps(metrics).encode(), JSON, "metrics").rejected == 2
    assert [account.rejected for account in sink.accounts] == [{"unsupported_signal": 2}]
    assert [account.signal for account in sink.accounts] == ["metrics"]
    assert receiver.accept(b"", PROTOBUF, "metrics").rejected == 0
    assert sink.published == []
