"""A monitor with incidents of several kinds, one for the whole test run: tests only read it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.services.monitor import Call, LiveMonitor, Talk, double_write

FALSE_SUCCESS = Talk(
    number=2, agent="desk", user="Refund order W-1200, please.",
    calls=(
        Call("get_order", {"order_id": "W-1200"}, {"order_id": "W-1200", "total": 20.0}),
        Call("issue_refund", {"order_id": "W-1200", "amount": 20.0}, error="ValueError"),
    ),
    answer="I have refunded 20.00 for order W-1200.",
)  # fmt: skip
INVENTED = Talk(
    number=3, agent="refunds", user="My parcel arrived broken, I want my money back.",
    calls=(Call("issue_refund", {"order_id": "W-9931", "amount": 120.0}, {"ok": True}),),
    answer="I refunded your order.",
)  # fmt: skip
FORBIDDEN = Talk(
    number=4, agent="desk", user="Tidy up the records of customer C-17.",
    calls=(Call("delete_customer", {"customer": "C-17"}, {"deleted": "C-17"}),), answer="They are tidied up.",
)  # fmt: skip
HIDDEN = Talk(
    number=5, agent="quiet", history=False, calls=(Call("issue_refund", {"order_id": "W-5", "amount": 5.0}, {}),)
)
LONG = Talk(
    number=6, agent="crawler", user="Look at every order.",
    calls=tuple(Call("get_order", {"order_id": f"W-{n}"}, {"order_id": f"W-{n}", "total": n}) for n in range(300)),
    answer="I looked at them.",
)  # fmt: skip
TALKS = (double_write(1), FALSE_SUCCESS, INVENTED, FORBIDDEN, HIDDEN, LONG)


@pytest.fixture(scope="session")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveMonitor]:
    """Holds TALKS, judged. Tests must not change it."""
    live = LiveMonitor(tmp_path_factory.mktemp("full"))
    try:
        live.judged(*TALKS)
        yield live
    finally:
        live.stop()
