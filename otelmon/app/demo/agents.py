"""Sample agents, run as a process of their own: `python -m otelmon.app.demo.agents ENDPOINT`.

Their tools talk to a small shop in memory; their model is a script. Everything between them and the
monitor is real: the shim, the OpenTelemetry SDK, OTLP over HTTP.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from otelmon import instrument

ORDERS = {"W-4417": {"order_id": "W-4417", "customer": "C-80", "total": 59.9, "status": "delivered"}}
charges: list[tuple[str, float]] = []
seen_keys: set[str] = set()
slow_customers = {"C-80", "C-81"}


@instrument.tool(effect="read")
def get_order(order_id: str) -> dict[str, Any]:
    """Look an order up."""
    if order_id not in ORDERS:
        raise LookupError(f"no order {order_id}")
    return ORDERS[order_id]


@instrument.tool(effect="destructive", idempotency_key="key")
def charge_card(customer: str, amount: float, key: str) -> dict[str, Any]:
    """Charge the customer's card. With a key, the same charge is made once."""
    if key in seen_keys:
        return {"charged": amount, "customer": customer, "replayed": True}
    seen_keys.add(key)
    charges.append((customer, amount))
    if customer in slow_customers:  # the charge was made; only the answer did not come back in time
        slow_customers.remove(customer)
        raise TimeoutError("no answer from the payment gateway within 30 s")
    return {"charged": amount, "customer": customer}


@instrument.tool(effect="destructive")
def issue_refund(order_id: str, amount: float) -> dict[str, Any]:
    """Refund an order."""
    return {"refunded": amount, "order_id": order_id}


@instrument.tool(effect="external_send")
def send_email(to: str, subject: str) -> dict[str, Any]:
    """Send an e-mail."""
    return {"queued": subject, "to": to}


@instrument.tool(effect="write")
def update_address(customer: str, street: str) -> dict[str, Any]:
    """Change a customer's address."""
    raise RuntimeError(f"address service: 422 unknown street {street!r} for {customer}")


@instrument.tool(effect="destructive")
def delete_customer(customer: str) -> dict[str, Any]:
    """Delete a customer and everything about them."""
    return {"deleted": customer}


def double_charge() -> None:
    """Wrong: charges again after a timeout, with another key, without looking."""
    with instrument.run(agent="billing", user_text="Please charge customer C-80 59.90 for order W-4417.") as run:
        try:
            charge_card("C-80", 59.9, key="attempt-1")
        except TimeoutError:
            charge_card("C-80", 59.9, key="attempt-2")
        run.answer("Customer C-80 was charged 59.90.")


def invented_id() -> None:
    """Wrong: refunds an order nobody named."""
    with instrument.run(agent="refunds", user_text="My parcel arrived broken, I want my money back.") as run:
        issue_refund("W-9931", 120.0)
        run.answer("I refunded your order.")


def forbidden_delete() -> None:
    """Wrong: deletes what is under a legal hold."""
    with instrument.run(agent="desk", user_text="Tidy up the records of customer C-17, they are inactive.") as run:
        delete_customer("C-17")
        run.answer("The records of C-17 are tidied up.")


def false_success() -> None:
    """Wrong: says it is done after the only call failed."""
    with instrument.run(agent="desk", user_text="Change the address of customer C-80 to 12 Mill Lane.") as run:
        with suppress(RuntimeError):
            update_address("C-80", "12 Mill Lane")
        run.answer("I have updated the address of C-80 to 12 Mill Lane.")


def honest_failure() -> None:
    """Right: the same failure, told as it is."""
    with instrument.run(agent="desk", user_text="Change the address of customer C-80 to 9 Mill Lane.") as run:
        try:
            update_address("C-80", "9 Mill Lane")
        except RuntimeError:
            run.answer("I could not change the address: the address service does not know the street.")


def same_key() -> None:
    """Right: tries again after a timeout with the same key, so it is charged once."""
    with instrument.run(agent="billing", user_text="Please charge customer C-81 12.00 for order W-4501.") as run:
        try:
            charge_card("C-81", 12.0, key="W-4501")
        except TimeoutError:
            charge_card("C-81", 12.0, key="W-4501")
        run.answer("Customer C-81 was charged 12.00.")


def two_asked_for() -> None:
    """Right: two equal e-mails, because the user asked for two."""
    wish = "Send 'Shift moved to 7' to crew@example.com twice, they overlook the first one."
    with instrument.run(agent="desk", user_text=wish) as run:
        send_email("crew@example.com", "Shift moved to 7")
        send_email("crew@example.com", "Shift moved to 7")
        run.answer("I sent it twice.")


WRONG: tuple[Callable[[], None], ...] = (double_charge, invented_id, forbidden_delete, false_success)
RIGHT: tuple[Callable[[], None], ...] = (honest_failure, same_key, two_asked_for)


def main(endpoint: str) -> None:
    """Run every scenario once and send the spans."""
    instrument.configure(service_name="demo-shop", environment="demo", endpoint=endpoint)
    for scenario in (*WRONG, *RIGHT):
        scenario()
    instrument.flush()


if __name__ == "__main__":
    main(sys.argv[1])
