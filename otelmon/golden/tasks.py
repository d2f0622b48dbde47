"""Golden tasks in the store, and as files of JSON lines."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from otelmon.golden.mine import mine
from otelmon.golden.model import GoldenTask, decode_task, encode_task
from otelmon.store import queries
from otelmon.store.database import Database
from otelmon.store.tables import append, delete
from otelmon.vocabulary.errors import Problem, UserError


def mine_incident(database: Database, incident_id: str, now: int) -> GoldenTask:
    """Mine an incident and keep the task; mining it again replaces the task. Raises UserError when
    there is nothing to mine."""
    with database.read() as cursor:
        incident = queries.incident(cursor, incident_id)
        if incident is None or not incident.findings:
            raise UserError(Problem(incident_id, "there is no incident with findings of this id", "see `otelmon incidents list`"))  # fmt: skip
        conversation_id = incident.findings[0].finding.conversation_id
        open_ = next((f for f in incident.findings if f.finding.status == "open"), None)
        conversation = queries.conversation(cursor, open_.finding.conversation_id if open_ else conversation_id)
        if conversation is None:
            raise UserError(Problem(incident_id, "its conversation is no longer stored", "a younger incident"))
        task = mine(incident, conversation, queries.tool_versions(cursor))
    with database.write() as connection:
        delete(connection, "golden_tasks", "task_id", [task.id])
        append(connection, "golden_tasks", [(task.id, incident_id, "mined", now, encode_task(task).decode())])
    return task


def stored_tasks(database: Database) -> list[GoldenTask]:
    """All tasks kept, oldest first."""
    with database.read() as cursor:
        rows = cursor.execute("SELECT task FROM golden_tasks ORDER BY created_unix_nano, task_id").fetchall()
    return [decode_task(text.encode()) for (text,) in rows]


def write_tasks(path: Path, tasks: Iterable[GoldenTask]) -> int:
    """Write tasks as JSON lines; a task that the file has already (by id) is replaced. How many were
    written."""
    known = {task.id: task for task in read_tasks(path)} if path.exists() else {}
    new = {task.id: task for task in tasks}
    lines = [encode_task(task) + b"\n" for task in {**known, **new}.values()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(lines))
    return len(new)


def read_tasks(path: Path) -> list[GoldenTask]:
    """The tasks of a file. Raises UserError naming every line that is none."""
    tasks, problems = [], []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        try:
            tasks.append(decode_task(line))
        except msgspec.DecodeError as error:
            problems.append(Problem(f"{path}:{number}", f"not a golden task: {error}", "version 1 of the format"))
    if problems:
        raise UserError(*problems)
    return tasks
