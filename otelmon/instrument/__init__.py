"""The agent's side: one honest span for every tool call, by plain OpenTelemetry.

    from otelmon import instrument

    instrument.configure(service_name="billing-bot")

    @instrument.tool(effect="destructive", idempotency_key="key")
    def charge_card(customer: str, amount: float, key: str) -> dict: ...

    with instrument.run(agent="billing", conversation_id="c-1", user_text="Charge AC-3 20 euro") as run:
        charge_card("AC-3", 20.0, key="k-1")
        run.answer("Charged 20 euro.")

A call that timed out is reported as `timeout_unknown`: nobody knows whether it happened.
"""

from otelmon.instrument.outcome import Denied, NotStarted, Pending
from otelmon.instrument.run import Run, run
from otelmon.instrument.setup import configure, flush
from otelmon.instrument.tool import CurrentCall, current_call, tool

__all__ = [
    "CurrentCall",
    "Denied",
    "NotStarted",
    "Pending",
    "Run",
    "configure",
    "current_call",
    "flush",
    "run",
    "tool",
]
