"""One honest span for every execution of a tool."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.trace import StatusCode

from otelmon import instrument
from otelmon.instrument import setup
from otelmon.instrument.capture import Capture, input_schema
from tests.instrument.conftest import Spans


class ReadTimeout(Exception):
    """Named like the timeouts of HTTP clients, which do not derive from TimeoutError."""


def attributes(spans: Spans, position: int = -1) -> dict[str, Any]:
    return dict(spans()[position].attributes or {})


def test_a_call_is_a_span_with_its_arguments_and_result(spans: Spans) -> None:
    @instrument.tool(effect="destructive", idempotency_key="key", server="billing")
    def charge(customer: str, amount: float, key: str = "k-0") -> dict[str, Any]:
        """Charge a customer."""
        return {"charged": amount, "customer": customer}

    assert charge("AC-3", amount=20.5) == {"charged": 20.5, "customer": "AC-3"}
    found = attributes(spans)
    assert spans()[-1].name == "execute_tool charge"
    assert json.loads(found["gen_ai.tool.call.arguments"]) == {"customer": "AC-3", "amount": 20.5, "key": "k-0"}
    assert json.loads(found["gen_ai.tool.call.result"]) == {"charged": 20.5, "customer": "AC-3"}
    assert found["otelmon.call.outcome"] == "completed"
    assert found["otelmon.call.idempotency_key"] == "k-0"
    assert found["otelmon.tool.effect"] == "destructive"
    assert found["otelmon.mcp.server"] == "billing"
    assert found["gen_ai.operation.name"] == "execute_tool"
    assert spans()[-1].status.status_code is StatusCode.UNSET


@pytest.mark.parametrize(
    ("error", "outcome", "error_type"),
    [
        (TimeoutError("30 s"), "timeout_unknown", "timeout"),
        (ReadTimeout("30 s"), "timeout_unknown", "timeout"),
        (ConnectionRefusedError(), "not_started", "ConnectionRefusedError"),
        (instrument.NotStarted("queue closed"), "not_started", "NotStarted"),
        (instrument.Denied("not allowed"), "denied", "Denied"),
        (KeyboardInterrupt(), "cancelled_unknown", "KeyboardInterrupt"),
        (ValueError("no such order"), "failed", "ValueError"),
    ],
)
def test_an_exception_passes_through_and_its_outcome_is_what_is_really_known(
    spans: Spans, error: BaseException, outcome: str, error_type: str
) -> None:
    @instrument.tool
    def cancel(order: str) -> None:
        raise error

    with pytest.raises(type(error)):
        cancel("W-1")
    found = attributes(spans)
    assert (found["otelmon.call.outcome"], found["error.type"]) == (outcome, error_type)
    assert spans()[-1].status.status_code is StatusCode.ERROR
    assert "gen_ai.tool.call.result" not in found


def test_a_coroutine_is_traced_and_its_cancellation_is_unknown(spans: Spans) -> None:
    @instrument.tool(effect="write")
    async def slow(order: str) -> str:
        await asyncio.sleep(0 if order == "quick" else 30)
        return "ok"

    async def scenario() -> None:
        assert await slow("quick") == "ok"
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(slow("W-1"), 0.01)

    asyncio.run(scenario())
    assert attributes(spans, 0)["otelmon.call.outcome"] == "completed"
    assert attributes(spans, 1)["otelmon.call.outcome"] == "cancelled_unknown"


def test_a_pending_result_is_unwrapped_and_reported(spans: Spans) -> None:
    @instrument.tool
    def start_build() -> Any:
        return instrument.Pending({"task_id": "t-1"})

    assert start_build() == {"task_id": "t-1"}
    assert attributes(spans)["otelmon.call.outcome"] == "pending"


def test_tools_may_say_which_key_and_attempt_they_really_sent(spans: Spans) -> None:
    @instrument.tool
    def pay() -> None:
        call = instrument.current_call()
        assert call is not None
        call.sent_idempotency_key("sent-1")
        call.attempt(2)
        call.approved(by="dana", approval_id="ap-7")

    pay()
    found = attributes(spans)
    assert (found["otelmon.call.idempotency_key"], found["otelmon.call.attempt"]) == ("sent-1", 2)
    assert (found["otelmon.approval.decision"], found["otelmon.approval.by"]) == ("approved", "dana")
    assert instrument.current_call() is None


def test_generators_are_refused_where_they_are_declared() -> None:
    with pytest.raises(TypeError, match="expected a function or a coroutine function"):

        @instrument.tool
        def stream() -> Iterator[int]:
            yield 1


def test_hash_capture_keeps_equality_and_no_content(spans: Spans) -> None:
    setup.settings.capture = Capture(level="hash", key=b"secret")

    @instrument.tool
    def pay(card: str) -> str:
        return f"paid with {card}"

    pay("4242"), pay("4242"), pay("4000")
    first, second, third = (attributes(spans, i) for i in range(3))
    assert first["otelmon.call.args_hash"] == second["otelmon.call.args_hash"] != third["otelmon.call.args_hash"]
    assert first["otelmon.call.args_hash"].startswith("hmac-sha256:")
    assert all("4242" not in str(value) for value in first.values())


def test_no_capture_says_nothing_of_the_values(spans: Spans) -> None:
    setup.settings.capture = Capture(level="none")

    @instrument.tool
    def pay(card: str) -> str:
        raise ValueError(f"{card} refused")

    with pytest.raises(ValueError, match="4242"):
        pay("4242")
    span = spans()[-1]
    assert "4242" not in str(dict(span.attributes or {})) + str(span.status.description)
    assert attributes(spans)["otelmon.content.capture"] == "none"


def test_redaction_happens_before_anything_is_written(spans: Spans) -> None:
    setup.settings.capture = Capture(redact=lambda name, value: "***" if name == "card" else value)

    @instrument.tool
    def pay(card: str, amount: int) -> None: ...

    pay("4242", 3)
    found = attributes(spans)
    assert json.loads(found["gen_ai.tool.call.arguments"]) == {"card": "***", "amount": 3}
    assert found["otelmon.call.args_fidelity"] == "redacted"


def test_values_json_can_not_carry_do_not_break_the_call(spans: Spans) -> None:
    @instrument.tool
    def odd(value: object) -> object:
        return value

    for value in ({1, 2}, object(), b"\xff", "\ud800", float("nan"), {"a": {3: object()}}):
        assert odd(value) is value
    assert len(spans()) == 6
    assert all((span.attributes or {})["otelmon.call.outcome"] == "completed" for span in spans())


def test_schema_comes_from_annotations() -> None:
    def book(order_id: str, count: int = 1, tags: list[str] | None = None, *rest: object, **more: object) -> None: ...

    schema = input_schema(book)
    assert schema["required"] == ["order_id"]
    assert schema["properties"]["order_id"] == {"type": "string"}
    assert schema["properties"]["count"] == {"type": "integer"}
    assert set(schema["properties"]) == {"order_id", "count", "tags"}
