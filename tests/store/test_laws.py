"""The laws of the store: however batches are cut, repeated or killed, the tables are the same."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from otelmon.bus.protocol import Delivered
from otelmon.incidents.grouping import Grouping
from otelmon.store.accounts import conservation
from otelmon.store.database import Database
from otelmon.store.writer import StoreWriter
from otelmon.vocabulary.config import IncidentsConfig
from otelmon.vocabulary.finding import SEVERITIES, Finding
from otelmon.vocabulary.messages import Account, StoreRecord
from tests.store.build import (
    SECOND,
    T0,
    call,
    definition,
    dump,
    finding,
    record,
    record_message,
    span_request,
    spans_message,
    user,
    verdict,
)

GROUPING = Grouping(IncidentsConfig(quiet_seconds=100), frozenset(("in_test",)))
TRACES = ("a" * 32, "b" * 32)
OWNERS = (f"trace:{TRACES[0]}", f"trace:{TRACES[0]}", "effect:k")


@st.composite
def findings(draw: st.DrawFn) -> Finding:
    return finding(
        draw(st.sampled_from(("f1", "f2", "f3"))),
        severity=draw(st.sampled_from(SEVERITIES)),
        status=draw(st.sampled_from(("open", "open", "open", "retracted"))),
        at=T0 + draw(st.sampled_from((0, 50, 90, 180, 500))) * SECOND,
        rule_id=draw(st.sampled_from(("duplicate_write", "unsafe_retry", "in_test"))),
        tool_name=draw(st.sampled_from(("charge_card", "charge_card", None))),
        summary=draw(st.sampled_from(("landed twice", "sent again"))),
    )


@st.composite
def verdicts(draw: st.DrawFn) -> StoreRecord:
    found = draw(st.lists(findings(), max_size=3))
    observed = T0 + draw(st.integers(0, 9)) * SECOND
    epoch = draw(st.sampled_from((0, 0, 0, 1)))
    return verdict(*found, owner=draw(st.sampled_from(OWNERS)), epoch=epoch, observed=observed)


@st.composite
def accounts(draw: st.DrawFn) -> StoreRecord:
    number = draw(st.integers(1, 5))
    return Account(
        id=draw(st.sampled_from(("r1", "r2"))), stage="receive", received=number, rejected={"too_deep": number},
        observed_unix_nano=T0,
    )  # fmt: skip


@st.composite
def trace_records(draw: st.DrawFn) -> StoreRecord:
    trace = draw(st.sampled_from((TRACES[0], TRACES[0], TRACES[0], TRACES[1])))
    numbers = st.lists(st.integers(1, 2), unique=True, max_size=2)
    calls = [
        call(f"{n:016x}", n, trace, outcome=draw(st.sampled_from(("succeeded", "unknown"))), result_text="r" * draw(st.sampled_from((3, 300))))
        for n in draw(numbers)
    ]  # fmt: skip
    effects = {c.key: ("write", "additive") for c in calls if draw(st.booleans())}
    return record(
        *calls,
        trace_id=trace,
        epoch=draw(st.sampled_from((0, 0, 0, 0, 1))),
        keys=tuple(f"{trace}:{n:016x}" for n in draw(numbers)),
        effects=effects,
        messages=tuple(user(text, n, trace) for n, text in enumerate(draw(st.lists(st.sampled_from(("hi", "x" * 400)), max_size=2)))),
        definitions=tuple(definition(hash_=h, at=T0 + draw(st.integers(0, 9)), trace_id=trace) for h in draw(st.sets(st.sampled_from("12")))),
        not_evaluable=draw(st.sampled_from(({}, {f"{trace}:{'0' * 16}": {"false_success": "sampled"}}))),
        conversation_id=draw(st.sampled_from(("c1", "c2"))),
    )  # fmt: skip


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    if draw(st.integers(0, 9)) == 0:
        return b"\xff broken"
    span = st.tuples(
        st.sampled_from((*TRACES, "0" * 32)), st.sampled_from(("1" * 16, "2" * 16, "3" * 16)), st.sampled_from("xy")
    )
    return span_request(draw(st.lists(span, max_size=5)), service=draw(st.sampled_from(("shop", "bank"))))


Items = st.SearchStrategy[StoreRecord | bytes]
KINDS: dict[str, Items] = {
    "findings": verdicts(),
    "rows of traces": trace_records(),
    "spans": requests(),
    "all": st.one_of(verdicts(), trace_records(), requests(), accounts()),
}


@st.composite
def streams(draw: st.DrawFn, items: Items) -> list[Delivered]:
    """Messages of two partitions, mixed; offsets rise per partition, with gaps."""
    offsets: dict[tuple[str, int], int] = {}
    messages = []
    for item in draw(st.lists(items, min_size=2, max_size=8)):
        partition = draw(st.sampled_from((0, 0, 1)))
        made = spans_message(0, item, partition) if isinstance(item, bytes) else record_message(0, item, partition)
        offset = offsets.get((made.topic, partition), 0) + draw(st.sampled_from((0, 0, 3)))
        offsets[made.topic, partition] = offset + 1
        time_ = T0 + draw(st.integers(0, 5))
        messages.append(msgspec.structs.replace(made, offset=offset, time_unix_nano=time_))
    return messages


def stored(database: Database, batches: Sequence[Sequence[Delivered]]) -> dict[str, list[str]]:
    """The tables after these batches, from nothing."""
    with database.write() as connection:
        for (name,) in connection.execute("SELECT table_name FROM duckdb_tables() WHERE NOT temporary").fetchall():
            if name != "schema_version":
                connection.execute(f"DELETE FROM {name}")
    writer = StoreWriter(database, GROUPING)
    for batch in batches:
        writer.write(batch)
    with database.read() as cursor:
        for total in conservation(cursor):
            assert total.missing == 0
            assert total.conflict <= total.stored
    return dump(database)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_cut_and_any_replay_give_the_same_tables(database: Database, kind: str, data: st.DataObject) -> None:
    messages = data.draw(streams(KINDS[kind]), label="messages")
    whole = stored(database, [messages])
    batches: list[list[Delivered]] = []
    start = 0
    while start < len(messages):
        end = start + data.draw(st.integers(1, 3), label="size")
        batches.append(messages[start:end])
        if data.draw(st.booleans(), label="replay"):
            batches.append(messages[data.draw(st.integers(0, start), label="from") : end])
        start = end
    assert stored(database, batches) == whole


WRITER = """
import sys, time
from pathlib import Path
from tests.store.test_laws import long_stream, GROUPING
from otelmon.store.database import Database
from otelmon.store.writer import StoreWriter

