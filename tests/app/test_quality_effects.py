"""What a tool is taken for, against what its calls did and its makers say, counted by hand."""

from __future__ import annotations

from otelmon.app.bench.quality_effects import calls_right, effect_tables, tools_right, writes_called_read
from otelmon.app.bench.quality_runs import CallEffect, JudgedRun
from otelmon.app.bench.quality_table import rate


def run(
    *effects: CallEffect, declared: tuple[tuple[str, bool, str], ...] = (), data_set: str = "set", domain: str = "d"
) -> JudgedRun:
    return JudgedRun(
        data_set=data_set, run_id="r", domain=domain, model="m", passed=None, attack="", calls=len(effects), aligned=True,
        hits=(), known={}, effects=effects, not_evaluable=(), declared=declared,
    )  # fmt: skip


def call(tool: str, word: str, *, changed: bool = False, gives: bool = False, error: bool = False) -> CallEffect:
    return CallEffect(tool, changed, word, word, gives, error)


CALLS = run(
    call("pay", "destructive", changed=True),
    call("pay", "destructive", error=True),
    call("send", "external_send", changed=True),
    call("peek", "read", changed=True),
    call("odd", "unknown", changed=True),
    call("open_mail", "read", changed=True, gives=True),
    call("get", "read", gives=True),
    call("fetch", "unknown", gives=True),
    call("fetch", "unknown", gives=True, error=True),
    call("hand_over", "write"),
)


def test_calls_by_hand() -> None:
    # Four calls changed something beside the mail that was opened; two of the three calls that only gave something
    # and succeeded are called reads: the mail is not one of them.
    (row,) = effect_tables([CALLS])[0].rows
    assert row == ("set", "4", "2", "1", "1", rate(2, 4), "1", "1 of 2")
    assert calls_right([CALLS]) == (2, 4)


def test_tools_by_hand() -> None:
    # pay, send right; peek a write called a read; odd unknown; open_mail and get reads; fetch a read and unknown.
    (row,) = effect_tables([CALLS])[1].rows
    assert row == ("set", "3", "2", "0", "1", "4", "2", "1", "1", rate(4, 7), "fetch, odd, peek")
    assert writes_called_read([CALLS]) == ["peek"]
    assert tools_right([CALLS]) == (4, 7)


def test_what_makers_declare_counts_once_a_domain_and_stands_above_calls() -> None:
    one = run(declared=(("get", False, "read"), ("pay", True, "read")))
    again = run(call("get", "read", gives=True), declared=(("get", False, "read"),))
    other = run(declared=(("get", False, "unknown"),), domain="e")
    assert tools_right([one, again, other]) == (2, 4)
    assert writes_called_read([one, again, other]) == ["pay"]


def test_nothing_known_is_no_row() -> None:
    assert all(not table.rows for table in effect_tables([run()]))
    assert tools_right([run(call("get", "read", gives=True, error=True))]) == (0, 0)
