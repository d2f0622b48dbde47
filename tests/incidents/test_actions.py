"""What people and time do to incidents."""

from __future__ import annotations

from pathlib import Path

import pytest

from otelmon.incidents import actions
from otelmon.incidents.grouping import Grouping
from otelmon.store import queries
from otelmon.store.database import Database
from otelmon.store.results import IncidentDetail
from otelmon.store.writer import StoreWriter
from otelmon.vocabulary.config import IncidentsConfig
from otelmon.vocabulary.errors import UserError
from tests.store.build import SECOND, T0, finding, record_messages, verdict

CONFIG = IncidentsConfig(quiet_seconds=100, resolve_seconds=1000)


class Case:
    """A store with one incident of one finding, observed at T0."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._writer = StoreWriter(database, Grouping(CONFIG))
        self._offset = 0
        self.says("a", 0)
        with database.read() as cursor:
            self.id = queries.incidents(cursor).incidents[0].incident_id

    def says(self, finding_id: str, seconds: int) -> None:
        time = T0 + seconds * SECOND
        message = verdict(finding(finding_id, at=time), owner=f"trace:{finding_id}", observed=time)
        self._writer.write(record_messages([message], self._offset))
        self._offset += 1

    def now(self) -> IncidentDetail:
        with self.database.read() as cursor:
            detail = queries.incident(cursor, self.id)
        assert detail is not None
        return detail

    def history(self) -> list[tuple[str, str, str]]:
        return [(entry.action, entry.who, entry.note) for entry in self.now().history]


@pytest.fixture
def case(database: Database) -> Case:
    return Case(database)


def test_acknowledge_once(case: Case) -> None:
    actions.acknowledge(case.database, case.id, "ann", "looking", T0 + SECOND)
    actions.acknowledge(case.database, case.id, "bob", "me too", T0 + 2 * SECOND)
    assert case.now().incident.state == "acknowledged"
    assert case.history()[1:] == [("acknowledged", "ann", "looking")]
    case.says("b", 50)
    assert (case.now().incident.state, case.now().incident.findings) == ("acknowledged", 2)


def test_what_is_over_can_not_be_acknowledged(case: Case) -> None:
    actions.resolve(case.database, case.id, "ann", "", T0)
    with pytest.raises(UserError, match=f"incident {case.id}: it is resolved"):
        actions.acknowledge(case.database, case.id, "bob", "", T0)


def test_an_unknown_incident_is_named(case: Case) -> None:
    for action in (actions.acknowledge, actions.resolve):
        with pytest.raises(UserError, match="incident nope: there is no such incident"):
            action(case.database, "nope", "ann", "", T0)


@pytest.mark.parametrize(("seconds", "states"), [(50, ["open"]), (200, ["open", "resolved"])])
def test_a_new_finding_within_the_quiet_time_reopens(case: Case, seconds: int, states: list[str]) -> None:
    actions.resolve(case.database, case.id, "ann", "fixed", T0)
    actions.resolve(case.database, case.id, "ann", "fixed", T0)
    case.says("b", seconds)
    with case.database.read() as cursor:
        found = queries.incidents(cursor).incidents
    assert [incident.state for incident in found] == states
    reopened = ["reopened"] if len(states) == 1 else []
    assert [action for action, _, _ in case.history()] == ["opened", "resolved", *reopened]


def test_labels_keep_every_opinion_and_the_last_counts(case: Case) -> None:
    actions.label(case.database, case.id, "false_positive", "ann", "two orders", T0 + 1)
    actions.label(case.database, case.id, "true_positive", "bob", "one order", T0 + 2)
    assert case.now().incident.label == "true_positive"
    with case.database.read() as cursor:
        assert cursor.execute("SELECT label, who, note, time_unix_nano FROM labels ORDER BY 4").fetchall() == [
            ("false_positive", "ann", "two orders", T0 + 1),
            ("true_positive", "bob", "one order", T0 + 2),
        ]


def test_quiet_incidents_resolve_by_recorded_time(case: Case) -> None:
    limit = T0 + 1000 * SECOND
    assert actions.resolve_quiet(case.database, CONFIG, limit) == 0
    case.says("b", 60)
    assert actions.resolve_quiet(case.database, CONFIG, limit + SECOND) == 0
    assert actions.resolve_quiet(case.database, CONFIG, limit + 61 * SECOND) == 1
    assert actions.resolve_quiet(case.database, CONFIG, limit + 62 * SECOND) == 0
    assert case.now().incident.state == "resolved"
    assert case.history()[-1][:2] == ("resolved", "otelmon")


def test_states_survive_the_process(case: Case, tmp_path: Path) -> None:
    actions.acknowledge(case.database, case.id, "ann", "looking", T0 + SECOND)
    before = case.now()
    case.database.close()
    with Database.open(case.database.path) as again, again.read() as cursor:
        assert queries.incident(cursor, case.id) == before
