"""The changes the API allows: what a person does with an incident."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from otelmon.incidents import actions
from otelmon.store.database import Database
from otelmon.vocabulary.errors import Problem, UserError
from otelmon.vocabulary.finding import IncidentLabel

VERBS = ("ack", "resolve", "label")


def change_incident(database: Database, verb: str, incident_id: str, now: int, given: Mapping[str, str]) -> None:
    """Acknowledge, resolve or label an incident. Raises UserError when it can not be done."""
    who, note = given.get("who", "someone"), given.get("note", "")
    if verb == "ack":
        actions.acknowledge(database, incident_id, who, note, now)
    elif verb == "resolve":
        actions.resolve(database, incident_id, who, note, now)
    elif verb == "label":
        try:
            verdict = msgspec.convert(given.get("label"), IncidentLabel)
        except msgspec.ValidationError as error:
            raise UserError(Problem("label", str(error), "true_positive, false_positive or unreviewed")) from None
        actions.label(database, incident_id, verdict, who, note, now)
    else:
        raise UserError(Problem(f"incidents {verb}", "there is no such change", "ack, resolve or label"))
