"""Findings become incidents: joining, reopening, retracting, and what does not open one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from otelmon.incidents.grouping import Grouping
from otelmon.store import queries
from otelmon.store.database import Database
from otelmon.store.writer import StoreWriter
from otelmon.vocabulary.config import IncidentsConfig
from otelmon.vocabulary.finding import Finding, Incident
from tests.store.build import SECOND, T0, finding, record_messages, verdict

QUIET = 100


class Store:
    """A store with grouping that takes the findings of one owner at a time."""

    def __init__(self, database: Database, silent: frozenset[str] = frozenset()) -> None:
        self.database = database
        self._writer = StoreWriter(database, Grouping(IncidentsConfig(quiet_seconds=QUIET), silent))
        self._offset = 0

    def says(self, *findings: Finding, owner: str = "trace:x", observed: int = T0) -> None:
        self._writer.write(record_messages([verdict(*findings, owner=owner, observed=observed)], self._offset))
        self._offset += 1

    def incidents(self) -> list[Incident]:
        with self.database.read() as cursor:
            return sorted(queries.incidents(cursor).incidents, key=lambda incident: incident.opened_unix_nano)

    def actions(self, incident_id: str) -> list[str]:
        with self.database.read() as cursor:
            detail = queries.incident(cursor, incident_id)
        assert detail is not None
        return [entry.action for entry in detail.history]


@pytest.fixture
def store(database: Database) -> Store:
    return Store(database)


def at(seconds: float, finding_id: str = "", **fields: Any) -> Finding:
    return finding(finding_id or f"f{seconds}", at=T0 + int(seconds * SECOND), **fields)


@pytest.mark.parametrize(
    ("times", "counts"),
    [
        ([0], [1]),
        ([0, 50, 100], [3]),
        ([0, QUIET], [2]),
        ([0, QUIET + 1], [1, 1]),
        ([0, 90, 180, 270], [4]),
        ([500, 0], [1, 1]),
        ([150, 90], [2]),
        ([0, 300, 350, 50], [2, 2]),
    ],
    ids=str,
)
def test_what_is_near_in_time_is_one_incident(store: Store, times: list[float], counts: list[int]) -> None:
    for number, seconds in enumerate(times):
        store.says(at(seconds), owner=f"trace:{number}")
    found = store.incidents()
    assert [incident.findings for incident in found] == counts
    assert min(incident.opened_unix_nano for incident in found) == T0 + int(min(times) * SECOND)
    assert max(incident.last_seen_unix_nano for incident in found) == T0 + int(max(times) * SECOND)


@pytest.mark.parametrize(
    "other",
    [{"tool_name": "refund"}, {"agent_name": "support-bot"}, {"agent_name": None}, {"tool_name": None}],
    ids=str,
)
def test_another_agent_or_tool_is_another_problem(store: Store, other: dict[str, Any]) -> None:
    store.says(at(0, "a"), at(1, "b", **other))
    assert [incident.findings for incident in store.incidents()] == [1, 1]


def test_family_and_environment_are_part_of_the_problem(store: Store) -> None:
    one = at(0, "a")
    store.says(
        one,
        msgspec.structs.replace(one, finding_id="b", family="truth"),
        msgspec.structs.replace(one, finding_id="c", environment="dev"),
    )
    assert [incident.findings for incident in store.incidents()] == [1, 1, 1]


def test_two_rules_on_one_problem_are_one_incident_as_grave_as_the_gravest(store: Store) -> None:
    store.says(
        at(0, "a", severity="medium"), at(1, "b", severity="critical", rule_id="unsafe_retry", summary="sent again")
    )
    (incident,) = store.incidents()
    assert incident.severity == "critical"
    assert incident.rule_ids == ("duplicate_write", "unsafe_retry")
    assert incident.title == "sent again: charge_card, agent billing-bot (and 1 more)"


@pytest.mark.parametrize("severity", ["low", "info"])
def test_below_medium_opens_no_incident(store: Store, severity: Any) -> None:
    store.says(at(0, severity=severity))
    assert store.incidents() == []


def test_a_finding_that_becomes_grave_opens_one(store: Store) -> None:
    store.says(at(0, "a", severity="low"))
    store.says(at(0, "a", severity="high"))
    assert [incident.findings for incident in store.incidents()] == [1]


def test_rules_in_test_open_no_incident(database: Database) -> None:
    store = Store(database, frozenset(("duplicate_write",)))
    store.says(at(0, "a"), at(1, "b", rule_id="unsafe_retry"))
    assert [incident.rule_ids for incident in store.incidents()] == [("unsafe_retry",)]


def test_retraction_lowers_the_count_then_retracts_the_incident(store: Store) -> None:
    store.says(at(0, "a"), at(1, "b", severity="critical"))
    store.says(at(0, "a"))
    (incident,) = store.incidents()
    assert (incident.state, incident.findings, incident.severity) == ("open", 1, "high")
    store.says()
    (incident,) = store.incidents()
    assert (incident.state, incident.findings, incident.severity) == ("retracted", 0, "critical")
    assert incident.title.startswith("2 charges landed for one order")
    assert store.actions(incident.incident_id) == ["opened", "retracted"]


def test_a_finding_that_comes_back_reopens_the_same_incident(store: Store) -> None:
    store.says(at(0, "a"))
    (before,) = store.incidents()
    store.says()
    store.says(at(0, "a"))
    (after,) = store.incidents()
    assert after == before
    assert store.actions(after.incident_id) == ["opened", "retracted", "reopened"]


def test_the_same_findings_again_change_nothing(store: Store) -> None:
    store.says(at(0, "a"))
    before = store.incidents()
    store.says(at(0, "a"), observed=T0 + 5000 * SECOND)
    assert store.incidents() == before
    assert store.actions(before[0].incident_id) == ["opened"]


def test_a_finding_stays_in_its_incident_when_the_agent_becomes_known(store: Store) -> None:
    """A second page for one problem would be worse than a name that came late."""
    store.says(at(0, "a", agent_name=None))
    store.says(at(0, "a"))
    (incident,) = store.incidents()
    assert (incident.agent_name, incident.findings) == ("unknown agent", 1)


def changed(number: int, tool: str, seconds: float = 0, **fields: Any) -> Finding:
    """A finding on a tool of the catalogue family; `server` and the like stand in its evidence."""
    told = {name: fields.pop(name) for name in ("server", "servers", "others") if name in fields}
    one = at(seconds, f"drift-{number}", rule_id="tool_drift", tool_name=tool, summary=f"{tool} changed: a is gone", **fields)  # fmt: skip
    return msgspec.structs.replace(one, family="catalogue", evidence=told)


def test_a_release_is_one_incident_however_many_tools_it_changes(store: Store) -> None:
    for number in range(121):
        agent = ("clerk", "boss")[number % 2]
        store.says(
            changed(number, f"tool_{number}", number % 5, server="depot", agent_name=agent), owner=f"tool:{number}"
        )
    (incident,) = store.incidents()
    assert (incident.findings, incident.agent_name, incident.tool_name) == (121, "server depot", "its tools")
    assert (
        incident.title == "tool_0 changed: a is gone: server depot (and tool_1, tool_10, tool_100 and 117 more tools)"
    )


def test_two_releases_and_two_servers_are_incidents_of_their_own(store: Store) -> None:
    store.says(
        changed(1, "a", server="depot"),
        changed(2, "b", 1, server="depot"),
        changed(3, "a", QUIET * 3, server="depot"),
        changed(4, "a", 2, server="shop"),
        changed(5, "a", 2, agent_name="clerk"),
    )
    found = {(incident.agent_name, incident.findings) for incident in store.incidents()}
    assert found == {("server depot", 2), ("server depot", 1), ("server shop", 1), ("clerk", 1)}


def test_servers_whose_names_meet_are_one_incident(store: Store) -> None:
    store.says(
        changed(1, "run_sql", servers=["metrics", "orders"]),
        changed(2, "find", 1, servers=["metrics", "orders"]),
        changed(3, "run_sql", 2, server="orders", others=["metrics"]),
    )
    (incident,) = store.incidents()
    assert (incident.agent_name, incident.findings) == ("servers metrics and orders", 3)


def test_a_change_that_only_gives_more_room_opens_no_incident(store: Store) -> None:
    store.says(changed(1, "a", server="depot", severity="low"))
    assert store.incidents() == []
