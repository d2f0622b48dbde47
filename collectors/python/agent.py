"""A small agent with two tools, one of which times out. Its model is a script."""

from __future__ import annotations

import sys

from otelmon import instrument


@instrument.tool(effect="read")
def get_order(order_id: str) -> dict[str, object]:
    """Look an order up."""
    return {"order_id": order_id, "status": "delivered", "total": 59.9}


@instrument.tool(effect="destructive", idempotency_key="key")
def issue_refund(order_id: str, amount: float, key: str) -> dict[str, object]:
    """Refund an order."""
    raise TimeoutError("no answer from the payment gateway within 30 s")


def main(endpoint: str | None = None) -> None:
    instrument.configure(service_name="refund-desk", environment="example", endpoint=endpoint)
    with instrument.run(agent="refunds", conversation_id="c-1", user_text="Please refund order W-4417.") as run:
        order = get_order("W-4417")
        try:
            issue_refund(str(order["order_id"]), 59.9, key="refund-W-4417")
        except TimeoutError:
            run.answer("The refund of 59.90 was sent, but I do not know yet whether it went through.")
    instrument.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