messages = long_stream()
with Database.open(sys.argv[1]) as database:
    writer = StoreWriter(database, GROUPING)
    rest = [m for m in messages if m.offset >= (writer.offset(m.topic, m.partition) or 0)]
    print("ready", flush=True)
    for start in range(0, len(rest), 5):
        writer.write(rest[start : start + 5])
        print("batch", flush=True)
"""


def long_stream() -> list[Delivered]:
    """The same 400 messages each time it is asked."""
    chance = random.Random(7)
    messages: list[Delivered] = []
    for number in range(200):
        spans = [
            (f"{chance.randrange(1, 60):032x}", f"{chance.randrange(1, 400):016x}", chance.choice("xy"))
            for _ in range(8)
        ]
        messages.append(spans_message(number, span_request(spans)))
        trace = f"{chance.randrange(1, 30):032x}"
        if number % 2:
            calls = [call(f"{n:016x}", n, trace, result_text="r" * 300) for n in range(1, chance.randrange(2, 6))]
            made: StoreRecord = record(*calls, trace_id=trace, messages=(user(f"{number}", 0, trace),))
        else:
            found = [
                finding(f"f{chance.randrange(50)}", at=T0 + chance.randrange(900) * SECOND, trace_id=trace)
                for _ in range(chance.randrange(4))
            ]
            made = verdict(*found, owner=f"trace:{trace}", observed=T0 + number * SECOND)
        messages.append(record_message(number, made))
    return messages


def test_kill_9_at_random_moments_then_replay(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "killed.duckdb"
    chance = random.Random(11)
    for _ in range(6):
        process = _writer(path)
        assert process.stdout is not None
        for _ in range(chance.randrange(1, 10)):
            assert process.stdout.readline()
        time.sleep(chance.uniform(0.0, 0.02))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
    last = _writer(path)
    last.communicate()
    assert last.returncode == 0
    with Database.open(path) as killed:
        assert dump(killed) == stored(database, [long_stream()])


def _writer(path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
