"""What people and time do to incidents: acknowledge, resolve, label, and the resolving of quiet ones."""

from __future__ import annotations

from collections.abc import Callable

from otelmon.incidents.records import SYSTEM, Case, load_cases, remember, write_cases
from otelmon.store.database import Database
from otelmon.store.sqlfiles import sql
from otelmon.store.tables import append
from otelmon.vocabulary.config import IncidentsConfig
from otelmon.vocabulary.errors import Problem, UserError
from otelmon.vocabulary.finding import IncidentLabel


def acknowledge(database: Database, incident_id: str, who: str, note: str, now: int) -> None:
    """Somebody looks at it: open -> acknowledged. Acknowledging twice changes nothing.

    `now` in nanoseconds. Raises UserError when there is no such incident, or nothing to look at.
    """

    def change(case: Case) -> bool:
        if case.state == "acknowledged":
            return False
        if case.state != "open":
            raise UserError(
                Problem(f"incident {case.incident_id}", f"it is {case.state}", "an open incident", "only open ones can be acknowledged")
            )  # fmt: skip
        case.state = "acknowledged"
        remember(case, "acknowledged", who, note, now)
        return True

    _change(database, incident_id, change)


def resolve(database: Database, incident_id: str, who: str, note: str, now: int) -> None:
    """It is over, whatever the state was. A new finding within the quiet time reopens it.

    Raises UserError when there is no such incident.
    """

    def change(case: Case) -> bool:
        if case.state == "resolved":
            return False
        case.state = "resolved"
        remember(case, "resolved", who, note, now)
        return True

    _change(database, incident_id, change)


def label(database: Database, incident_id: str, verdict: IncidentLabel, who: str, note: str, now: int) -> None:
    """What a person thinks it was; every opinion is kept, the last one counts.

    Raises UserError when there is no such incident.
    """

    def change(case: Case) -> bool:
        case.label = verdict
        remember(case, f"labelled {verdict}", who, note, now)
        return True

    _change(database, incident_id, change, (incident_id, verdict, who, note, now))


def _change(
    database: Database, incident_id: str, change: Callable[[Case], bool], opinion: tuple[object, ...] | None = None
) -> None:
    with database.write() as connection:
        case = load_cases(connection, [incident_id]).get(incident_id)
        if case is None:
            raise UserError(
                Problem(f"incident {incident_id}", "there is no such incident", do="list them with `otelmon incidents list`")
            )  # fmt: skip
        if change(case):
            write_cases(connection, [case])
        if opinion:
            append(connection, "labels", [opinion])


def resolve_quiet(database: Database, config: IncidentsConfig, now: int) -> int:
    """Resolve what had no new finding for `resolve_seconds` of recorded time before `now`
    (nanoseconds); returns how many."""
    limit = now - int(config.resolve_seconds * 1e9)
    with database.read() as cursor:
        quiet = [row[0] for row in cursor.execute(sql("incidents.quiet"), [limit]).fetchall()]
    if not quiet:
        return 0
    with database.write() as connection:
        cases = [case for case in load_cases(connection, quiet).values() if _is_quiet(case, limit)]
        for case in cases:
            case.state = "resolved"
            remember(case, "resolved", SYSTEM, "no new finding for the quiet time", now)
        write_cases(connection, cases)
    return len(cases)


def _is_quiet(case: Case, limit: int) -> bool:
    # A finding may have arrived between the look and the lock.
    return case.state in ("open", "acknowledged") and case.observed_unix_nano < limit
