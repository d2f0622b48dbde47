"""Arguments that earlier calls gave: a golden task asks for what they give then, not for what they gave once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from otelmon.golden.model import Matcher, decode_task, encode_task
from otelmon.golden.tasks import mine_incident
from otelmon.incidents.grouping import Grouping
from otelmon.store.database import Database
from otelmon.store.queries import incidents
from otelmon.store.writer import StoreWriter
from otelmon.vocabulary.config import IncidentsConfig, StoreConfig
from otelmon.vocabulary.messages import ArgumentLineage
from tests.store.build import call, finding, record, record_messages, user, verdict

ORDER = call(
    "1" * 16, 1, tool_name="get_order", arguments={"order_id": "W-1"}, result={"lines": [{"sku": "A-7"}, {"sku": "B-8"}], "total": "12.50"}
)  # fmt: skip
SENT = call("3" * 16, 3, tool_name="send_part", arguments={"sku": "b8", "amount": 12.5, "fee": 3, "note": "as asked"})
BAD = call("4" * 16, 4, tool_name="charge_card", arguments={"amount": 12.5})


def given(path: str, source: str = "result", anchor: str = ORDER.key, sure: bool = True) -> ArgumentLineage:
    return ArgumentLineage(path, "id", source, anchor, "verbatim or formatting", sure)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path / "store.duckdb", StoreConfig()) as opened:
        yield opened


def expected(database: Database, *lineage: ArgumentLineage) -> dict[str, Matcher]:
    """The matchers of the call that was right."""
    found = finding("f1", rule_id="forbidden_write", tool_name="charge_card", span_ids=(BAD.span_id,))
    rows: dict[str, Any] = {SENT.key: lineage, BAD.key: (given("amount"),)}
    effects = {ORDER.key: ("read", "absolute"), SENT.key: ("write", "additive"), BAD.key: ("destructive", "additive")}
    messages = (user("Send the second part of W-1."),)
    told = record(ORDER, SENT, BAD, lineage=rows, effects=effects, messages=messages)
    StoreWriter(database, Grouping(IncidentsConfig())).write(record_messages([told, verdict(found)]))
    with database.read() as cursor:
        [incident] = incidents(cursor).incidents
    task = mine_incident(database, incident.incident_id, 1)
    assert decode_task(encode_task(task)) == task
    [right] = task.expected_calls
    [wrong] = task.forbidden_calls
    assert wrong.arguments["amount"].kind == "number"  # what must not be done stays as it was
    return dict(right.arguments)


def test_what_a_result_gave_is_asked_of_that_field(database: Database) -> None:
    found = expected(database, given("sku"), given("amount"), given("fee", "user"), given("note", "composed", ""))
    assert found["sku"] == Matcher(kind="from_call", value="b8", tool="get_order", field="lines[].sku")
    assert found["amount"] == Matcher(kind="from_call", value=12.5, tool="get_order", field="total")
    assert (found["fee"].kind, found["note"].kind) == ("number", "normalised")


def test_what_is_not_certain_or_not_there_stays_as_it_was(database: Database) -> None:
    found = expected(
        database, given("sku", sure=False), given("amount", anchor="elsewhere"), given("fee"), given("gone")
    )
    assert [matcher.kind for matcher in found.values()] == ["normalised", "number", "number", "normalised"]
